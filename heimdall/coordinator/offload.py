"""Opportunistic CPU offload and reload (Heimdall, sections 6.3.2 and 6.4, Eq. 7), and the same to
a remote server (section 10): what is said of the CPU here holds for whichever a DNN may leave for.

Pure arithmetic on what is known of each DNN at one moment; ``placement`` gathers it and carries
the proposal out. One DNN moves a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from heimdall.schedulers.utility import latency_loss
from heimdall.vocabulary.events import Move
from heimdall.vocabulary.plans import Utility
from heimdall.vocabulary.processors import CPU, GPU, PROCESSORS

# A GPU latency below this multiple of the lone latency is no contention: nothing to relieve.
_CONTENDED = 1.5
# Offloading is for when the work exceeds the GPU (section 6.3.2). With less than this part of the
# gaps used a DNN gets its turn, and the CPU, which also feeds the GPU, is better left alone.
_BUSY = 0.85
_ROOM = 0.75  # well below: what comes back must not make the GPU busy again
# With less than this part of the gaps free, a DNN would get no turn on the GPU.
_LEAST_FREE = 0.05


@dataclass(frozen=True, slots=True)
class Load:
    """One DNN at the moment of a step. Times in ns, expected latencies of one inference.

    ``latency_ns``: what it experiences now (0: idle). ``lone_gpu_ns``: on the GPU, between the
    frames, without other DNNs. ``gpu_share``: part of the gap time it took since the last step.
    ``cpu_duty``: part of the time it keeps a CPU worker busy when it runs there. ``greedy``: it
    takes what it gets (continuous, uncapped), so it shares with equals rather than blocks them.
    """

    name: str
    processor: str
    utility: Utility
    constraint_ns: int
    latency_ns: int
    lone_gpu_ns: int
    cpu_ns: int
    gpu_share: float
    cpu_duty: float
    greedy: bool
    gpu_demand: float = 1.0  # part of the gap time it would take on the GPU at its present rate
    held: bool = False  # moved lately: leave it where it is
    away: str = CPU  # which processor ``cpu_ns`` is of: where it is off the GPU, or would be
    other: str = ""  # off the GPU, where else it could be, and how long an inference takes there
    other_ns: int = 0


def step(
    loads: Sequence[Load],
    *,
    margin: float,
    move_ns: int,
    interval_ns: int,
    lanes: Mapping[str, int] = MappingProxyType({}),
) -> Move | None:
    """The one move that pays now, or None. ``lanes``: how many jobs a processor runs at once, where
    that is not one.

    ``margin`` is m of section 6.4. A move costs ``move_ns`` and lasts one step (``interval_ns``)
    at least, so each inference bears its part of it: predictions grow by move_ns / interval_ns.
    """
    factor = (1.0 + margin) * (1.0 + move_ns / interval_ns)
    contended = sum(load.gpu_share for load in loads) >= _BUSY
    return (
        (_offload(loads, factor, lanes) if contended else None)
        or _reload(loads, factor)
        or _change(loads, factor, lanes)
        or _return(loads)
    )


def predict_cpu_ns(load: Load, loads: Sequence[Load], workers: int = 1) -> float:
    """Latency on the CPU, whose workers serve jobs as they come: its own time plus its wait for
    the DNNs already there (for two that never pause on one worker, twice the time)."""
    others = [o for o in loads if o.processor == load.away and o.name != load.name]
    return load.cpu_ns + _cpu_wait_ns(others, workers)


def _cpu_wait_ns(others: Sequence[Load], workers: int) -> float:
    """How long a job waits for one of the CPU's workers behind jobs of ``others``. Of n others
    workers - 1 leave it one; it waits for the rest, as long as they are on average, and all
    workers are at those."""
    behind = len(others) + 1 - workers
    if behind <= 0:
        return 0.0
    work_ns = sum(other.cpu_ns * other.cpu_duty for other in others)
    return work_ns * (behind / len(others) / workers)


def _more_wait_ns(load: Load, comes: Load, there: Sequence[Load], workers: int) -> float:
    """How much longer a DNN on the CPU waits when another one comes to those that are there."""
    others = [o for o in there if o is not load]
    return _cpu_wait_ns([*others, comes], workers) - _cpu_wait_ns(others, workers)


def predict_gpu_ns(load: Load, loads: Sequence[Load]) -> float | None:
    """Latency on the GPU under its *present* load; None when no share of it is free.

    The last GPU latency says nothing: it was measured under the contention that made the DNN
    leave. DNNs of a lower priority (smaller beta) yield to it; greedy ones of the same take turns
    with it; all other demand keeps the share of the gaps it has been measured to take.
    """
    others = [o for o in loads if o.processor == GPU and not _yields(o, load)]
    sharing = [o for o in others if o.greedy and o.utility.beta == load.utility.beta]
    free = 1.0 - sum(o.gpu_share for o in others if o not in sharing)
    if free < _LEAST_FREE:
        return None
    return (load.lone_gpu_ns + sum(o.lone_gpu_ns for o in sharing)) / free


def _yields(other: Load, load: Load) -> bool:
    return other is load or other.utility.beta < load.utility.beta


def _offload(loads: Sequence[Load], factor: float, lanes: Mapping[str, int]) -> Move | None:
    """The DNN of the highest latency first (ties: the one nearest to its constraint)."""
    movable = [load for load in loads if load.processor == GPU and load.latency_ns]
    movable.sort(key=lambda o: (-o.latency_ns, o.constraint_ns, o.name))
    for load in movable:
        if load.held or load.latency_ns <= _CONTENDED * load.lone_gpu_ns:
            continue
        workers = lanes.get(load.away, 1)
        cpu_ns = predict_cpu_ns(load, loads, workers)
        if cpu_ns * factor >= load.latency_ns:
            continue
        there = [o for o in loads if o.processor == load.away]
        if _gain(load, cpu_ns) >= sum(
            _loss(o, _more_wait_ns(o, load, there, workers)) for o in there if o.latency_ns
        ):
            return Move(
                load.name, load.away, f"{_took(GPU, load.latency_ns)}, {_took(load.away, cpu_ns)}"
            )
    return None


def _reload(loads: Sequence[Load], factor: float) -> Move | None:
    """The DNN of the highest CPU latency first."""
    movable = [load for load in loads if load.processor != GPU and load.latency_ns]
    movable.sort(key=lambda o: (-o.latency_ns, o.constraint_ns, o.name))
    for load in movable:
        gpu_ns = predict_gpu_ns(load, loads)
        if load.held or gpu_ns is None or load.latency_ns <= factor * gpu_ns:
            continue
        there = [o for o in loads if o.processor == GPU and o.latency_ns]
        there = [o for o in there if o.utility.beta <= load.utility.beta]
        if _gain(load, gpu_ns) >= sum(_loss(o, load.lone_gpu_ns) for o in there):
            return Move(
                load.name, GPU, f"{_took(load.away, load.latency_ns)}, {_took(GPU, gpu_ns)}"
            )
    return None


def _change(loads: Sequence[Load], factor: float, lanes: Mapping[str, int]) -> Move | None:
    """From the CPU to the server, or back: else a DNN that left for the CPU while the server was
    gone would stay there for good, as long as the GPU is busy."""
    for load in loads:
        if load.processor == GPU or load.held or not load.other_ns:
            continue
        there = [o for o in loads if o.processor == load.other]
        other_ns = load.other_ns + _cpu_wait_ns(there, lanes.get(load.other, 1))
        if load.latency_ns > factor * other_ns:
            reason = f"{_took(load.away, load.latency_ns)}, {_took(load.other, other_ns)}"
            return Move(load.name, load.other, reason)
    return None


def _return(loads: Sequence[Load]) -> Move | None:
    """Bring a DNN home when the contention that drove it away is over, even if one CPU core is
    as fast: the GPU must have room for all it asks, and let it end in half its constraint.

    The paper's margin rule alone never brings it back where CPU and GPU are equally fast.
    """
    for load in loads:
        taken = sum(o.gpu_share for o in loads if o.processor == GPU and not _yields(o, load))
        if load.processor == GPU or load.held or taken + load.gpu_demand > _ROOM:
            continue
        gpu_ns = predict_gpu_ns(load, loads)
        if gpu_ns is not None and 2 * gpu_ns <= load.constraint_ns:
            return Move(load.name, GPU, f"GPU {taken:.0%} taken")
    return None


def _gain(load: Load, latency_ns: float) -> float:
    """How much utility a DNN wins when its latency becomes ``latency_ns`` (Eq. 3)."""
    now = latency_loss(load.utility, load.latency_ns / 1e6)
    return now - latency_loss(load.utility, latency_ns / 1e6)


def _loss(load: Load, more_ns: float) -> float:
    """How much utility a DNN loses when it waits ``more_ns`` longer."""
    return -_gain(load, load.latency_ns + more_ns)


def _took(processor: str, ns: float) -> str:
    return f"{processor.upper() if processor in PROCESSORS else processor} {ns / 1e6:.0f} ms"
