"""How long a decision about requests takes: ``python benchmarks/queueing.py [--jobs N]``.

Keeps so many requests in flight on a device of profiles/, on a virtual clock: whenever one is
answered, the next of its model comes. Times every ``receive`` that asked the policy, from event to
actions, and prints microseconds, for every policy that keeps a queue. Those of networks with early
exits run on a device that has such, against deadlines that need them: 70% of what all requests in
flight take.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import cycle, islice

from heimdall.lab.bench.systems import parse_system, queue_names
from heimdall.lab.bench.traffic import Arrival
from heimdall.lab.simulator.clients import Answered, SimulatedModel
from heimdall.lab.simulator.requests import RequestSimulation
from heimdall.lab.simulator.several import SeveralDevice, load_several
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.events import Action, Event
from heimdall.vocabulary.plans import DnnPlan

SLO_NS = 500_000_000
_PRESSED = 0.7


def decisions_us(system: str, device: SeveralDevice, jobs: int, answers: int) -> list[float]:
    """Time of each deciding call until so many requests are answered."""
    row = parse_system(system).queueing
    assert row is not None
    counts = dict.fromkeys(device.networks, 0)
    for name in islice(cycle(device.networks), jobs):
        counts[name] += 1
    stages = {
        name: device.stage(name, row.partition, row.silent, variants=row.variants)
        for name in counts
    }
    slo_ns = SLO_NS
    if row.variants:
        lone = {name: StageCosts(stage).lone_ns for name, stage in stages.items()}
        slo_ns = int(_PRESSED * sum(lone[name] * count for name, count in counts.items()))
    models = [
        SimulatedModel(
            DnnPlan(name, (stages[name],), slo_ns, continuous=False, queued=True), [0] * count
        )
        for name, count in counts.items()
        if count
    ]

    def follow(answered: Answered, now_ns: int) -> list[Arrival]:
        going = len(run.answered) <= answers - jobs
        return [Arrival(answered.model, now_ns)] if going else []

    run = RequestSimulation(
        models, device.list(), row.scheduler, noise=device.noise(), follow=follow
    )
    coordinator, taken = run.coordinator, []
    receive = coordinator.receive

    def timed(event: Event, now_ns: int) -> list[Action]:
        before = coordinator.decisions
        began = time.perf_counter_ns()
        actions = receive(event, now_ns)
        ended = time.perf_counter_ns()
        if coordinator.decisions != before:
            taken.append((ended - began) / 1000)
        return actions

    coordinator.receive = timed  # type: ignore[method-assign]
    run.run()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=8, help="requests in flight")
    parser.add_argument("--answers", type=int, default=2000, help="when it ends")
    parser.add_argument("--device", default="jetson-nano", help="a profile with processors")
    parser.add_argument("--exits-device", default="xavier-nx", help="one with early exits")
    arguments = parser.parse_args()
    plain, with_exits = load_several(arguments.device), load_several(arguments.exits_device)
    print(f"{'system':<26}{'calls':>8}{'p50 us':>9}{'p99 us':>9}")
    for system in queue_names():
        row = parse_system(system).queueing
        if row is not None and row.together:  # its plans are of one device and its models
            continue
        device = with_exits if row and (row.variants or row.partition == "critical") else plain
        taken = decisions_us(system, device, arguments.jobs, arguments.answers)
        p50, p99 = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
        print(f"{system:<26}{len(taken):>8}{p50:>9.1f}{p99:>9.1f}")


if __name__ == "__main__":
    main()
