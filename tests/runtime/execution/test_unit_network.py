"""A network's states on a processor, and where a job is in it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from heimdall.engine.null import NullEngine, NullNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.runtime.execution.unit_network import UnitNetwork, Whole
from heimdall.vocabulary.processors import GPU
from tests.runtime.execution.test_executor import doubling_graph

INPUTS = {"x": np.full((1, 3), 3, np.float32)}


def unit_network(engine=None, forced=(), edges=None, alone=False, nodes=4):
    network = (engine or NullEngine()).load(doubling_graph(nodes), force_fallback=forced)
    return UnitNetwork(network, range(nodes + 1) if edges is None else edges, alone=alone)


def test_a_state_is_used_again_and_another_is_made_where_none_is_left():
    network = unit_network()
    first = network.take()
    assert network.take().state is not first.state
    first.free()
    assert network.take().state is first.state


def test_jobs_wait_for_the_only_state():
    network = unit_network(alone=True)
    first, found = network.take(), []
    waiting = threading.Thread(target=lambda: found.append(network.take()), daemon=True)
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    first.free()
    waiting.join(20)
    assert [each.state for each in found] == [first.state]


def test_units_are_ranges_of_ops():
    network = unit_network(edges=(0, 1, 4), forced=("Relu",))
    assert [network.ops(unit, unit + 1) for unit in (0, 1)] == [(0, 1), (1, 4)]
    assert (network.lacks(0, 1), network.lacks(0, 2)) == (0, 3)
    assert [network.supports(unit) for unit in (0, 1)] == [True, False]


@pytest.mark.parametrize("units", [2, 7, 100])
def test_a_network_may_be_run_whole_whatever_the_units_elsewhere_are(units):
    network = OnnxRuntimeEngine(processor=GPU).load(doubling_graph(4))
    where = UnitNetwork(network, Whole(len(network.ops))).take()
    where.write(INPUTS)
    assert not where.is_done
    on_ns, off_ns = where.run_parts([units], lambda part, ended: True)
    assert on_ns > 0 == off_ns
    assert where.unit == units
    assert where.is_done
    np.testing.assert_array_equal(network.read(where.state)["y"], [[6, 6, 6]])


def test_what_is_lost_is_computed_anew_before_a_unit():
    engine = NullEngine()
    network = unit_network(engine)
    where = network.take()
    where.write(INPUTS, 2)
    assert where.unit == 2
    where.run(4)  # refused by the engine, had the others not run
    assert where.is_done
    assert where.is_before(4)
    assert not where.is_before(0)


@pytest.mark.parametrize("refused", [None, 1, 2, 3, 5])
def test_parts_go_on_behind_fallback_ops_and_may_end_before_each(monkeypatch, refused):
    """Of nine ops the third and fourth are the CPU's. Parts but the first are asked for, those that
    follow others of their run while the one before them runs."""
    network, asked = unit_network(nodes=9, forced=["relu s1", "relu s2"]), []
    ends = [1, 2, 4, 5, 6, 7, 9]

    def go_on(part, ended):
        asked.append((part, ended))
        return part != refused

    def run_parts(network, state, start, ends, go_on):
        reached = start
        for part, end in enumerate(ends):
            if part >= 2 and not go_on(part):
                break
            NullNetwork.run(network, state, reached, end)
            reached = end
        return reached, 1

    monkeypatch.setattr(NullNetwork, "run_parts", run_parts)
    where = network.take()
    where.write(INPUTS)
    _, off_ns = where.run_parts(ends, go_on)
    possible = [(2, 2), (3, 3), (5, 4), (6, 5)]
    stops = {part: ends[part - 1] for part, _ in possible}
    assert where.unit == stops.get(refused, 9)
    assert asked == [each for each in possible if refused not in stops or each[0] <= refused]
    assert (off_ns > 0) is (where.unit > 2)


def test_parts_end_where_the_engine_stops(monkeypatch):
    network = unit_network(edges=(0, 1, 3, 4))
    monkeypatch.setattr(
        network.network, "run_parts", lambda state, start, ends, go_on: (ends[1], 5)
    )
    where = network.take()
    assert where.run_parts([1, 2, 3], lambda part, ended: False) == (5, 0)
    assert where.unit == 2
