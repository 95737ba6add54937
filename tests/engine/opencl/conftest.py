"""One engine a kind of device for all tests of this folder: kernels are compiled once."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper, shape_inference

from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import DeviceError
from heimdall.graph.graph import Graph, graph_from_model
from tests import pocl

TOLERANCE = 1e-4


@pytest.fixture(scope="session")
def engine_for():
    """``engine_for(traits)``: the engine with kernels for such a device, on the device there is;
    None: as it is. Kernels are not kept: no process starts again, and keeping doubles compiling."""
    opened: dict[Traits | None, OpenCLEngine] = {}

    def engine(traits: Traits | None = None) -> OpenCLEngine:
        if traits not in opened:
            try:
                opened[traits] = OpenCLEngine(traits=traits, keep_kernels=False)
            except DeviceError as error:
                pytest.skip(f"no OpenCL here: {error}")
        return opened[traits]

    with pytest.MonkeyPatch.context() as patch:
        pocl.shorten(patch)
        yield engine
    for each in opened.values():
        each.close()


@pytest.fixture(scope="session")
def engine(engine_for):
    return engine_for()


@pytest.fixture(scope="module", params=["this device", "a GPU"])
def processor(request, engine_for):
    """Both families of kernels."""
    return engine_for(None if request.param == "this device" else Traits("gpu", 4))


def graph_of(nodes, inputs, constants=None, outputs=("y",), opset=17) -> Graph:
    """A small graph; ``nodes``: NodeProtos, ``inputs``: name -> shape."""
    proto = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(proto, opset_imports=imports, ir_version=8)
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    known = {value.name: value for value in inferred.graph.value_info}
    model.graph.output.extend(known[name] for name in outputs)
    return graph_from_model(model)


@pytest.fixture(scope="session")
def build():
    return graph_of


def reference(graph, inputs):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(graph.serialized, options, providers=["CPUExecutionProvider"])
    names = [tensor.name for tensor in graph.outputs]
    return dict(zip(names, session.run(names, inputs), strict=True))


def run(network, state, inputs, cuts=()):
    """One inference cut at ``cuts``; fallback ops go where they belong."""
    network.write(state, inputs)
    marks = {0, len(network.ops), *(cut for cut in cuts if cut < len(network.ops))}
    for index, op in enumerate(network.ops):
        if op.fallback:
            marks |= {index, index + 1}
    edges = sorted(marks)
    for start, end in itertools.pairwise(edges):
        if network.ops[start].fallback:
            network.run_fallback(state, start, end)
        else:
            network.run(state, start, end)
    return network.read(state)


def relative_error(found, wanted):
    """max|a - b| / max|b|, the largest over outputs; shapes must agree."""
    assert set(found) == set(wanted)
    errors = []
    for name, value in wanted.items():
        assert found[name].shape == value.shape, name
        scale = max(float(np.abs(value).max()), 1e-6)
        errors.append(float(np.abs(found[name] - value).max()) / scale)
    return max(errors)


def same(found, wanted):
    """Whether two runs of the same kernels agree bit for bit."""
    return set(found) == set(wanted) and all(
        np.array_equal(found[name], value) for name, value in wanted.items()
    )


@pytest.fixture(scope="session")
def shared():
    """The functions above."""
    return SimpleNamespace(run=run, reference=reference, relative_error=relative_error, same=same)


@pytest.fixture(scope="session")
def check(engine):
    """check(graph, seed, fallbacks=0, low=-2, high=2): run twice on one state, compare both."""

    def compare(graph, seed=0, *, fallbacks=0, low=-2.0, high=2.0):
        network = engine.load(graph)
        assert sum(op.fallback for op in network.ops) == fallbacks
        state = network.new_state()
        for turn in range(2):  # the second run sees what the first left in memory
            random = np.random.default_rng(seed + turn)
            inputs = {
                tensor.name: random.uniform(low, high, tensor.shape).astype(np.float32)
                for tensor in graph.inputs
            }
            error = relative_error(run(network, state, inputs), reference(graph, inputs))
            assert error <= TOLERANCE
        network.close()
        return network

    return compare
