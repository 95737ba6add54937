"""The tables of docs/laboratory/top.md: ``python benchmarks/top.py [--seeds N] [--seconds S]``.

Throughput and queues of TOP and what it is compared with in its scenarios, then how long combined
blocks take to be cut into stages, and an actor to answer. With ``--trainings N``, instead, how well
blocks are cut that training has not seen (PyTorch, the extra ``learn``). Prints Markdown.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.serving import prepare_requests
from heimdall.lab.simulator.together.actors import ACTORS, OnnxActor, OnnxStager, actor_path
from heimdall.lab.simulator.together.concurrent_stages import (
    Block,
    Combined,
    best_cut,
    cut,
    most_saving,
)
from heimdall.lab.simulator.together.device import load_together
from heimdall.lab.simulator.together.networks import ARCHITECTURES, network
from heimdall.lab.simulator.together.policies import block_of

SCENARIOS = ("top-mixed", "top-240", "top-inception-v3", "top-resnet-50", "top-squeezenet")
SYSTEMS = ("top", "static-plan", "static-plan-free", "sequential")
SQUEEZENET = "SqueezeNet"
_FIRE = 4  # ops of a Fire module
_DRAWN = 10  # combined blocks of each size


def throughput(seeds: int, seconds: float | None) -> Iterator[str]:
    """Requests finished a second, how full the GPU was, and the variance of queues in the end."""
    yield "| scenario | system | finished a second | `top` over it | filled | variance, last |"
    yield "|---|---|---|---|---|---|"
    for name in SCENARIOS:
        best = None
        for system in SYSTEMS:
            experiment = prepare_requests(
                load_scenario(name), None, parse_system(system), seconds=seconds
            )
            runs = [experiment.run(seed) for seed in range(seeds)]
            rate = statistics.fmean(run["throughput_hz"] for run in runs)
            best = best or rate
            filled = statistics.fmean(run["together"]["occupancy"] for run in runs)
            variances = [run["together"]["queue_variance"]["last"] for run in runs]
            yield (
                f"| {name} | `{system}` | {rate:.0f} ({_extremes(runs)}) | {best / rate:.2f} x | "
                f"{filled:.0%} | {min(variances):.0f} to {max(variances):.0f} |"
            )


def _extremes(runs: Sequence[dict[str, Any]]) -> str:
    rates = [run["throughput_hz"] for run in runs]
    return f"{min(rates):.0f} to {max(rates):.0f}"


def cuts() -> Iterator[str]:
    """GPG against dynamic programming, in combined blocks of 1 to 4 of SqueezeNet's blocks, drawn
    at random: of longer ones dynamic programming takes minutes to hours."""
    blocks = [block for block in _all_blocks() if _is_fire(block)]
    stager = OnnxStager(ACTORS / "stages-top-a100.onnx")
    draw = random.Random(0)
    yield "| blocks | dynamic programming, s | GPG, s | sooner | latency over the best | greedy |"
    yield "|---|---|---|---|---|---|"
    for size in range(1, 5):
        rows: list[tuple[float, float, float, float]] = []
        for _ in range(_DRAWN):
            members = draw.sample(blocks, size)
            best, searched_s = _timed(_search, members)
            (_, ns), cut_s = _timed(_cut, members, stager)
            greedy_ns = cut(Combined(members), most_saving)[1]
            rows.append((searched_s, cut_s, ns / best[1], greedy_ns / best[1]))
        searched, gpg, over, greedy = zip(*rows, strict=True)
        yield (
            f"| {size} | {statistics.median(searched):.3f} | {statistics.median(gpg):.4f} | "
            f"{statistics.median(searched) / statistics.median(gpg):.0f} x | "
            f"{statistics.fmean(over):.2f} ({min(over):.2f} to {max(over):.2f}) | "
            f"{statistics.fmean(greedy):.2f} |"
        )


def held_out(trainings: int) -> Iterator[str]:
    """How GPG cuts four Fire modules, and some of them, when it has been trained with all other
    blocks of the three networks. Which four, the seed of the training says."""
    from heimdall.lab.simulator.learning.gpg import GpgTraining
    from heimdall.lab.simulator.learning.training import STAGE_STEPS

    yield "| seed | blocks | combined blocks | GPG over the best | greedy |"
    yield "|---|---|---|---|---|"
    blocks = _all_blocks()
    for seed in range(trainings):
        held = random.Random(seed).sample([each for each in blocks if _is_fire(each)], 4)
        seen = [each for each in blocks if each not in held]
        training = GpgTraining(seen, 4, seed, STAGE_STEPS)
        for _ in training.train():
            pass
        for size in range(1, 5):
            over, greedy = list[float](), list[float]()
            for members in combinations(held, size):
                combined = Combined(members)
                best_ns = _search(members)[1]
                over.append(training.cut(combined)[1] / best_ns)
                greedy.append(cut(combined, most_saving)[1] / best_ns)
            yield (
                f"| {seed} | {size} | {len(over)} | {statistics.fmean(over):.3f} "
                f"({min(over):.3f} to {max(over):.3f}) | {statistics.fmean(greedy):.3f} |"
            )


def _all_blocks() -> list[Block]:
    """Of the three networks on the A100."""
    device = load_together("top-a100")
    return [
        block_of(device, name, index)
        for name in ARCHITECTURES
        for index in range(len(network(name).blocks))
    ]


def _is_fire(block: Block) -> bool:
    return block.network.name == SQUEEZENET and len(block.ops) == _FIRE


def _search(members: Sequence[Any]) -> Any:
    return best_cut(Combined(_fresh(members)))


def _cut(members: Sequence[Any], stager: OnnxStager) -> Any:
    return stager.cut(Combined(_fresh(members)))


def _fresh(members: Sequence[Any]) -> list[Any]:
    """The same blocks, of which nothing has been looked at yet."""
    return [each.fresh() for each in members]


def _timed(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    began = time.process_time()
    return work(*given), time.process_time() - began


def answers() -> Iterator[str]:
    """How long an actor takes to answer."""
    yield "| actor | answers in, us (p50, p99) |"
    yield "|---|---|"
    for name in SCENARIOS:
        actor = OnnxActor(actor_path(name))
        state = [0.5] * actor.task.state_size
        taken = []
        for _ in range(2000):
            began = time.perf_counter_ns()
            actor(state)
            taken.append((time.perf_counter_ns() - began) / 1e3)
        taken.sort()
        yield f"| {name} | {taken[1000]:.0f}, {taken[1980]:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, help="as the scenarios say by default")
    parser.add_argument("--trainings", type=int, help="how many, each of one or two minutes")
    arguments = parser.parse_args()
    tables = [answers(), cuts(), throughput(arguments.seeds, arguments.seconds)]
    for table in tables if arguments.trainings is None else [held_out(arguments.trainings)]:
        for line in table:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
