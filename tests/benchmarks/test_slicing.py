"""What a preempted network keeps (Fig. 6 of Pantheon's paper), and the networks it is told of."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.architectures import model_path
from benchmarks.slicing import HEAVY, by_work, mean_mb, merged, slices, uniform
from heimdall.graph.cuts import held
from heimdall.graph.graph import load_graph


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("networks")
    return lambda name: load_graph(model_path(name, folder))


def test_googlenet_keeps_less_than_half_at_critical_nodes(networks):
    graph = networks("GoogLeNet")
    cuts = merged(graph, slices(graph))
    assert mean_mb(graph, cuts) <= 0.5 * mean_mb(graph, by_work(graph, len(cuts) + 1))
    assert mean_mb(graph, cuts) < 0.75 * mean_mb(graph, uniform(graph, len(cuts) + 1))


def test_slices_begin_where_one_tensor_is_alive_and_merged_ones_have_a_heavy_layer(networks):
    graph = networks("MobileNetV2")
    states = held(graph, [[node.name] for node in graph.nodes])
    cuts = slices(graph)
    assert all(states[cut].tensors == 1 for cut in cuts)
    kept = merged(graph, cuts)
    assert set(kept) < set(cuts)
    for start, end in pairwise((0, *kept, len(graph.nodes))):
        assert HEAVY & {node.op_type for node in graph.nodes[start:end]}


@pytest.mark.parametrize("name", ["SSDLite", "MobileNetV2"])
def test_the_same_number_of_chunks_is_compared(networks, name):
    graph = networks(name)
    chunks = len(merged(graph, slices(graph))) + 1
    assert len(uniform(graph, chunks)) == len(by_work(graph, chunks)) == chunks - 1


@pytest.mark.parametrize(("name", "megabytes"), [("MobileNetV2", 8.9), ("SSDLite", 12.4)])
def test_the_networks_weigh_what_their_papers_say(networks, name, megabytes):
    """With few classes: MobileNetV2 has 2.2 million weights, SSDLite on it 3.1 million."""
    constants = networks(name).constants.values()
    assert sum(each.nbytes for each in constants) / 1e6 == pytest.approx(megabytes, abs=0.1)
