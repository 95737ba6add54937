"""When more is asked for than there is time: should the deadline check decide, or the policy?

Both are simulated on a phone whose GPU is so many times slower than it is, 16 seeds each:

    python -m benchmarks.overload

``as it is``: what is at risk of missing its deadline runs first, the earliest first (section 6.4 of
the Heimdall paper). ``feasible``: only what can still be in time counts as at risk, so that the
policy decides of the rest. ``among``: the policy chooses among those at risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import click
import numpy as np

from heimdall.lab.simulator.simulate import simulate
from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.deadline import at_risk, earliest_end_ns
from heimdall.schedulers.greedy import Greedy
from heimdall.schedulers.max_min import MaxMin
from heimdall.schedulers.max_total import MaxTotal
from heimdall.vocabulary.reasons import AT_RISK


class _Feasible(Greedy):
    def _first(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> tuple[JobView, str]:
        can = [job for job in jobs if earliest_end_ns(job, view, now_ns) <= job.deadline_ns]
        urgent = at_risk(view, now_ns, can)
        return (urgent, AT_RISK) if urgent else (self._preferred(view, now_ns, jobs), self.reason)

    def _preferred(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> JobView:
        return jobs[0] if len(jobs) == 1 else self.prefer(view, now_ns, jobs)


class _Among(_Feasible):
    def _first(self, view: View, now_ns: int, jobs: Sequence[JobView]) -> tuple[JobView, str]:
        due = [job for job in jobs if at_risk(view, now_ns, [job]) is not None]
        return self._preferred(view, now_ns, due or jobs), self.reason


class FeasibleTotal(_Feasible, MaxTotal):
    name = "feasible-total"


class FeasibleMin(_Feasible, MaxMin):
    name = "feasible-min"


class AmongTotal(_Among, MaxTotal):
    name = "among-total"


class AmongMin(_Among, MaxMin):
    name = "among-min"


SYSTEMS = {
    "max-total, as it is": "max-total",
    "max-total, feasible": f"{__file__}:FeasibleTotal",
    "max-total, among": f"{__file__}:AmongTotal",
    "max-min, as it is": "max-min",
    "max-min, feasible": f"{__file__}:FeasibleMin",
    "max-min, among": f"{__file__}:AmongMin",
}
SCENARIOS = ("shopping", "emoji", "workspace")
SLOWER = (1.0, 1.3, 1.8)
_HALF_95 = 2.131 / 4  # of the interval of a mean of 16, in standard deviations


def one(point: tuple[str, str, float, str, float, int]) -> dict[str, Any]:
    """One run: why chunks ran, and how the DNNs fared."""
    scenario, device, slower, system, seconds, seed = point
    hot = {"throttle": (0.0, slower)} if slower > 1 else {}
    run = simulate(scenario, device, system, seconds=seconds, seed=seed, variations=hot)
    chosen, dnns = run["chosen"], run["dnns"].values()
    settled = chosen["reasons"].get(AT_RISK, 0) / max(chosen["chunks"], 1)
    utilities = [each["utility"] for each in dnns if each["utility"] is not None]
    return {
        "at risk": settled,
        "utility": float(np.mean(utilities)),
        "missed": float(np.mean([each["miss_rate"] or 0.0 for each in dnns])),
        "urgent": run["dnns"].get("style", {}).get("latency_ms", {}).get("max"),
    }


@click.command()
@click.option("--device", default="lg-v50", show_default=True)
@click.option("--seconds", default=20.0, show_default=True)
@click.option("--seeds", default=16, show_default=True)
def main(device: str, seconds: float, seeds: int) -> None:
    """Print a table a scenario: mean utility of the DNNs, half of its 95% interval."""
    points = list(product(SCENARIOS, SLOWER, SYSTEMS))
    runs = [
        (scenario, device, slower, SYSTEMS[system], seconds, seed)
        for scenario, slower, system in points
        for seed in range(seeds)
    ]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(one, runs, chunksize=4))
    print("| scenario | GPU slower by | system | by deadline | utility | missed | longest, style |")
    print("|---|---|---|---|---|---|---|")
    for at, (scenario, slower, system) in enumerate(points):
        few = found[at * seeds : (at + 1) * seeds]
        risk, utility, missed = (
            [each[key] for each in few] for key in ("at risk", "utility", "missed")
        )
        urgent = [each["urgent"] for each in few if each["urgent"] is not None]
        spread = np.std(utility, ddof=1) * _HALF_95 if seeds > 1 else 0.0
        print(
            f"| {scenario} | {slower:g} | {system} | {np.mean(risk):.0%} "
            f"| {np.mean(utility):.2f} ±{spread:.2f} | {np.mean(missed):.0%} "
            f"| {f'{max(urgent):.0f} ms' if urgent else ''} |"
        )


if __name__ == "__main__":
    main()
