"""RT-mDL's offline search (SenSys '21), as Pantheon's paper has it: one priority and one scaled
network for each model, for good.

There, an evolutionary search asks a random forest how many deadlines would be missed. Here, the
simulator itself is asked, and the search climbs: from whole networks, and from the smallest, always
the one step to a next smaller or larger network, or to the other rule of priorities, that raises
the accuracy most (a missed deadline counts as none), until no step does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.fixed_priority import RtMdl
from heimdall.vocabulary.plans import DnnPlan

Evaluate = Callable[[RtMdl], float]  # the accuracy of a short run


@dataclass(frozen=True)
class _Choice:
    """``variants``: by model, how many steps below the whole network; ``shortest``: its priority
    is its length rather than its SLO."""

    variants: tuple[tuple[str, int], ...]
    shortest: bool

    def policy(self, plans: Mapping[str, DnnPlan]) -> RtMdl:
        names = dict(self.variants)
        exits = {name: plans[name].stages[0].exits for name in names}
        chosen = {name: exits[name][-1 - steps].name for name, steps in names.items()}
        ranks = {}
        for name, plan in plans.items():
            own_ns = StageCosts(plan.stages[0]).left_on(_processor(plan), 0, chosen.get(name, ""))
            ranks[name] = (own_ns or 0) if self.shortest else plan.constraint_ns
        return RtMdl(ranks, chosen)

    def steps(self, plans: Mapping[str, DnnPlan]) -> Iterator[_Choice]:
        """Those that differ in one place."""
        yield replace(self, shortest=not self.shortest)
        for name, steps in self.variants:
            for other in (steps + 1, steps - 1):
                if 0 <= other < len(plans[name].stages[0].exits):
                    changed = {**dict(self.variants), name: other}
                    yield replace(self, variants=tuple(changed.items()))


def search(plans: Mapping[str, DnnPlan], evaluate: Evaluate) -> RtMdl:
    """The policy that it finds for these models, by their names."""
    most = {name: len(exits) - 1 for name, plan in plans.items() if (exits := plan.stages[0].exits)}
    whole, smallest = dict.fromkeys(most, 0), most
    tops = [
        _climb(_Choice(tuple(each.items()), shortest=False), plans, evaluate)
        for each in (whole, smallest)
    ]
    return max(tops, key=lambda top: top[0])[1].policy(plans)


def _climb(
    choice: _Choice, plans: Mapping[str, DnnPlan], evaluate: Evaluate
) -> tuple[float, _Choice]:
    """A choice that no step from makes better, and its accuracy."""
    accuracy = evaluate(choice.policy(plans))
    while True:
        found = [(evaluate(each.policy(plans)), each) for each in choice.steps(plans)]
        highest, better = max(found, key=lambda pair: pair[0])
        if highest <= accuracy:
            return accuracy, choice
        accuracy, choice = highest, better


def _processor(plan: DnnPlan) -> str:
    """The first that runs any of it."""
    return plan.stages[0].on[0][0]
