"""The systems that are compared: Heimdall's coordinator with a policy, and the baselines.

Of the baselines, each is a row of choices (``Sharing``) that its threads make live, and in virtual
time alike. ``SCHEDULER[-static|-static-runs][-nooffload][-replace]``: coordinated, by a policy's
name or ``path/to/file.py[:Class]``; with the last, inferences begin anew on newer frames. Those
that keep a queue of requests are rows too (``Queueing``), of the same coordinator.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum

from heimdall.errors import ConfigError, unknown
from heimdall.schedulers import SCHEDULERS, create, name_of
from heimdall.system.classes import absolute, is_file
from heimdall.vocabulary.enums import Admission as InFlight
from heimdall.vocabulary.enums import ChunkMode, Silent
from heimdall.vocabulary.plans import DnnPlan

# What a GPU is given at once where more urgent work may come: as long as the parts of a chunk
# of Heimdall's are at most.
BATCH_NS = 3_000_000
_REPLACES = "-replace"

FIRST = -math.inf  # rank


class Precedence(Enum):
    """What has the GPU first where several want it; those of the same rank take turns."""

    NONE = "none"
    RENDERING = "rendering"
    PRIORITIES = "rendering, then DNNs by their priority"

    def rank(self, plan: DnnPlan) -> float:
        """A DNN's: lower ones first, and rendering, if any, with FIRST."""
        return -plan.utility.beta if self is Precedence.PRIORITIES else 0.0


class Admission(Enum):
    """When an inference may begin."""

    FREE = "at once"
    DEADLINE = "when no network runs on the GPU, that with the earliest deadline first"
    ROUNDS = "when all inferences on the last frame have ended; frames in between are dropped"


@dataclass(frozen=True)
class Sharing:
    """How threads without a coordinator share the processors.

    ``wait_ops``: a thread waits for the GPU after so many kernels; ``most_ops``: so many of its
    kernels may be outstanding; ``batch_ns``: it asks again after so much GPU work whether it has
    ``precedence``. None: there is no such limit. ``cores``: it runs on the CPU by onnxruntime, with
    that many threads (0: one for each core), and not on the GPU. ``low``: the driver is to draw
    before it runs networks.
    """

    wait_ops: int | None = None
    most_ops: int | None = None
    batch_ns: int | None = None
    precedence: Precedence = Precedence.NONE
    admission: Admission = Admission.FREE
    cores: int | None = None
    low: bool = False

    @property
    def on_gpu(self) -> bool:
        return self.cores is None


ALONE = Sharing()  # as if nothing else were there
_BASELINES = {
    # A thread and a GPU queue for each DNN (the paper's baseline, section 9.1).
    "multithread": ALONE,
    # The same in queues of low priority, beside rendering in a context of high priority.
    "driver-priority": Sharing(low=True),
    # What one would write without a GPU: sessions in threads, on a core each or on all of them.
    "multithread-onnxruntime": Sharing(cores=1),
    "multithread-onnxruntime-all": Sharing(cores=0),
    # What one would try next, in the order of what it takes.
    "render-first": Sharing(batch_ns=BATCH_NS, precedence=Precedence.RENDERING),
    "priorities": Sharing(batch_ns=BATCH_NS, precedence=Precedence.PRIORITIES),
    "edf": Sharing(admission=Admission.DEADLINE),
    "edf-render-first": Sharing(
        batch_ns=BATCH_NS, precedence=Precedence.RENDERING, admission=Admission.DEADLINE
    ),
    "drop-while-busy": Sharing(admission=Admission.ROUNDS),  # as MediaPipe limits its flow
}


def _fixed(ops: int) -> Sharing:
    """Model-agnostic partitioning (section 9.1; the paper's number is 5)."""
    return Sharing(wait_ops=ops)


def _bounded(ops: int) -> Sharing:
    """Never far ahead of the GPU, and never waiting for it to be idle."""
    return Sharing(most_ops=ops)


# name, then the number of kernels. A bound of one would be a wait after each: fixed-1.
_NUMBERED = {
    r"fixed-([1-9][0-9]{0,4})": _fixed,
    r"bounded-([2-9]|[1-9][0-9]{1,4})": _bounded,
}
BASELINES = (*_BASELINES, "fixed-5", "bounded-2")


@dataclass(frozen=True)
class Queueing:
    """How a system queues requests: the policy that is asked, the ``partition`` strategy by which
    networks are cut for it, and what becomes of ops that a processor does not support (``silent``).
    ``mapped``: each network has a processor of its own. ``busy_skips``: a client waits for its
    answer before it asks again, and what it meant to ask meanwhile is lost (of a closed loop,
    nothing is). ``searched``: by what priorities and variants are found beforehand
    (``simulator.scaling``). ``variants``: the kind that networks have beside the whole
    one (``simulator.early_exits``). ``best_effort``: the ``partition`` of models of low
    priority, where it is another: a GPU has a queue for them that yields to the others.
    ``together``: ops of several requests run at the same time, as plans say that are made for the
    models and the device; so its policy cannot be made of its name alone."""

    scheduler: str
    partition: str = "whole"
    silent: str = Silent.NEVER
    mapped: bool = False
    busy_skips: bool = False
    searched: str = ""
    variants: str = ""
    best_effort: str = ""
    together: bool = False


def _rt_mdl() -> dict[str, Queueing]:
    """RT-mDL (SenSys '21) with networks and a predictor of misses as it has them, and with others:
    Pantheon's exits in place of its networks; a schedulability analysis, or the very simulator that
    runs afterwards, in place of its random forest."""
    networks = {"": "scaled", "-exits": "exits"}
    predictors = {"": "forest", "-analysis": "analysis", "-oracle": "runs"}
    return {
        f"rt-mdl{kind}{by}": Queueing(
            "rt-mdl", searched=searched, variants=variants, best_effort="critical"
        )
        for kind, variants in networks.items()
        for by, searched in predictors.items()
    }


_QUEUES = {
    # SPLIT (ICPP '23), and what it is compared with there; nosplit: networks run whole.
    "response-ratio": Queueing("response-ratio", "even"),
    "response-ratio-nosplit": Queueing("response-ratio"),
    "response-ratio-always": Queueing("response-ratio-always", "even"),
    "fcfs": Queueing("fcfs"),
    "prema": Queueing("prema"),
    "rt-a": Queueing("rt-a", "even"),
    # Band (MobiSys '22), the baselines of its paper and of its code; nosubgraphs: a network runs
    # on one processor, but for the ops that it does not support.
    "lst": Queueing("lst", "units"),
    "lst-nosubgraphs": Queueing("lst", silent=Silent.BACK),
    "heft": Queueing("heft", "units"),
    "heft-nosubgraphs": Queueing("heft", silent=Silent.BACK),
    "shortest": Queueing("shortest", "units"),
    "shortest-nosubgraphs": Queueing("shortest", silent=Silent.BACK),
    "round-robin": Queueing("round-robin", "units"),
    "round-robin-nosubgraphs": Queueing("round-robin", silent=Silent.BACK),
    "fixed": Queueing("fixed", silent=Silent.STAY, mapped=True, busy_skips=True),
    "fixed-many": Queueing("fixed", silent=Silent.BACK, mapped=True, busy_skips=True),
    # Pantheon (MobiSys '24), its ablations, and what it is compared with there.
    "edf-exits": Queueing("edf-exits", "critical", variants="exits"),
    "edf-exits-noswitch": Queueing("edf-exits-noswitch", "critical", variants="exits"),
    "edf-exits-noswitch-nopreempt": Queueing(
        "edf-exits-noswitch-nopreempt", variants="exits", best_effort="critical"
    ),
    "edf-exits-noexits": Queueing("edf-exits-noexits", "critical"),
    "edf-exits-noexits-nopreempt": Queueing("edf-exits-noexits-nopreempt", best_effort="critical"),
    "rms": Queueing("rms", best_effort="critical"),
    "dms": Queueing("dms", best_effort="critical"),
    **_rt_mdl(),
    # XRBench (MLSys '23), its reference scheduler.
    "greedy": Queueing("greedy"),
    # ... and ours, for deadlines at the ends of periods.
    "most-in-time": Queueing("most-in-time"),
    # TOP (TPDS '25); one plan for a request of every model, as compilers make it, which waits for
    # all of them, or leaves the places of others free; one network after the other.
    "top": Queueing("top", "blocks", together=True),
    "static-plan": Queueing("static-plan", together=True),
    "static-plan-free": Queueing("static-plan", together=True),
    "sequential": Queueing("fcfs"),
}


@dataclass(frozen=True)
class System:
    """One system by its name. ``sharing``: how a baseline's threads share the processors; the
    others are of a coordinated one: ``scheduler``, say, is its policy's name or file.
    ``queueing``: of one that has a queue of requests."""

    name: str
    scheduler: str | None = None
    mode: str = ChunkMode.ELASTIC
    offload: bool = False
    admission: str = InFlight.ONE_IN_FLIGHT
    sharing: Sharing | None = None
    queueing: Queueing | None = None

    @property
    def typed(self) -> str:
        """What one types for it, in whatever folder: its name, or its policy's file."""
        if self.own_policy is None:
            return self.name
        return self.own_policy + self.name.removeprefix(name_of(self.own_policy))

    @property
    def own_policy(self) -> str | None:
        """The file of its policy, where that is a user's."""
        return self.scheduler if self.scheduler and is_file(self.scheduler) else None

    @property
    def policy(self) -> str | None:
        """What its policy is called in reports."""
        return self.scheduler and name_of(self.scheduler)

    @property
    def coordinated(self) -> bool:
        return self.sharing is None


def parse_system(name: str) -> System:
    """The system called ``name``. Raises ConfigError, listing the names, when there is none."""
    if sharing := _sharing(name):
        return System(name, sharing=sharing)
    if name in _QUEUES:
        row = _QUEUES[name]
        if not row.together:
            create(row.scheduler)
        return System(name, row.scheduler, ChunkMode.STATIC, queueing=row)
    kept = name.removesuffix(_REPLACES)
    policy = kept.removesuffix("-nooffload")
    scheduler, mode = _mode_of(policy)
    if is_file(scheduler):
        name = name_of(scheduler) + name.removeprefix(scheduler)
        scheduler = absolute(scheduler)
    elif scheduler not in SCHEDULERS:
        raise ConfigError(
            unknown("system", name, system_names()) + "; or give the file of a policy, file.py"
        )
    create(scheduler)  # another package's may not load: say so now
    admission = InFlight.REPLACE if name.endswith(_REPLACES) else InFlight.ONE_IN_FLIGHT
    return System(name, scheduler, mode, offload=policy == kept, admission=admission)


def refuse_planned(system: System) -> None:
    """Raise ConfigError for a system that can only be simulated, with requests."""
    if system.queueing is not None and system.queueing.together:
        raise ConfigError(
            f"{system.name} needs plans that are made for models and a device's profile: simulate "
            "a scenario of requests under it, such as top-mixed"
        )


def _sharing(name: str) -> Sharing | None:
    """What a baseline of that name is; None where it is none."""
    for pattern, sharing in _NUMBERED.items():
        if found := re.fullmatch(pattern, name):
            return sharing(int(found[1]))
    return _BASELINES.get(name)


def _mode_of(policy: str) -> tuple[str, str]:
    """(scheduler, chunk mode) of a system's name; elastic where it names no mode."""
    for mode in (ChunkMode.STATIC, ChunkMode.STATIC_RUNS):
        if policy.endswith(f"-{mode}"):
            return policy.removesuffix(f"-{mode}"), mode
    return policy, ChunkMode.ELASTIC


def parse_systems(names: str) -> list[System]:
    """The systems of a comma-separated list, in its order. Raises ConfigError on an unknown or
    repeated name, and on an empty list."""
    systems = [parse_system(name.strip()) for name in names.split(",") if name.strip()]
    if not systems:
        raise ConfigError(f"no system given; choose from: {', '.join(system_names())}")
    for index, system in enumerate(systems):
        if system in systems[:index]:
            raise ConfigError(f"system {system.name!r} is listed twice")
    return systems


def system_names() -> list[str]:
    """Every system: the baselines, and each policy in its variants."""
    modes = ("", f"-{ChunkMode.STATIC}", f"-{ChunkMode.STATIC_RUNS}")
    variants = [*modes, *(f"{mode}-nooffload" for mode in modes)]
    drawing = [name for name in SCHEDULERS if name not in queueing_policies()]
    return [
        *BASELINES,
        *(policy + variant for policy in drawing for variant in variants),
        *queue_names(),
    ]


def queue_names() -> list[str]:
    """The systems that keep a queue of requests."""
    return [name for name, row in _QUEUES.items() if row.together or row.scheduler in SCHEDULERS]


def queueing_policies() -> frozenset[str]:
    """The policies that such systems are made of."""
    return frozenset(row.scheduler for row in _QUEUES.values())
