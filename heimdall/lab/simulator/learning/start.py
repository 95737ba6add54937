"""A plan to begin learning with: by local search, in a model of a run instead of in runs.

In the long run a combined block runs as often as the member that is asked for most, and takes its
stages' time. The sum over all is the share of time that the plan needs: the lower the better.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from heimdall.lab.policies.grouped import Member
from heimdall.lab.policies.top import Task

Takes = Callable[[tuple[Member, ...]], float]  # what a combined block takes, in s


def searched(
    task: Task, rates_hz: Mapping[str, float], takes: Takes, draw: random.Random, tries: int = 2000
) -> list[list[Member]]:
    """Combined blocks of at most ``task.most_blocks``, found by moving one block at a time, or
    exchanging two, as long as that takes less."""
    parts = [
        [(model, block)]
        for model, blocks in zip(task.models, task.blocks, strict=True)
        for block in range(blocks)
    ]
    known: dict[tuple[Member, ...], float] = {(): 0.0}

    def share(part: list[Member]) -> float:
        key = tuple(sorted(part))
        if key not in known:
            known[key] = max(rates_hz[model] for model, _ in key) * takes(key)
        return known[key]

    for _ in range(tries if len(parts) > 1 else 0):
        one, other = draw.sample(parts, 2)
        moved = draw.choice(one)
        back = draw.choice([*other, None]) if len(other) < task.most_blocks else draw.choice(other)
        new_one = [each for each in one if each != moved] + ([back] if back else [])
        new_other = [each for each in other if each != back] + [moved]
        if share(new_one) + share(new_other) < share(one) + share(other):
            one[:], other[:] = new_one, new_other
            parts = [part for part in parts if part]
            if len(parts) == 1:
                break
    return parts
