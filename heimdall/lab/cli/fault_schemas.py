"""What ``heimdall faults`` and ``heimdall soak`` print, for ``schemas``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass
class FaultFps:
    """Frames a second as they were shown: the mean, and the least in any second."""

    mean: float | None
    min: float | None


@dataclass
class RateAround:
    """Results a second of a DNN before the fault, while it was there, and after it."""

    before_hz: float | None
    during_hz: float | None
    after_hz: float | None


@dataclass
class TriedFault:
    """One run with one fault. ``what`` happened; ``longest_ms``: between two frames;
    ``worst_window_fps``: in a third of a second; ``recovery_s``: until frames and all DNNs were at
    their rate again (null: never, or the run ended); ``lost``: results of DNNs that were not at
    fault; ``told``: what the user was told, its first line; ``ended_in_s``: from the last frame, or
    from when it was told to end, until the process was gone; ``left``: threads, processes, handles
    and partial files that remained; ``status``: of the process (null: it was killed); ``why``: the
    bounds that were missed. Null: it makes no sense for this fault."""

    fault: str
    what: str
    fps: FaultFps
    p99_ms: float | None
    longest_ms: float | None
    worst_window_fps: float | None
    recovery_s: float | None
    lost: int | None
    told: str
    ended_in_s: float | None
    left: list[str]
    status: int | None
    dnns: dict[str, RateAround]
    passed: bool
    why: list[str]


@dataclass
class Faults:
    """``heimdall faults``; ``left_out``: what cannot be tried here, and why."""

    schema: Literal[1]
    app: str
    seconds: float
    faults: list[TriedFault]
    left_out: dict[str, str]
    interrupted: bool


@dataclass
class ListedFault:
    """A fault that can be tried."""

    fault: str
    what: str


@dataclass
class ListedFaults:
    """``heimdall faults --list``."""

    schema: Literal[1]
    faults: list[ListedFault]


@dataclass
class SoakSamples:
    """What there was ``s`` seconds after the warm-up: resident memory, threads, open handles."""

    s: list[float]
    memory_mb: list[float]
    threads: list[int]
    handles: list[int]


@dataclass
class SoakFrames:
    """The longest interval between frames in each second."""

    s: list[float]
    longest_ms: list[float]


@dataclass
class SoakedApp:
    """One app of a soak; figures as of ``heimdall faults``. ``injected``: failures;
    ``memory_mb_per_min``: how much its memory grew (null: too short to tell)."""

    app: str
    seconds: float
    fps: FaultFps
    p99_ms: float | None
    longest_ms: float | None
    worst_window_fps: float | None
    ended_in_s: float | None
    left: list[str]
    status: int | None
    late_frames: int | None
    injected: int
    errors: list[str]
    memory_mb_per_min: float | None
    threads_gained: int
    handles_gained: int
    samples: SoakSamples
    frames: SoakFrames
    passed: bool
    why: list[str]


@dataclass
class Soak:
    """``heimdall soak``."""

    schema: Literal[1]
    minutes: float
    apps: list[SoakedApp]
    interrupted: bool
