"""Everything simulated, for a second of virtual time each."""

from __future__ import annotations

import pytest

from benchmarks.paper.derived import derived
from benchmarks.paper.simulated import simulated


def quiet(what, done, total):
    """No progress."""


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    found = simulated(tmp_path_factory.mktemp("traces"), 1.0, quiet)
    return {**found, "derived": derived(found), "accuracy": {}}
