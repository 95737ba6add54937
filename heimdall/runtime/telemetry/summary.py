"""The summary of a run as values: what ``run`` returns, and ``--json`` prints.

None is a figure that could not be taken: no frame was drawn, say, or it is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Rates:
    """Frames a second: over all, and the lowest and highest over windows of 1/3 s."""

    mean: float | None
    min: float | None
    max: float | None


@dataclass(frozen=True)
class Quantiles:
    """The median and the 99th percentile."""

    p50: float | None
    p99: float | None


@dataclass(frozen=True)
class Spread(Quantiles):
    """The median, the 99th percentile and the largest value."""

    max: float | None


@dataclass(frozen=True)
class Latency:
    """Latencies of a DNN's inferences in ms."""

    mean: float | None
    p50: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True)
class Device:
    """What a run ran on. ``mode``: "hardware", or how the software GPU was confined.
    ``priorities``: what drivers give the ``networks``, and ``rendering`` (low, medium, high,
    realtime); null: nothing that they would say, the usual."""

    gpu: str
    cpu: str
    software_gpu: bool
    mode: str
    renderer: str | None  # None: nothing was drawn
    remote: str | None = None  # the server that DNNs could be offloaded to
    priorities: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class GpuTime:
    """``busy_ms``: rendering and chunks. ``useful_ms``: what all of it takes when it is alone.
    ``frames_busy_ms`` and ``frames_useful_ms``: of these, rendering."""

    busy_ms: float | None
    useful_ms: float | None
    frames_busy_ms: float | None
    frames_useful_ms: float | None


@dataclass(frozen=True)
class Memory:
    """Resident memory of the process in MB."""

    at_10s: float | None
    peak: float | None
    end: float | None


@dataclass(frozen=True)
class DnnSummary:
    """One DNN. ``latency_ms``: from enqueue to the last op; ``end_to_end_ms`` adds preprocessing
    and decoding. ``age_ms``: how long ago the frame was taken of which a result is on screen, frame
    by frame; ``begun_anew``: how often an inference was, on a newer frame (admission "replace").
    ``gpu``, ``cpu``, ``remote``: inferences there; ``chunks``: mean of one on the GPU.
    ``achieved_hz``: inferences a second, beside the least that was asked for (None: event-driven);
    ``miss_rate``: the share that missed their deadline; ``utility``: what results were worth when
    they came, 1 fresh, 0 at the latency constraint; ``exits``: how often each early exit was taken,
    of a network that has some."""

    inferences: int
    achieved_hz: float | None
    required_hz: float | None
    latency_ms: Latency
    end_to_end_ms: Latency
    age_ms: Latency
    begun_anew: int
    gpu: int
    cpu: int
    chunks: float
    fallback_ops: int
    deadline_misses: int
    miss_rate: float | None
    utility: float | None
    dropped: int
    stages: int
    remote: int = 0
    exits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ProcessorSummary:
    """One processor: the share of its time that it drew or ran networks, and how long in s."""

    busy: float | None
    busy_s: float


@dataclass(frozen=True)
class PhoneSummary:
    """Pictures of a phone's camera that it was ``shown`` again, drawn upon: how many, and how long
    after they were taken in ms (from motion to photon). ``not_drawn``: newer ones came before they
    could be; ``not_encoded``: frames of which the same is true; ``not_decoded``: pictures that were
    left out while decoding was behind."""

    shown: int
    p50_ms: float | None
    p99_ms: float | None
    not_drawn: int
    not_encoded: int
    not_decoded: int = 0


@dataclass(frozen=True)
class RequestSummary:
    """The requests to one model. ``reasons``: why some were dropped; ``violations``: the share that
    was dropped or took longer than a multiple ("2", "4", "8", "20") of ``lone_ms``, what the model
    takes alone, or than its own SLO ("slo"); ``utility``: of answers, 1 at once, 0 at the SLO;
    ``jitter_ms``: the standard deviation of latencies; ``accuracy``: what is left of the whole
    network's, on average, of a model with early exits (a violated SLO counts as nothing right), and
    how often each of its ``exits`` was taken; ``preempted``: how often a request that had begun had
    to wait for another one."""

    submitted: int
    finished: int
    dropped: int
    reasons: Mapping[str, int]
    violations: Mapping[str, float | None]
    utility: float | None
    jitter_ms: float | None
    latency_ms: Latency
    lone_ms: float | None
    accuracy: float | None
    exits: Mapping[str, int]
    preempted: int


@dataclass(frozen=True)
class FirstDnn:
    """The inferences of one DNN before all was built, by processor."""

    inferences: int
    latency_ms: Latency
    gpu: int
    cpu: int


@dataclass(frozen=True)
class FirstStart:
    """The time before all networks were built for the GPU, which the other figures leave out.
    ``first_frame_s``, ``on_gpu_s``: since the program began, until the first frame was shown, and
    until every DNN was on the GPU, or known to stay on the CPU."""

    first_frame_s: float
    on_gpu_s: float
    frames: int
    fps: Rates
    frame_interval_ms: Spread
    late_frames: int
    skipped_frames: int
    dnns: Mapping[str, FirstDnn]


@dataclass(frozen=True)
class Chosen:
    """Why ``chunks`` ran: how often by each of the ``reasons``, and the share that the policy
    preferred to others, of those that it was asked for (``by_policy``; None of none)."""

    chunks: int
    by_policy: float | None
    reasons: Mapping[str, int]


@dataclass(frozen=True)
class WorldSummary:
    """Of an app with a world: the share of frames in which it was ``tracked``, how often it was
    ``lost``, of those tracked the share with the pose of the very picture that they show
    (``exact``; else it was predicted), and what a pose takes of a core."""

    tracked: float | None
    lost: int
    exact: float | None
    pose_ms: Quantiles


Output = Mapping[str, str | int | None]


@dataclass(frozen=True)
class RunSummary:
    """What a run came to, after its warm-up. ``start``: where networks had to be built first, what
    was before that.

    ``frame_interval_ms``: between the frames that a user sees; ``longest_interval_ms``: of all
    since the first, warm-up included; ``draw_interval_ms``: between the ends of drawing;
    ``picture_age_ms``: of the camera picture in a frame, when that is presented. A *late* frame is
    presented more than 1 ms after its deadline; ``late_rate``: the share of those.
    ``throughput_hz``: inferences and answered requests a second.
    ``gap_utilization``: the chunks' GPU time over the gaps' while there was work.
    ``chosen``: who decided which chunks ran. ``decision_us``: what the coordinator took to decide.
    ``errors``: what went wrong on the way;
    ``given_up``: what did not work any more at the end, or never did.
    ``outputs``: of record, screenshot, trace, capture and virtual_camera its ``path``, and as
    ``error`` None, or why it is not what was asked for; of a recording, capture or camera also how
    many ``frames`` it has, and were ``dropped``.

    ``repr`` and ``print`` say the most important of it; ``to_dict`` has everything.
    """

    schema: int
    app: str
    startup_s: float
    ready_s: float
    source: str
    scheduler: str
    mode: str
    device: Device
    size: tuple[int, int] | None
    fps_target: float
    frames: int
    seconds: float
    fps: Rates
    frame_interval_ms: Spread
    longest_interval_ms: float | None = field(default=None, kw_only=True)
    draw_interval_ms: Spread
    picture_age_ms: Quantiles
    late_frames: int
    late_rate: float | None
    skipped_frames: int
    render_ms: Quantiles
    gpu: GpuTime
    cpu_core_s: float
    processors: Mapping[str, ProcessorSummary]
    gap_utilization: float | None
    chosen: Chosen | None = field(default=None, kw_only=True)
    decision_us: Quantiles
    dnns: Mapping[str, DnnSummary]
    requests: Mapping[str, RequestSummary]
    throughput_hz: float | None
    memory_mb: Memory
    start: FirstStart | None = field(default=None, kw_only=True)
    errors: list[str]
    given_up: list[str] = field(default_factory=list, kw_only=True)
    outputs: Mapping[str, Output]
    wall_s: float
    world: WorldSummary | None = None  # None: the app has none
    phone: PhoneSummary | None = None  # None: no phone's browser was the screen

    def __repr__(self) -> str:
        networks = ", ".join(f"{name} {_ms(each)}" for name, each in self._networks.items())
        return f"RunSummary({'; '.join(filter(None, (f'{self.app}: {self._pace}', networks)))})"

    def __str__(self) -> str:
        lines = [
            f"{self.app} on {self.source}: {self._pace}",
            f"{self.frames} frames in {self.seconds:.1f} s, {self.late_frames} late",
            *(f"{name}: {_said(each)}" for name, each in self._networks.items()),
            *(f"error: {each}" for each in self.errors),
        ]
        return "\n".join(lines)

    @property
    def _networks(self) -> dict[str, DnnSummary | RequestSummary]:
        return {**self.dnns, **self.requests}

    @property
    def _pace(self) -> str:
        mean = self.fps.mean
        return "nothing drawn" if mean is None else f"{mean:.1f} of {self.fps_target:g} fps"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunSummary:
        """From the object that ``heimdall run --json`` prints; what ``bench`` and ``simulate``
        print beside these figures (``system``, ``seed``, ...) is left out."""
        found: RunSummary = _read(cls, data)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The object that ``heimdall run --json`` prints."""
        data = {**asdict(self), "size": self.size and list(self.size)}
        for name in ("world", "phone"):
            if getattr(self, name) is None:
                del data[name]
        for each in (data["device"], *data["dnns"].values()):
            if not each["remote"]:  # as where no server was asked
                del each["remote"]
        if not data["device"]["priorities"]:  # as of what was simulated
            del data["device"]["priorities"]
        for each in data["dnns"].values():
            if not each["exits"]:  # as of a network without
                del each["exits"]
        return data


def _ms(each: DnnSummary | RequestSummary) -> str:
    """Its mean latency."""
    return "no result" if each.latency_ms.mean is None else f"{each.latency_ms.mean:.1f} ms"


def _said(each: DnnSummary | RequestSummary) -> str:
    """How one network did, in a line."""
    if isinstance(each, RequestSummary):
        done = f"{each.finished} of {each.submitted} requests answered"
    else:
        done = f"{each.inferences} inferences, {each.deadline_misses} late"
    p99 = each.latency_ms.p99
    return f"{done}, {_ms(each)}" + (f" on average, {p99:.1f} ms p99" if p99 is not None else "")


def _read(kind: Any, data: Any) -> Any:
    """A value of a type from JSON data: dataclasses from objects, leaving out what they lack."""
    if data is None:
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind).items()
        return kind(**{name: _read(hint, data[name]) for name, hint in hints if name in data})
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Mapping:
        return {name: _read(inner[1], each) for name, each in data.items()}
    if origin is UnionType:
        return _read(inner[0], data)
    return tuple(data) if origin is tuple else data
