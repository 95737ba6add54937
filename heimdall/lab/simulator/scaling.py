"""RT-mDL's offline search (SenSys '21), as Pantheon's paper has it: one priority and one scaled
network for each model, for good.

There, an evolutionary search asks a predictor how many deadlines would be missed. Here, with few
models, the search climbs: from whole networks, and from the smallest, always the one step to a next
smaller or larger network, or to the other order of two neighbours, that raises the accuracy most (a
missed deadline counts as none), until no step does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

from heimdall.lab.policies.fixed_priority import RtMdl
from heimdall.lab.policies.real_time import LOW
from heimdall.lab.simulator.schedulability import Task
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.plans import DnnPlan, Exit


@dataclass(frozen=True)
class Strategy:
    """``order``: models, that of the highest priority first; ``smaller``: by model, how many steps
    below the whole network; ``variants``: by model, all of its variants."""

    order: tuple[str, ...]
    smaller: Mapping[str, int]
    variants: Mapping[str, tuple[Exit, ...]]

    def chosen(self, name: str) -> Exit | None:
        """A model's variant; None where it has but one."""
        return self.variants[name][-1 - self.smaller[name]] if name in self.smaller else None

    def policy(self) -> RtMdl:
        chosen = {name: each.name for name in self.order if (each := self.chosen(name))}
        return RtMdl({name: rank for rank, name in enumerate(self.order)}, chosen)

    def steps(self) -> Iterator[Strategy]:
        """The strategies that differ in one place."""
        for index in range(len(self.order) - 1):
            first, second = self.order[index : index + 2]
            swapped = (*self.order[:index], second, first, *self.order[index + 2 :])
            yield replace(self, order=swapped)
        for name, smaller in self.smaller.items():
            for other in (smaller + 1, smaller - 1):
                if 0 <= other < len(self.variants[name]):
                    yield replace(self, smaller={**self.smaller, name: other})


Evaluate = Callable[[Strategy], float]  # the accuracy that a strategy keeps
Predict = Callable[[Sequence[Task]], float]  # the share of deadlines that tasks miss


def search(plans: Mapping[str, DnnPlan], evaluate: Evaluate) -> Strategy:
    """The best that it finds for these models, by their names; those of low priority are below all
    others, whatever is chosen."""
    urgent = {name: plan for name, plan in plans.items() if plan.priority != LOW}
    variants = {name: plan.stages[0].exits for name, plan in urgent.items()}
    most = {name: len(each) - 1 for name, each in variants.items() if each}
    order = tuple(sorted(urgent, key=lambda name: urgent[name].constraint_ns))
    starts = [Strategy(order, each, variants) for each in (dict.fromkeys(most, 0), most)]
    known: dict[object, float] = {}  # two neighbours have neighbours in common

    def judged(strategy: Strategy) -> float:
        key = strategy.order, tuple(strategy.smaller.items())
        if key not in known:
            known[key] = evaluate(strategy)
        return known[key]

    return max((_climb(each, judged) for each in starts), key=lambda top: top[0])[1]


def _climb(strategy: Strategy, evaluate: Evaluate) -> tuple[float, Strategy]:
    """A strategy that no step from makes better, and its accuracy."""
    accuracy = evaluate(strategy)
    while found := [(evaluate(each), each) for each in strategy.steps()]:
        highest, better = max(found, key=lambda pair: pair[0])
        if highest <= accuracy:
            break
        accuracy, strategy = highest, better
    return accuracy, strategy


def by_misses(
    plans: Mapping[str, DnnPlan], rates_hz: Mapping[str, float], predict: Predict
) -> Evaluate:
    """Judges strategies by what is known beforehand: how long each variant takes alone, how often
    its model is asked for, and what a predictor makes of that. Best effort does not count."""
    alone = {name: _Alone(plan) for name, plan in plans.items()}

    def evaluate(strategy: Strategy) -> float:
        tasks, kept = [], []
        for name in strategy.order:
            chosen = strategy.chosen(name)
            if rates_hz[name]:
                period_ns = 1e9 / rates_hz[name]
                takes_ns = alone[name].takes_ns(chosen)
                tasks.append(Task(takes_ns, period_ns, plans[name].constraint_ns))
            whole = strategy.variants[name][-1].accuracy if chosen else 0.0
            kept.append(chosen.accuracy / whole if chosen and whole else 1.0)
        return (1 - predict(tasks)) * fmean(kept) if kept else 0.0

    return evaluate


class _Alone:
    """What a model's variants take on the first processor that runs any of it."""

    def __init__(self, plan: DnnPlan) -> None:
        self._stage = plan.stages[0]

    @cached_property
    def _costs(self) -> StageCosts:
        return StageCosts(self._stage)

    def takes_ns(self, variant: Exit | None) -> int:
        processor = self._stage.on[0][0]
        ranges = variant.ranges if variant else ((0, self._costs.ops),)
        return sum(self._costs.on_ns(processor, *each) or 0 for each in ranges)
