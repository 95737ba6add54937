"""Models that sessions share are ready when they are there."""

from __future__ import annotations

from heimdall.engine.network import State
from heimdall.engine.null import NullEngine, NullNetwork
from heimdall.graph.graph import graph_from_model
from heimdall.runtime.execution.model_loading import ModelCache
from heimdall.vocabulary.processors import CPU, GPU
from tests.networks import doublings


class Tried(NullNetwork):
    """Tried when its first state is asked for, as OpenCL's are."""

    tried = 0

    def new_state(self) -> State:
        self.tried += 1
        return super().new_state()


class Trying(NullEngine):
    def load(self, graph, **options):
        loaded = super().load(graph, **options)
        self.network = Tried(self, graph, loaded.ops)
        return self.network


def test_no_request_waits_for_a_network_to_be_tried():
    gpu = Trying()
    cache = ModelCache({GPU: gpu}, NullEngine(CPU), None)
    networks = cache.take(graph_from_model(doublings(3, 4)))
    tried = gpu.network.tried
    assert tried > 0
    with networks.unit_network(0, GPU).taken():
        assert gpu.network.tried == tried
    cache.put_back(networks)
