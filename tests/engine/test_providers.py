"""onnxruntime's GPU providers: how they are asked for, and what becomes of a graph on them."""

import itertools

import numpy as np
import onnxruntime as ort
import pytest

from heimdall.engine import providers
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.engine.providers import ProviderEngine, group_nodes, provider_named
from heimdall.errors import ConfigError, DeviceError
from heimdall.graph.graph import load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.system import paths


@pytest.fixture(scope="module")
def selfie():
    return load_graph(paths.ASSETS / "models" / "seg_selfie_256.onnx")


@pytest.fixture
def missing():
    """A provider that the installed onnxruntime does not have."""
    there = providers.available_providers()
    return next(name for name in providers.PROVIDERS if name not in (*there, "cpu"))


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (None, None),
        ("", None),
        ("0", None),
        ("onnxruntime", None),
        ("pocl", None),
        ("cpu", None),  # part of the name of an OpenCL device
        ("onnxruntime:cpu", "cpu"),
        ("openvino", "openvino"),
        ("CUDA", "cuda"),
        ("onnxruntime:TensorRT", "tensorrt"),
    ],
)
def test_a_device_may_name_a_provider(device, name):
    assert provider_named(device) == name


def test_an_unknown_provider_lists_those_that_exist():
    with pytest.raises(ConfigError, match=r"'vulkan'.*coreml, cpu, cuda, directml"):
        provider_named("onnxruntime:vulkan")
    with pytest.raises(ConfigError, match="'vulkan'"):
        ProviderEngine("vulkan")


def test_a_provider_that_is_not_installed_names_the_package(missing):
    with pytest.raises(DeviceError, match=f"install {providers.PROVIDERS[missing].package}"):
        ProviderEngine(missing)


def test_a_provider_without_a_device_is_an_error_not_the_cpu(missing, monkeypatch):
    """onnxruntime would take the CPU instead, and say nothing."""
    title = providers.PROVIDERS[missing].title
    monkeypatch.setattr(ort, "get_available_providers", lambda: [title, "CPUExecutionProvider"])
    monkeypatch.setattr(
        providers,
        "_try_open",
        lambda raw, choice: providers._open(raw, [("CPUExecutionProvider", {})]),
    )
    with pytest.raises(DeviceError, match="finds no device"):
        ProviderEngine(missing)


def test_a_convolution_keeps_its_activation_and_every_node_has_one_op(selfie):
    groups = group_nodes(selfie, ())
    assert [node.name for group in groups for node in group] == [n.name for n in selfie.nodes]
    kinds = [[node.op_type for node in group] for group in groups]
    assert ["Conv", "Relu"] in kinds
    assert all(
        group[0] in ("Conv", "Gemm", "MatMul", "ConvTranspose") or len(group) == 1
        for group in kinds
    )


def test_nodes_that_the_provider_does_not_take_fall_back(selfie, monkeypatch):
    resizes = {node.name for node in selfie.nodes if node.op_type == "Resize"}
    taken = {node.name for node in selfie.nodes} - resizes
    monkeypatch.setattr(providers, "_taken_nodes", lambda session, titles: taken)
    network = ProviderEngine("cpu").load(selfie)
    assert {name for op in network.ops if op.fallback for name in op.nodes} == resizes


def test_tensors_between_chunks_stay_in_the_providers_memory(selfie, monkeypatch):
    asked = []

    class Binding:
        """Notes where outputs are asked for."""

        def __init__(self, session):
            self._binding = session.io_binding()

        def __getattr__(self, name):
            return getattr(self._binding, name)

        def bind_output(self, name, memory):
            asked.append(memory)
            self._binding.bind_output(name, "cpu")

    network = ProviderEngine("cpu").load(selfie, force_fallback=["Resize"])
    state = network.new_state()
    network.write(state, sample_inputs(selfie))
    network._memory = "gpu"  # as if it were one
    open_range = network._open[False]
    monkeypatch.setitem(network._open, False, lambda raw: Session(open_range(raw)))

    class Session:
        def __init__(self, session):
            self._session = session

        def __getattr__(self, name):
            return getattr(self._session, name)

        def io_binding(self):
            return Binding(self._session)

        def run_with_iobinding(self, binding):
            self._session.run_with_iobinding(binding._binding)

    place = next(index for index, op in enumerate(network.ops) if op.fallback)
    network.run(state, 0, place)
    assert set(asked) == {"gpu"}
    network.run_fallback(state, place, place + 1)
    assert set(asked) == {"gpu"}


@pytest.mark.parametrize("name", ["cpu", *providers.available_providers()])
def test_a_bundled_network_agrees_with_the_cpus_engine_in_any_chunks(selfie, name):
    try:
        network = ProviderEngine(name).load(selfie)
    except DeviceError as error:
        pytest.skip(str(error))
    inputs = sample_inputs(selfie)
    reference = OnnxRuntimeEngine().load(selfie)
    count = len(network.ops)
    found = []
    for each, cuts in ((reference, ()), (network, ()), (network, (count // 3, count // 2))):
        state = each.new_state()
        each.write(state, inputs)
        edges = [0, *cuts, len(each.ops)]
        for start, end in itertools.pairwise(edges):
            each.run(state, start, end)
        found.append(each.read(state))
    for output, wanted in found[0].items():
        for other in found[1:]:
            np.testing.assert_allclose(other[output], wanted, atol=1e-3 * abs(wanted).max())
