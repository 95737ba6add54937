"""onnxruntime's GPU providers: how they are asked for, and what becomes of a graph on them."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

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
    real = ort.InferenceSession
    monkeypatch.setattr(
        ort,
        "InferenceSession",
        lambda raw, options, providers: real(raw, options, ["CPUExecutionProvider"]),
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
    by_cpu = SimpleNamespace(
        ep_name="CPUExecutionProvider",
        get_nodes=lambda: [SimpleNamespace(name=name) for name in taken],
    )

    class Session(ort.InferenceSession):
        """As if its provider had left the rest to another."""

        def get_provider_graph_assignment_info(self):
            return [by_cpu, SimpleNamespace(ep_name="Other", get_nodes=lambda: [])]

    monkeypatch.setattr(ort, "InferenceSession", Session)
    network = ProviderEngine("cpu").load(selfie)
    assert {name for op in network.ops if op.fallback for name in op.nodes} == resizes


def test_tensors_between_chunks_stay_in_the_providers_memory(selfie, monkeypatch):
    """As if there were a GPU: its memory is the host's here, and it is noted who asks for it."""
    asked, put = [], ort.OrtValue.ortvalue_from_numpy

    class Binding:
        def __init__(self, session):
            self.real = session.io_binding()

        def __getattr__(self, name):
            return getattr(self.real, name)

        def bind_output(self, name, memory):
            asked.append(memory)
            self.real.bind_output(name, "cpu")

    class Session(ort.InferenceSession):
        def io_binding(self):
            return Binding(super())

        def run_with_iobinding(self, binding):
            super().run_with_iobinding(binding.real)

    def in_memory(array, memory="cpu", index=0):
        asked.append(memory)
        return put(array)

    gpu = replace(providers.PROVIDERS["cpu"], memory="gpu")
    monkeypatch.setitem(providers.PROVIDERS, "cpu", gpu)
    monkeypatch.setattr(ort, "InferenceSession", Session)
    monkeypatch.setattr(ort.OrtValue, "ortvalue_from_numpy", in_memory)
    network = ProviderEngine("cpu").load(selfie, force_fallback=["Resize"])
    state = network.new_state()
    network.write(state, sample_inputs(selfie))
    place = next(index for index, op in enumerate(network.ops) if op.fallback)
    network.run(state, 0, place)
    assert set(asked) == {"gpu"}
    asked.clear()
    network.run_fallback(state, place, place + 1)
    assert set(asked) == {"cpu"}
    network.run(state, place + 1, place + 2)
    assert asked[-1] == "gpu"


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
