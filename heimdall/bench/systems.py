"""The systems that are compared: Heimdall's coordinator with a policy, and the baselines.

``multithread``: each DNN in a thread of its own on a GPU queue of its own, uncoordinated (the
paper's baseline, section 9.1). ``multithread-onnxruntime``: what one would write today, sessions
in threads. ``fixed-N``: uncoordinated threads that wait after every N kernels (model-agnostic
partitioning; the paper's N is 5). ``SCHEDULER[-static|-static-runs][-nooffload]``: coordinated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from heimdall.errors import ConfigError, unknown
from heimdall.schedulers import SCHEDULERS, create
from heimdall.vocabulary.enums import ChunkMode


class Kind(Enum):
    """How a system runs DNNs."""

    COORDINATED = "coordinated"
    MULTITHREAD = "multithread"
    MULTITHREAD_ONNXRUNTIME = "multithread-onnxruntime"
    FIXED = "fixed"


BASELINES = (Kind.MULTITHREAD.value, Kind.MULTITHREAD_ONNXRUNTIME.value, "fixed-5")


@dataclass(frozen=True)
class System:
    """One system by its name; what does not apply to its kind is None or False."""

    name: str
    kind: Kind
    scheduler: str | None = None  # of a coordinated one
    mode: str = ChunkMode.ELASTIC
    offload: bool = False
    ops: int | None = None  # kernels between two waits of a fixed one

    @property
    def coordinated(self) -> bool:
        return self.kind is Kind.COORDINATED


def parse_system(name: str) -> System:
    """The system called ``name``. Raises ConfigError, listing the names, when there is none."""
    if name in (Kind.MULTITHREAD.value, Kind.MULTITHREAD_ONNXRUNTIME.value):
        return System(name, Kind(name))
    fixed = re.fullmatch(r"fixed-([1-9][0-9]{0,4})", name)
    if fixed:
        return System(name, Kind.FIXED, ops=int(fixed[1]))
    policy = name.removesuffix("-nooffload")
    scheduler, mode = _mode_of(policy)
    if scheduler not in SCHEDULERS:
        raise ConfigError(unknown("system", name, system_names()))
    create(scheduler)  # another package's may not load: say so now
    return System(name, Kind.COORDINATED, scheduler, mode, offload=policy == name)


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
    return [*BASELINES, *(policy + variant for policy in SCHEDULERS for variant in variants)]
