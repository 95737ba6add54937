"""A simulated machine with another figure in one place: for what is not known of it, or varies.

A conclusion that holds at one value only says little; a sweep (``sweep``) tries ranges of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from heimdall.app.options import check_number
from heimdall.errors import ArgumentError, ConfigError, unknown
from heimdall.lab.bench.observed import Observed
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.recorded import RECORDED, check_recorded
from heimdall.lab.simulator.watched import open_watched
from heimdall.runtime.telemetry.trace import read_recording

NO_LUMINANCE = "none"
_LONGEST_MS = 1000.0
_MOST_NOISE = 1.0
_MOST_WORKERS = 64

Simulated = tuple[Machine, list[SimulatedDnn]]


@dataclass(frozen=True)
class _Variation:
    """``check`` raises ConfigError for a value that is impossible on any machine; ``apply`` gives
    the machine and its DNNs with the value."""

    check: Callable[[Any], None]
    apply: Callable[[Machine, Sequence[SimulatedDnn], Any], Simulated]


def vary(machine: Machine, dnns: Sequence[SimulatedDnn], values: Mapping[str, Any]) -> Simulated:
    """The machine and its DNNs with other values of what ``VARIATIONS`` lists.

    ``turn_ms``: how long the GPU's driver stays with one queue; ``switch_ms``: what the GPU takes
    to change from one queue to another; ``slowdown``: a network on a core over the same on the
    GPU (all change in proportion); ``gpu_noise``, ``cpu_noise``, ``render_noise``: relative
    standard deviations; ``part_cost_ms``: what each part of a chunk costs; ``cpu_workers``:
    networks on the CPU at the same time; ``luminance``: a bundled clip, a video or the trace of a
    run, whose changes of luminance the DNNs see (Eq. 4), or "none"; ``throttle``: (seconds, factor)
    after which the GPU takes so many times as long, or None.

    Raises ConfigError for names that are not known, and for values out of range.
    """
    changed = machine, list(dnns)
    for name, value in values.items():
        check_variation(name, value)
        changed = VARIATIONS[name].apply(*changed, value)
    return changed


def check_variation(name: str, value: object) -> None:
    """Raise ConfigError unless a machine may have that."""
    if name not in VARIATIONS:
        raise ConfigError(unknown("variation", name, VARIATIONS))
    try:
        VARIATIONS[name].check(value)
    except ArgumentError as error:
        raise ConfigError(f"{name}={error.value}: {error.problem}") from error


# --- kinds of variations ------------------------------------------------------------------------


def _figure(attribute: str, scale: int = 0, **limits: float) -> _Variation:
    """A figure of the machine; ``scale``: its unit in those of the machine, whole numbers (0: as
    it is)."""

    def check(value: Any) -> None:
        _number(value, **limits)

    def apply(machine: Machine, dnns: Sequence[SimulatedDnn], value: Any) -> Simulated:
        figure = round(value * scale) if scale else value
        return replace(machine, **{attribute: figure}), list(dnns)

    return _Variation(check, apply)


def _number(value: Any, **limits: float) -> None:
    if value is None:
        raise ArgumentError("must be a number", value=value)
    check_number("", value, **limits)


def _check_whole(value: Any) -> None:
    _number(value, least=1, most=_MOST_WORKERS)
    if value != int(value):
        raise ArgumentError("must be a whole number", value=value)


def _slow_down(machine: Machine, dnns: Sequence[SimulatedDnn], slowdown: float) -> Simulated:
    """On a phone in proportion to the profile's own figure, else to the mean of the DNNs."""
    before = machine.slowdown or _mean_slowdown(dnns)
    scaled = [_on_slower_cores(dnn, slowdown / before) for dnn in dnns]
    return replace(machine, slowdown=slowdown), scaled


def _mean_slowdown(dnns: Sequence[SimulatedDnn]) -> float:
    stages = [stage for dnn in dnns for stage in dnn.plan.stages]
    return sum(stage.cpu_ns for stage in stages) / sum(sum(stage.op_ns) for stage in stages)


def _on_slower_cores(dnn: SimulatedDnn, factor: float) -> SimulatedDnn:
    stages = (replace(stage, cpu_ns=round(stage.cpu_ns * factor)) for stage in dnn.plan.stages)
    return replace(dnn, plan=replace(dnn.plan, stages=tuple(stages)))


def _check_luminance(value: Any) -> None:
    if not isinstance(value, str):
        raise ArgumentError("must be the name of a clip, or a file", value=value)
    if value.endswith(RECORDED):
        _recorded(value)
    elif value != NO_LUMINANCE:
        open_watched(value)


def _let_see(machine: Machine, dnns: Sequence[SimulatedDnn], name: str) -> Simulated:
    if name == NO_LUMINANCE:
        return machine, [replace(dnn, luminance_difference=(0.0,), watched=None) for dnn in dnns]
    if name.endswith(RECORDED):
        return machine, _as_recorded(dnns, name)
    clip = open_watched(name)
    return machine, [replace(dnn, watched=clip) for dnn in dnns]


def _as_recorded(dnns: Sequence[SimulatedDnn], path: str) -> list[SimulatedDnn]:
    """Each DNN sees the changes that the DNN of its name saw in a run."""
    seen = _recorded(path)
    check_recorded(f"luminance={path}", [dnn.name for dnn in dnns], seen)
    return [replace(dnn, luminance_difference=seen[dnn.name], watched=None) for dnn in dnns]


@lru_cache
def _recorded(path: str) -> dict[str, tuple[float, ...]]:
    """The changes of luminance in a trace, by DNN. Raises ConfigError when it has none."""
    seen = Observed(read_recording(path))
    differences = {plan.name: seen.differences(plan.name) for plan in seen.plans}
    if not any(any(each) for each in differences.values()):
        raise ConfigError(
            f"luminance={path}: the trace lacks luminance: no DNN saw a change; record a run with "
            "a moving picture (heimdall run APP --trace FILE), or name a clip"
        )
    return differences


def _check_throttle(value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise ArgumentError("must be [seconds, factor]", value=value)
    after_s, factor = value
    _number(after_s, least=0)
    _number(factor, above=0, most=100)


def _throttle(machine: Machine, dnns: Sequence[SimulatedDnn], value: Any) -> Simulated:
    throttle = None if value is None else (float(value[0]), float(value[1]))
    return replace(machine, throttle=throttle), list(dnns)


_NS_PER_MS = 1_000_000
VARIATIONS: Mapping[str, _Variation] = {
    "turn_ms": _figure("batch_ns", _NS_PER_MS, above=0, most=_LONGEST_MS),
    "switch_ms": _figure("switch_ns", _NS_PER_MS, least=0, most=_LONGEST_MS),
    "slowdown": _Variation(lambda value: _number(value, above=0, most=1000), _slow_down),
    "gpu_noise": _figure("gpu_noise", least=0, most=_MOST_NOISE),
    "cpu_noise": _figure("cpu_noise", least=0, most=_MOST_NOISE),
    "render_noise": _figure("render_noise", least=0, most=_MOST_NOISE),
    "part_cost_ms": _figure("part_cost_ns", _NS_PER_MS, least=0, most=_LONGEST_MS),
    "cpu_workers": _Variation(_check_whole, _figure("cpu_workers", 1).apply),
    "luminance": _Variation(_check_luminance, _let_see),
    "throttle": _Variation(_check_throttle, _throttle),
}
