"""What the coordinator is told (events) and what it answers (actions), as values."""

from __future__ import annotations

from dataclasses import dataclass

from heimdall.vocabulary.plans import DnnPlan, Utility


@dataclass(frozen=True, slots=True)
class FrameRendered:
    """A frame is drawn: the GPU is free until ``gap_end_ns``, when rendering takes it back."""

    frame: int
    gap_end_ns: int
    render_ns: int = 0


@dataclass(frozen=True, slots=True)
class RenderStarted:
    """Rendering holds the GPU: the gap is closed, no chunk may start."""

    frame: int


@dataclass(frozen=True, slots=True)
class InferenceRequested:
    """The app (or the main loop, for a continuous DNN) wants an inference on the newest frame. Of a
    queued DNN: on the inputs that came with ``request``, within ``slo_ns`` (None: the DNN's latency
    constraint). ``replaces``: what is asked for is not what was asked for before, of which a result
    is not wanted any more."""

    dnn: str
    request: int | None = None
    slo_ns: int | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class FrameArrived:
    """There is a new frame, the one of number ``frame``, for these DNNs."""

    dnns: tuple[str, ...]
    frame: int


@dataclass(frozen=True, slots=True)
class SceneChanged:
    """What these DNNs look at is not what it was when they were last told: C of Eq. 4, summed from
    picture to picture. Told where an inference may be replaced, before a frame starts."""

    dnns: tuple[str, ...]
    luminance_difference: float


@dataclass(frozen=True, slots=True)
class InputReady:
    """Preprocessing of a job's current stage is done: ``tasks`` inputs wait, one each crop.

    Zero tasks: the stage has nothing to do (no palm found) and the job ends.
    ``luminance_difference`` is C of Eq. 4 on 1080p pixels, computed in the pool (stage 0 only).
    ``frame``: the number of the frame that the job is about, where it is about one (stage 0 only).
    """

    job: int
    tasks: int = 1
    luminance_difference: float = 0.0
    frame: int | None = None


@dataclass(frozen=True, slots=True)
class ChunkFinished:
    """Ops up to ``end_op`` of a job's current task have run; ``elapsed_ns`` on the processor, and
    ``off_ns`` on the CPU meanwhile, where it was held for fallback ops."""

    job: int
    processor: str
    start_op: int
    end_op: int
    elapsed_ns: int
    off_ns: int | None = None


@dataclass(frozen=True, slots=True)
class FallbackFinished:
    """The pool has run the fallback ops up to ``end_op``."""

    job: int
    end_op: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class DnnMoved:
    """A DNN is now loaded on ``processor`` (moving takes about 50 ms on a phone, section 6.3.2)."""

    dnn: str
    processor: str


@dataclass(frozen=True, slots=True)
class JobFailed:
    """Preprocessing, a chunk or decoding raised; the job is dropped."""

    job: int
    error: str


@dataclass(frozen=True, slots=True)
class ProcessorLost:
    """A processor stopped working; its DNNs move away and its running job is dropped."""

    processor: str


@dataclass(frozen=True, slots=True)
class ProcessorBack:
    """A lost processor works again."""

    processor: str


@dataclass(frozen=True, slots=True)
class Reconfigured:
    """From now on another policy, chunk mode or frame rate; jobs in flight go on.

    ``chunks``: the static partition for that rate, one entry a network: all stages of the first
    DNN, then those of the second, and so on.
    """

    scheduler: str
    mode: str
    frame_interval_ns: int
    chunks: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class RenderingStopped:
    """Nothing is drawn from now on: the GPU is free until RenderStarted, if that ever comes. Chunks
    run back to back, each as long as a frame's interval at most."""


@dataclass(frozen=True, slots=True)
class DnnAdded:
    """One more DNN is to be run."""

    plan: DnnPlan


@dataclass(frozen=True, slots=True)
class DnnRemoved:
    """A DNN is not to be run any more; its job is dropped."""

    dnn: str


@dataclass(frozen=True, slots=True)
class DnnBuilt:
    """A DNN whose plan said that it was not ``built`` can be run on the GPU from now on: it moves
    there. ``plan``: the one that holds from its next job on, with as many stages."""

    plan: DnnPlan


@dataclass(frozen=True, slots=True)
class DnnAdjusted:
    """The app wants a DNN more urgently, or less, or more often: from its next job on it is run by
    these instead of what its plan says (faces matter more in a crowd: sections 4.3 and 10.1.1)."""

    dnn: str
    priority: str
    utility: Utility
    constraint_ns: int
    min_interval_ns: int
    rate_hz: float | None = None


@dataclass(frozen=True, slots=True)
class SlowDecision:
    """The last decision took so long that frames may have waited for it."""

    took_ns: int


Event = (
    FrameRendered
    | RenderStarted
    | InferenceRequested
    | FrameArrived
    | SceneChanged
    | InputReady
    | ChunkFinished
    | FallbackFinished
    | DnnMoved
    | JobFailed
    | ProcessorLost
    | ProcessorBack
    | Reconfigured
    | RenderingStopped
    | DnnAdded
    | DnnRemoved
    | DnnBuilt
    | DnnAdjusted
    | SlowDecision
)


@dataclass(frozen=True, slots=True)
class Prepare:
    """Preprocess the input of ``stage`` (0: the newest frame; later: crops from the last
    stage's outputs) in the pool, then report InputReady. ``request``: the one it prepares.
    ``anew``: why a job that has been prepared before begins again, on the newest frame."""

    job: int
    dnn: str
    stage: int
    request: int | None = None
    anew: str = ""


@dataclass(slots=True, unsafe_hash=True)
class RunChunk:
    """Run ops ``[start_op, end_op)`` of task ``task`` of ``stage`` on ``processor``.

    ``until_ns``: when rendering takes the GPU back. A chunk that turns out slower than expected
    may end at an earlier op for that, and so may one that is to yield; 0: it has to run to its
    end.

    To be left as it is, like the others, but not frozen: a decision makes one, and a frozen
    dataclass stores its fields the slow way (9 us instead of 3 us when the caches are cold).
    """

    job: int
    dnn: str
    stage: int
    task: int
    processor: str
    start_op: int
    end_op: int
    expected_ns: int
    reason: str  # why this one: "its deadline is at risk", ... (overlay and trace)
    until_ns: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """What one job does in a stage of ``RunTogether``: the op ranges ``ops`` of task ``task`` of
    its network ``stage``, one after the other. Several groups of a job in the same stage are
    branches of its graph that do not need each other."""

    job: int
    dnn: str
    stage: int
    task: int
    ops: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RunTogether:
    """Run ``stages`` one after the other on ``processor``, the groups of a stage at the same time
    (TOP, section IV). Of each job in it, all ops together are one range that begins at its next op.
    It is answered by a ChunkFinished for each job, ``elapsed_ns`` being the whole."""

    processor: str
    stages: tuple[tuple[Group, ...], ...]
    expected_ns: int
    reason: str

    @property
    def dnn(self) -> str:
        """One of its DNNs: whose executor runs all of it."""
        return self.dnns[0]

    @property
    def dnns(self) -> tuple[str, ...]:
        """All of its DNNs, each once."""
        return tuple(dict.fromkeys(group.dnn for groups in self.stages for group in groups))

    @property
    def parts(self) -> tuple[tuple[int, int, int], ...]:
        """For each job in it: (job, its first op, the op before which it ends)."""
        found: dict[int, tuple[int, int]] = {}
        for group in (group for groups in self.stages for group in groups):
            start, end = found.get(group.job, group.ops[0])
            starts, ends = zip(*group.ops, strict=True)
            found[group.job] = min(start, *starts), max(end, *ends)
        return tuple((job, start, end) for job, (start, end) in found.items())


@dataclass(frozen=True, slots=True)
class Yield:
    """End the chunk of ``job`` that runs on the GPU as soon as it may, for a more urgent one."""

    job: int
    dnn: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunFallback:
    """Run the fallback ops ``[start_op, end_op)`` in the pool."""

    job: int
    dnn: str
    stage: int
    task: int
    start_op: int
    end_op: int


@dataclass(frozen=True, slots=True)
class Move:
    """Load ``dnn`` on ``processor``, then report DnnMoved; its next jobs run there."""

    dnn: str
    processor: str
    reason: str


@dataclass(slots=True, unsafe_hash=True)  # not frozen: as RunChunk
class Finish:
    """The last op of the last stage has run: decode in the pool and deliver the result."""

    job: int
    dnn: str
    processor: str
    latency_ns: int  # from enqueue (after preprocessing) to now
    missed: bool  # latency above the DNN's constraint
    chunks: int  # how many chunks its GPU work was cut into
    stages: int = 1
    request: int | None = None
    exit: str = ""  # the variant of its network that ran, where that has early exits


NO_JOB = -1


@dataclass(frozen=True, slots=True)
class Drop:
    """The job ends without a result. ``again``: what was asked for is run anew, by another job.
    ``job`` is ``NO_JOB`` for a request that was refused before it became one."""

    job: int
    dnn: str
    reason: str
    again: bool = False
    request: int | None = None


Action = Prepare | RunChunk | RunTogether | Yield | RunFallback | Move | Finish | Drop
