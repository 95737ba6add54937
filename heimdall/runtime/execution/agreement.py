"""Whether several processors mean the same by the tensors that they hand over.

An engine's compiler may give another meaning to a name than the graph does: that is tried when a
model is registered, rather than believed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from heimdall.engine.network import State
from heimdall.graph.graph import Graph
from heimdall.graph.samples import sample_inputs
from heimdall.runtime.execution.unit_network import UnitNetwork

LARGEST_ERROR = 1e-2  # of a tensor's largest value: another meaning differs by far more


def disagreeing(
    graph: Graph, networks: Sequence[UnitNetwork], units: int
) -> tuple[set[int], tuple[int, ...]]:
    """The units before which a job comes out differently when it changes processors, and what it
    costs in ns to change before each unit: 0 before the first.
    """
    wrong: set[int] = set()
    cut_ns = [0] * units
    for index, first in enumerate(networks):
        for other in networks[index + 1 :]:
            for taker, giver in ((first, other), (other, first)):
                _try(graph, taker, giver, wrong, cut_ns)
    return wrong, tuple(cut_ns)


def _try(
    graph: Graph, taker: UnitNetwork, giver: UnitNetwork, wrong: set[int], cut_ns: list[int]
) -> None:
    """Run both, ``taker`` each unit from what ``giver`` has before it; compare after each."""
    inputs, units = sample_inputs(graph), len(cut_ns)
    state, dirty = giver.network.new_state(), taker.network.new_state()
    taker.network.write(dirty, sample_inputs(graph, seed=1))  # what is left of another job
    taker.run(dirty, 0, units)
    giver.network.write(state, inputs)
    for unit in range(units):
        if unit:
            began_ns = time.perf_counter_ns()
            given = giver.network.hand_over(state)
            taker.network.take_over(dirty, taker.edges[unit], inputs, given)
            took_ns = time.perf_counter_ns() - began_ns  # the least: others may have disturbed it
            cut_ns[unit] = min(cut_ns[unit] or took_ns, took_ns)
        else:
            taker.network.write(dirty, inputs)
        for each, its in ((taker, dirty), (giver, state)):
            each.run(its, unit, unit + 1)
        found, wanted = (
            _made(*each, unit + 1 == units) for each in ((taker, dirty), (giver, state))
        )
        if not _same(found, wanted):
            wrong |= {unit, unit + 1} & set(range(1, units))


def _made(unit_network: UnitNetwork, state: State, last: bool) -> Mapping[str, np.ndarray]:
    return unit_network.network.read(state) if last else unit_network.network.hand_over(state)


def _same(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> bool:
    for name, value in wanted.items():
        got = found[name]
        if got.shape != value.shape or got.dtype != value.dtype:
            return False
        scale = max(float(np.abs(value.astype(np.float64)).max(initial=0.0)), 1e-6)
        difference = np.abs(got.astype(np.float64) - value.astype(np.float64))
        if not difference.max(initial=0.0) <= LARGEST_ERROR * scale:
            return False
    return True
