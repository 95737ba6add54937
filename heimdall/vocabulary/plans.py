"""What is known about a DNN before it runs: its stages, their profiled times, its utility."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from heimdall.vocabulary.enums import Priority


@dataclass(frozen=True, slots=True)
class Utility:
    """Parameters of Eqs. 2-4 for one DNN. Times are in ms.

    ``beta`` scales how fast utility falls, ``gamma`` is the exponent, ``l0`` the utility of a
    fresh result, ``alpha`` the weight of content variation (0.01 in the paper).
    """

    beta: float = 1.0
    gamma: float = 1.0
    l0: float = 0.0
    alpha: float = 0.01


@dataclass(frozen=True, slots=True)
class Exit:
    """A variant of a network (Pantheon, section 3.1): the op ranges that run, half-open and in
    order; ops between them, the heads of other exits, are skipped."""

    name: str
    ranges: tuple[tuple[int, int], ...]
    accuracy: float  # 0..1


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What is known about one network of a DNN before it runs (from its profile)."""

    op_ns: tuple[int, ...]  # profiled GPU latency of each op (of each fallback op: on the CPU)
    fallback: tuple[bool, ...]
    cpu_ns: int  # the whole network on one CPU core
    chunk_cost_ns: int  # measured cost of cutting: enqueue, flush and wait once
    chunks: tuple[tuple[int, int], ...] = ()  # the static partition: half-open op ranges
    tasks: int = 1  # expected number of tasks (hands, faces): a guess until observed
    # By processor, where there are others than one GPU and CPU cores: the latency of each op there,
    # None for one that it does not support.
    on: tuple[tuple[str, tuple[int | None, ...]], ...] = ()
    # What it costs to begin at op i with tensors of another chunk or processor (empty: nothing).
    cut_ns: tuple[int, ...] = ()
    # The whole network on the remote server, from here and back; None: it is not there.
    remote_ns: int | None = None
    # Its variants, least accurate first, the whole network last; empty: all ops run, always.
    exits: tuple[Exit, ...] = ()
    # Bytes alive where the network is cut before op i: what a job that was preempted there keeps.
    state_bytes: tuple[int, ...] = ()
    # The ops before which one tensor is alive: where all paths through the network meet.
    critical: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DnnPlan:
    """What the coordinator must know about one DNN."""

    name: str
    stages: tuple[StagePlan, ...]
    constraint_ns: int  # latency constraint t_max
    utility: Utility = field(default_factory=Utility)
    min_interval_ns: int = 0  # 1 / max_rate_hz
    continuous: bool = True  # False: only on InferenceRequested
    priority: str = Priority.NORMAL
    rate_hz: float | None = None  # least wanted; None: event-driven, as its events come
    built: bool = True  # False: on the CPU alone, with times that are guesses, until DnnBuilt
    queued: bool = False  # every request is a job of its own, with inputs of its own
    expires: bool = False  # a request that has not begun at its deadline is dropped

    def named(self, name: str) -> DnnPlan:
        """This plan under another name."""
        return replace(self, name=name)

    @property
    def gpu_ns(self) -> int:
        """What one inference alone takes of the GPU, as profiled, every stage once."""
        return sum(_sum(stage, fallback=False) for stage in self.stages)

    @property
    def fallback_ns(self) -> int:
        """What its fallback ops take on the CPU, as profiled, every stage once."""
        return sum(_sum(stage, fallback=True) for stage in self.stages)


def _sum(stage: StagePlan, *, fallback: bool) -> int:
    pairs = list(zip(stage.op_ns, stage.fallback, strict=True))
    spans = stage.exits[-1].ranges if stage.exits else ((0, len(pairs)),)
    ops = (each for start, end in spans for each in pairs[start:end])
    return sum(ns for ns, falls_back in ops if falls_back == fallback)
