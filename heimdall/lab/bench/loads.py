"""Loads that fit the machine: the input size at which a network takes as long alone as asked for.

One size means 60 ms on one machine and 120 on the next. A scenario that says ``alone_ms = 95``
compares the same work everywhere: its network is profiled at the size that the file begins with,
then at those that the profiles so far point to, until one takes what was asked for. Profiles are
kept, so the next start finds the same size without measuring.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from heimdall.analyzer.precision import engine_for
from heimdall.analyzer.profile import NetworkProfile
from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.analyzer.store import load_or_measure
from heimdall.app import DNN
from heimdall.app.options import RunOptions
from heimdall.errors import ConfigError
from heimdall.graph.graph import load_graph
from heimdall.lab.bench.scenario import Scenario
from heimdall.models.catalog import open_pipeline
from heimdall.runtime.execution.processors import Processors, open_processors
from heimdall.runtime.opening.setup import confinement, ground

log = logging.getLogger(__name__)

WITHIN = 0.1  # of what was asked for
MOST_TRIES = 5  # of sizes, each of which a machine compiles and measures once
SIDES = (64, 4096)  # the least and the most that an input is given

Size = tuple[int, int]  # height, width


@dataclass(frozen=True)
class Load:
    """What a network was given: its input's ``size`` (height, width), and what it takes alone by
    its profile, with its fallback ops (``fallback_ms`` of it). ``wanted_ms``: asked for."""

    size: Size
    alone_ms: float
    fallback_ms: float
    wanted_ms: float

    @property
    def is_near(self) -> bool:
        """True if the load takes about as long as was asked for."""
        return abs(self.alone_ms / self.wanted_ms - 1) <= WITHIN

    def to_dict(self) -> dict[str, Any]:
        """An entry of ``loads`` in a summary."""
        times = {name: round(ms, 1) for name, ms in asdict(self).items() if name != "size"}
        return {"size": list(self.size), **times}


def fit(
    scenario: Scenario, options: RunOptions, progress: Progress = no_progress
) -> tuple[Scenario, dict[str, Load]]:
    """The scenario with the input sizes that give its DNNs their ``alone_ms`` on the GPU of a run
    with these options, and what was found for each of these DNNs.

    Opens the devices and closes them again, unless no DNN asks. Raises ConfigError for a load that
    no size reaches; a size that is the nearest, and yet not near, is a warning.
    """
    asked = [dnn for dnn in scenario.declared() if scenario.settings(dnn.name).alone_ms]
    if not asked:
        return scenario, {}
    found = {}
    with ground(True), open_processors(options.device, confinement(options, True)) as processors:
        for dnn in asked:
            wanted_ms = scenario.settings(dnn.name).alone_ms or 0.0
            found[dnn.name] = load = _find(dnn, wanted_ms, processors, progress)
            if not load.is_near:
                log.warning(
                    "%s takes %.1f ms alone at %dx%d, and %g were asked for: no size comes nearer",
                    *(dnn.name, load.alone_ms, *load.size, wanted_ms),
                )
    return scenario.with_sizes({name: load.size for name, load in found.items()}), found


def _find(dnn: DNN[Any], wanted_ms: float, processors: Processors, progress: Progress) -> Load:
    """The load of one DNN, by profiles of its networks."""
    loads: dict[Size, Load] = {}

    def measure_ms(size: Size) -> float:
        profiles = _profiles(dnn, size, processors, progress)
        alone_ns = sum(each.whole_ns for each in profiles)
        fallback_ns = sum(op.ns for each in profiles for op in each.ops if op.fallback)
        loads[size] = Load(size, alone_ns / 1e6, fallback_ns / 1e6, wanted_ms)
        return loads[size].alone_ms

    step = open_pipeline(str(dnn.model), **dnn.options).size_step
    assert step is not None  # or the scenario would not have been read
    height, width = dnn.options["size"]
    try:
        size = nearest_size(measure_ms, (height, width), step, wanted_ms)
    except ConfigError as error:
        raise ConfigError(f"DNN {dnn.name!r} ({dnn.model}): {error}") from error
    return loads[size]


def _profiles(
    dnn: DNN[Any], size: Size, processors: Processors, progress: Progress
) -> list[NetworkProfile]:
    """Those of all stages at an input size: measured once, and then kept."""
    pipeline = open_pipeline(str(dnn.model), **{**dnn.options, "size": size})
    found = []
    for network in pipeline.networks:
        graph = load_graph(network.path, network.shapes or None)
        gpu = engine_for(processors.gpu, graph, dnn.precision, dnn.force_fallback)

        def tell(what: str, done: int, total: int) -> None:
            progress(f"trying {dnn.name} at {size[0]}x{size[1]}", done, total)

        profile = load_or_measure(
            graph,
            gpu,
            processors.cpu,
            mode=processors.profile_key,
            force_fallback=dnn.force_fallback,
            progress=tell,
        )
        found.append(profile)
    return found


def nearest_size(
    measure_ms: Callable[[Size], float], begin: Size, step: int, wanted_ms: float
) -> Size:
    """The size, among those tried, whose time is nearest to ``wanted_ms``.

    Tried are ``begin`` and then, until one is near enough, what a straight line points to: through
    the nearest times below and above, or through the two nearest, but not far from proportion, for
    sizes that are alike differ by chance. Sides are multiples of ``step``, in the ratio of
    ``begin`` as far as these allow. Raises ConfigError where the smallest size takes longer, or the
    largest is done sooner.
    """
    times: dict[Size, float] = {}
    size = begin
    while size not in times and len(times) < MOST_TRIES:
        times[size] = measure_ms(size)
        if abs(times[size] / wanted_ms - 1) <= WITHIN:
            return size
        size = _next(times, begin, step, wanted_ms)
    return min(times, key=lambda each: abs(times[each] - wanted_ms))


def _next(times: Mapping[Size, float], begin: Size, step: int, wanted_ms: float) -> Size:
    nearest = sorted(times, key=lambda each: abs(times[each] - wanted_ms))
    size, ms = nearest[0], times[nearest[0]]
    _check_reachable(size, ms, _shaped(begin, step, 0 if ms > wanted_ms else math.inf), wanted_ms)
    beyond = [each for each in nearest if (times[each] > wanted_ms) != (ms > wanted_ms)]
    proportion = ms / math.prod(size)
    slope = _slope(times, size, (beyond or nearest[1:] or [size])[0])
    if not beyond:
        slope = min(max(slope or proportion, 0.5 * proportion), 1.5 * proportion)
    return _shaped(begin, step, math.prod(size) + (wanted_ms - ms) / (slope or proportion))


def _slope(times: Mapping[Size, float], one: Size, other: Size) -> float | None:
    """ms a pixel; None where a larger picture took no longer: that is chance."""
    apart = math.prod(other) - math.prod(one)
    slope = (times[other] - times[one]) / apart if apart else 0.0
    return slope if slope > 0 else None


def _check_reachable(size: Size, ms: float, end: Size, wanted_ms: float) -> None:
    """``end``: the smallest size where ``size`` takes too long, else the largest. A time that
    grows with the pixels, from what every size takes, changes no more than in proportion."""
    bound_ms = ms * math.prod(end) / math.prod(size)
    too_long = ms > wanted_ms
    reached = (
        bound_ms <= wanted_ms * (1 + WITHIN) if too_long else bound_ms >= wanted_ms * (1 - WITHIN)
    )
    if reached:
        return
    kind, bound = ("smallest", "least") if too_long else ("largest", "most")
    known = f"{size[0]}x{size[1]} takes {ms:.1f} ms, and "
    said = f"{end[0]}x{end[1]}, the {kind}, "
    said += f"takes {ms:.1f} ms" if size == end else f"{bound_ms:.1f} at {bound}"
    raise ConfigError(
        f"no input size takes {wanted_ms:g} ms alone on this machine: "
        f"{'' if size == end else known}{said}; choose another alone_ms, or another model"
    )


def _shaped(begin: Size, step: int, pixels: float) -> Size:
    """The allowed size of about so many pixels."""
    least, most = (-(-SIDES[0] // step) * step, SIDES[1] // step * step)
    scale = math.sqrt(max(pixels, 0.0) / math.prod(begin))
    scale = min(max(scale, least / min(begin)), most / max(begin))
    choices = [{math.floor(side * scale / step), math.ceil(side * scale / step)} for side in begin]
    sizes = [(max(high, 1) * step, max(wide, 1) * step) for high, wide in product(*choices)]
    return min(sizes, key=lambda size: abs(math.prod(size) - scale**2 * math.prod(begin)))
