"""A language model's file, or a part of it, run by onnxruntime: what a rewritten one is held to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import helper

from heimdall.errors import ModelError
from heimdall.graph import decoder_names as known
from heimdall.graph.sessions import first_line, open_session
from heimdall.graph.values import fixed_shape

if TYPE_CHECKING:
    import onnxruntime as ort

_TOLERANCE = 1e-3  # of the largest number of a tensor
_TOKENS = 16  # numbers that every vocabulary has


def part(
    model: onnx.ModelProto, made: Sequence[str], instead: Sequence[onnx.ValueInfoProto] = ()
) -> tuple[ort.InferenceSession, list[onnx.ValueInfoProto]]:
    """What makes these tensors, and from what: inputs of the model, and of ``instead``, which
    nothing makes here."""
    graph, stops = model.graph, {each.name for each in instead}
    needed, nodes = set(made), []
    for node in reversed(graph.node):
        if needed.intersection(node.output) - stops:
            nodes.append(node)
            needed.update(node.input)
    given = [each for each in (*instead, *graph.input) if each.name in needed]
    outputs = [onnx.ValueInfoProto(name=name) for name in made]
    constants = [item for item in graph.initializer if item.name in needed]
    chosen = helper.make_graph(nodes[::-1], "part", given, outputs, constants)
    whole = helper.make_model(chosen, opset_imports=model.opset_import, ir_version=model.ir_version)
    return open_session(whole), given


@contextlib.contextmanager
def any_lengths(model: onnx.ModelProto) -> Iterator[None]:
    """While the model takes any number of tokens, and of those before. (A copy that does would have
    all weights once more.)"""
    inputs = model.graph.input
    fixed = [onnx.ValueInfoProto.FromString(each.SerializeToString()) for each in inputs]
    for value in inputs:
        axis = 2 if known.PAST.fullmatch(value.name) else 1
        value.type.tensor_type.shape.dim[axis].dim_param = f"{value.name} {axis}"
    try:
        yield
    finally:
        del inputs[:]
        inputs.extend(fixed)


def feeds(
    given: Sequence[onnx.ValueInfoProto], tokens: np.ndarray, before: int
) -> dict[str, np.ndarray]:
    """Inputs of a file: ``tokens`` behind so many others, whose keys and values are zeros."""
    rows, found = len(tokens), {}
    numbers = {
        known.TOKENS: tokens[None],
        known.MASK: np.ones((1, before + rows)),
        known.POSITIONS: np.arange(before, before + rows)[None],
    }
    for each in given:
        kind = helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type)
        array = numbers.get(each.name)
        if array is None:
            _, heads, _, size = (dim.dim_value for dim in each.type.tensor_type.shape.dim)
            array = np.zeros((1, heads, before, size))
        found[each.name] = array.astype(kind)
    return found


class Trial:
    """What a file makes of some tokens, to be compared with what is made of it."""

    def __init__(self, path: Path, model: onnx.ModelProto, rows: int) -> None:
        """``rows``: of a step; two are tried. Raises ModelError where onnxruntime cannot run it."""
        self._path, self._rows = path, rows
        self._tokens = np.random.default_rng(0).integers(0, _TOKENS, 2 * rows)
        names = [each.name for each in model.graph.output]
        try:
            with any_lengths(model):
                made = open_session(model).run(names, feeds(model.graph.input, self._tokens, 0))
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise ModelError(
                f"onnxruntime cannot run language model {path}: {first_line(error)}"
            ) from error
        self._wanted = dict(zip(names, made, strict=True))
        if known.LOGITS in self._wanted:  # those behind the last token
            self._wanted[known.LOGITS] = self._wanted[known.LOGITS][:, -1:]

    def check(self, model: onnx.ModelProto) -> None:
        """Raises ModelError unless the rewritten model makes the same, step by step."""
        session, rows = open_session(model), self._rows
        names = [each.name for each in model.graph.output]
        found = {
            each.name: np.zeros(fixed_shape(each.type) or (), np.float32)
            for each in model.graph.input
            if known.PAST.fullmatch(each.name)
        }
        of_tokens = (known.TOKENS, known.POSITIONS)
        given = [each for each in model.graph.input if each.name in of_tokens]
        for begin in (0, rows):
            own = feeds(given, self._tokens[begin : begin + rows], begin)
            lengths = {known.SEEN: begin + rows - 1, known.TOTAL: begin + rows}
            own |= {name: np.array([number], np.int32) for name, number in lengths.items()}
            past = {name.replace("present", "past_key_values"): a for name, a in found.items()}
            found = dict(zip(names, session.run(names, {**own, **past}), strict=True))
            logits = found.pop(known.LOGITS, None)
        for name, array in found.items():
            self._compare(name, array[:, :, : 2 * rows])
        if logits is not None:
            self._compare(known.LOGITS, logits[:, -1:])

    def _compare(self, name: str, found: np.ndarray) -> None:
        wanted = self._wanted[name]
        if np.isnan(wanted).any():
            return  # it is broken as it is, and says so when it is asked
        difference, largest = np.abs(found - wanted).max(), np.abs(wanted).max()
        if not difference <= _TOLERANCE * largest:
            raise ModelError(
                f"language model {self._path} would compute something else with a cache of fixed "
                f"length: {name!r} differs by {difference / largest:.2g} of its largest number. "
                "Its positions or its attention are of a kind that is not known here"
            )
