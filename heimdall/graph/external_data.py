"""Weights that stand in files of their own: read only from within the model's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import TensorProto

from heimdall.errors import ModelError
from heimdall.graph.values import check_constants, check_stored, tensor_bytes


def read_external_data(path: Path, model: onnx.ModelProto) -> None:
    """Put the weights that are elsewhere into the model.

    Raises ModelError, naming the tensor, where they are outside the model's folder (by their
    path, or by a link on the way), are not there, or have not the size that the tensor needs.
    """
    folder, total = path.parent.resolve(), 0
    for tensor in _tensors(model):
        what = f"tensor {tensor.name!r} of {path}"
        check_stored(what, tensor)
        total += tensor_bytes(tensor.data_type, tensor.dims)
        check_constants(total, what)
        if tensor.data_location == TensorProto.EXTERNAL:
            _read(what, folder, tensor)


def external_files(path: Path, raw: bytes) -> list[Path]:
    """The files beside a model of that content in which its weights are. Raises ModelError for one
    that is elsewhere, or is no file, and for what is no model."""
    try:
        model = onnx.load_model_from_string(raw)
    except Exception as error:  # protobuf raises types of its own
        raise ModelError(f"model {path} is not an ONNX file, or is truncated") from error
    folder = path.parent.resolve()
    entries = [
        entry.value
        for tensor in _tensors(model)
        if tensor.data_location == TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    ]
    return [_file(f"a weight of {path}", folder, each) for each in dict.fromkeys(entries)]


def _file(what: str, folder: Path, location: str) -> Path:
    try:
        file = (folder / location).resolve()
        regular = file.is_file()
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise ModelError(f"{what} has external data that cannot be found: {error}") from error
    if not location or not file.is_relative_to(folder):
        raise ModelError(
            f"{what} has its data in {location!r}, outside the model's folder: copy it there"
        )
    if not regular:  # a pipe would wait for ever
        raise ModelError(f"{what} has its data in {location!r}, which is no file")
    return file


def _read(what: str, folder: Path, tensor: TensorProto) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location, size = entries.get("location", ""), tensor_bytes(tensor.data_type, tensor.dims)
    file = _file(what, folder, location)
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError as error:
        raise ModelError(f"{what} has external data that cannot be found: {error}") from error
    if offset < 0 or length != size:
        raise ModelError(
            f"{what} should take {size:,} bytes of {location}; the file says {length:,} from "
            f"{offset:,}"
        )
    try:
        with file.open("rb") as opened:
            opened.seek(offset)
            data = opened.read(size)
    except (OSError, OverflowError) as error:
        raise ModelError(f"{what}: its data cannot be read: {error}") from error
    if len(data) != size:
        raise ModelError(f"{what} should take {size:,} bytes of {location}; it has {len(data):,}")
    tensor.raw_data = data
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _tensors(model: onnx.ModelProto) -> Iterator[TensorProto]:
    yield from _of_graph(model.graph)
    for function in model.functions:
        yield from _of_nodes(function.node)


def _of_graph(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    yield from _of_nodes(graph.node)


def _of_nodes(nodes: Iterator[onnx.NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for item in node.attribute:
            if item.HasField("t"):
                yield item.t
            yield from item.tensors
            if item.HasField("g"):
                yield from _of_graph(item.g)
            for graph in item.graphs:
                yield from _of_graph(graph)
