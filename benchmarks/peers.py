"""Other engines that can run an ONNX graph here: each is a function that opens one.

An opener gives a function that computes one inference, on ``cores`` cores, of inputs that it
already holds. One that is not installed, or cannot run the graph, raises.
"""

from __future__ import annotations

import importlib.util
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import cv2
import numpy as np
import onnxruntime as ort

from heimdall.graph.graph import Graph

Run = Callable[[], Any]
Inputs = Mapping[str, np.ndarray]

_GREW = re.compile(rb"Extended allocation by (\d+) bytes")


def onnxruntime(graph: Graph, inputs: Inputs, cores: int) -> Run:
    """With its defaults: its threads spin while they wait for work."""
    session = _session(graph, cores)
    return lambda: session.run(None, dict(inputs))


def openvino(graph: Graph, inputs: Inputs, cores: int) -> Run:
    """In float32, tuned for latency."""
    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": cores,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }
    compiled = core.compile_model(
        core.read_model(model=graph.serialized, weights=b""), "CPU", settings
    )
    request = compiled.create_infer_request()
    for port, tensor in zip(compiled.inputs, graph.inputs, strict=True):
        request.set_tensor(port, openvino.Tensor(np.ascontiguousarray(inputs[tensor.name])))
    return request.infer


def opencv(graph: Graph, inputs: Inputs, cores: int) -> Run:
    """OpenCV's dnn module."""
    cv2.setNumThreads(cores)
    net = cv2.dnn.readNetFromONNX(np.frombuffer(graph.serialized, np.uint8))
    names = [tensor.name for tensor in graph.outputs]

    def run() -> Any:
        for name, array in inputs.items():
            net.setInput(array, name)
        return net.forward(names)

    return run


def tinygrad(graph: Graph, inputs: Inputs, cores: int) -> Run:
    """On the same OpenCL device, compiled as a whole by its JIT."""
    os.environ.setdefault("CL", "1")
    from tinygrad import Tensor, TinyJit
    from tinygrad.nn.onnx import OnnxRunner

    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(graph.serialized)
        file.flush()
        runner = OnnxRunner(file.name)
    names = list(inputs)
    jitted = TinyJit(
        lambda *tensors: [
            out.realize() for out in runner(dict(zip(names, tensors, strict=True))).values()
        ]
    )

    def run() -> Any:
        return [out.numpy() for out in jitted(*(Tensor(inputs[name]).realize() for name in names))]

    return run


PEERS: dict[str, Callable[[Graph, Inputs, int], Run]] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "opencv": opencv,
    "tinygrad": tinygrad,
}


def installed(peer: str) -> bool:
    """Whether an engine can be imported here."""
    module = {"opencv": "cv2"}.get(peer, peer)
    return importlib.util.find_spec(module) is not None


def arena_bytes(graph: Graph, inputs: Inputs) -> int:
    """What onnxruntime's arena holds for activations after the first inference, weights apart.

    It tells only its log, so the process's standard error goes to a file meanwhile. The second
    inference would add a block of its planned size; that is left out, in its favour.
    """
    with tempfile.TemporaryFile() as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            ort.set_default_logger_severity(1)
            session = _session(
                graph, 1, {"session.use_device_allocator_for_initializers": "1"}, severity=1
            )
            began = os.lseek(2, 0, os.SEEK_CUR)
            session.run(None, dict(inputs))
        finally:
            ort.set_default_logger_severity(3)
            os.dup2(kept, 2)
            os.close(kept)
        log.seek(began)
        return sum(int(size) for size in _GREW.findall(log.read()))


def _session(
    graph: Graph, cores: int, entries: Mapping[str, str] | None = None, severity: int = 3
) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = cores
    options.inter_op_num_threads = 1
    options.log_severity_level = severity
    for name, value in (entries or {}).items():
        options.add_session_config_entry(name, value)
    return ort.InferenceSession(graph.serialized, options, providers=["CPUExecutionProvider"])
