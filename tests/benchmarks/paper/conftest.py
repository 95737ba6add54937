"""Everything simulated, for a second of virtual time each, with two seeds."""

from __future__ import annotations

import pytest

from benchmarks.paper import simulated
from benchmarks.paper.kept import Kept, perform
from benchmarks.paper.runs import all_runs

SEEDS, SECONDS = 2, 1.0


def quiet(what, done, total):
    """No progress."""


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    found = Kept(tmp_path_factory.mktemp("results") / "simulated.jsonl", "now")
    tasks = [point.task for point in simulated.points(all_runs(), SEEDS, SECONDS)]
    perform(tasks, found, 0, "simulated", quiet)
    return found


@pytest.fixture(scope="session")
def results(kept):
    return simulated.collected(all_runs(), kept, SEEDS, SECONDS)
