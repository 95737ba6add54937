"""Where exits may be: behind chunks, cut at critical nodes, all but the last two."""

import pytest

from heimdall.errors import ConfigError, ModelError
from heimdall.lab.exits.exit_points import check_classifier, places
from tests.engine.networks_with_exits import with_exits
from tests.lab.exits.networks import small


def test_exits_are_behind_residual_blocks_never_inside_one():
    found = places(small(blocks=4))
    assert [each.tensor for each in found] == ["stem/relu", "b0", "b1", "b2"]


def test_light_nodes_belong_to_the_chunk_before_them():
    graph = small(blocks=2)
    names = [node.name for node in graph.nodes]
    for place in places(graph):
        assert names[place.nodes - 1] == place.tensor
        assert graph.nodes[place.nodes].op_type == "Conv"


def test_fewer_exits_are_spread_over_the_network():
    graph = small(blocks=8)
    assert len(places(graph)) == 8
    assert [each.tensor for each in places(graph, 1)] == ["b3"]
    assert [each.tensor for each in places(graph, 3)] == ["b1", "b3", "b5"]
    assert places(graph, 8) == places(graph)


def test_more_exits_than_places_are_refused():
    with pytest.raises(ConfigError, match=r"places for 2 exits \(stem/relu, b0\), not for 3"):
        places(small(blocks=2), 3)


def test_a_network_that_is_too_short_has_no_place():
    with pytest.raises(ModelError, match="no place for an exit"):
        places(small(blocks=0))


def test_a_classifier_tells_how_many_classes_there_are():
    assert check_classifier(small(classes=7)) == 7


@pytest.mark.parametrize("graph", [small(classes=1), with_exits()], ids=["one class", "exits"])
def test_what_is_no_plain_classifier_is_refused(graph):
    with pytest.raises(ModelError, match=r"no classifier|early exits already"):
        check_classifier(graph)
