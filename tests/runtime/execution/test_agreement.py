"""Two networks that do not mean the same by a tensor are found out."""

import pytest
from onnx import helper

from heimdall.engine import open_engine
from heimdall.errors import DeviceError
from heimdall.graph.graph import load_graph
from heimdall.runtime.execution.agreement import disagreeing
from heimdall.runtime.execution.model_loading import serve
from heimdall.runtime.execution.unit_network import UnitNetwork
from heimdall.vocabulary.processors import CPU, GPU
from tests.networks import small_graph

CUTS = [["a"], ["b"], ["c"]]


@pytest.fixture
def graph():
    """y = relu(sigmoid(...)): four nodes, one tensor alive between any two."""
    names = ["x", "a", "b", "c", "y"]
    kinds = ["Sigmoid", "Exp", "Relu", "Neg"]
    nodes = [
        helper.make_node(kind, [names[i]], [names[i + 1]], kind) for i, kind in enumerate(kinds)
    ]
    return small_graph(nodes, {"x": [1, 3]}, {"y": [1, 3]})


def unit_network(graph):
    network = open_engine("onnxruntime").load_segments(graph, CUTS)
    return UnitNetwork(network, range(5))


def test_networks_that_agree_may_hand_over_anywhere(graph):
    wrong, cut_ns = disagreeing(graph, [unit_network(graph), unit_network(graph)], 4)
    assert wrong == set()
    assert cut_ns[0] == 0
    assert min(cut_ns[1:]) > 0


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("change", [lambda b: b + 1, lambda b: b[..., ::-1]])
def test_what_another_meaning_of_a_tensor_spoils_is_no_cut(graph, which, change, monkeypatch):
    both = [unit_network(graph), unit_network(graph)]
    network = both[which].network
    hand_over = network.hand_over

    def differently(state):
        tensors = hand_over(state)
        return {"b": change(tensors["b"])} if "b" in tensors else tensors

    monkeypatch.setattr(network, "hand_over", differently)
    wrong, _ = disagreeing(graph, both, 4)
    assert 2 in wrong


@pytest.mark.parametrize("model", ["seg_selfie_256.onnx", "hand_palm_lite_192.onnx"])
def test_a_bundled_model_may_go_on_elsewhere_almost_anywhere(model, assets):
    try:
        gpu = open_engine("opencl")
    except DeviceError as error:
        pytest.skip(str(error))
    cpu = open_engine("onnxruntime", processor=CPU)
    served = serve(load_graph(assets / "models" / model), {GPU: gpu, CPU: cpu}, cpu)
    assert len(served.stages[0].op_ns) > 10
    served.close()
    gpu.close()
