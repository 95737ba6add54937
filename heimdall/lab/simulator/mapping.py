"""Which processor each model is given for good (Band, MobiSys '22, section 6.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from math import prod

from heimdall.lab.bench.scenario import Scenario

_MOST_TRIED = 100_000


def numbers_a_round(scenario: Scenario) -> dict[str, float]:
    """Of each model in a closed loop, how many requests a round of it has on average."""
    found: dict[str, float] = {}
    for name in scenario.models:
        if scenario.loop_of(name) is None:
            continue
        chain = [name]
        while (before := scenario.models[chain[-1]].after) is not None:
            chain.append(before)
        means = (sum(each) / len(each) for each in (scenario.models[one].numbers for one in chain))
        found[name] = prod(means)
    return found


def balanced(
    times: Mapping[str, Mapping[str, float]],
    numbers: Mapping[str, float],
    lanes: Mapping[str, int],
) -> dict[str, str]:
    """The mapping under which the processor with the most to do has least: of each model a
    processor. ``times``: by model and processor, what one request takes; ``numbers``: how many
    requests of each model; ``lanes``: how many a processor runs at once, each of another model.

    All mappings are tried where they are few; else the model with the most work chooses first.
    """
    models = sorted(numbers, key=lambda name: -numbers[name] * min(times[name].values()))
    options = [list(times[name]) for name in models]

    def loads(chosen: Iterable[str]) -> list[float]:
        work: dict[str, list[float]] = {processor: [] for processor in lanes}
        for name, processor in zip(models, chosen, strict=False):
            work[processor].append(numbers[name] * times[name][processor])
        longest = (
            max(max(each, default=0.0), sum(each) / lanes[processor])
            for processor, each in work.items()
        )
        return sorted(longest, reverse=True)

    if prod(map(len, options)) <= _MOST_TRIED:
        return dict(zip(models, min(product(*options), key=loads), strict=True))
    chosen: tuple[str, ...] = ()
    for each in options:
        chosen = min(((*chosen, processor) for processor in each), key=loads)
    return dict(zip(models, chosen, strict=True))
