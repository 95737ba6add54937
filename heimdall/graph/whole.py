"""Models that run whole on the CPU, by onnxruntime: an op, a type or a shape is not known here.

Such a model is one node, a function of its inputs and weights, which no engine of a GPU has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper

from heimdall.errors import ModelError
from heimdall.graph.sessions import first_line, open_session
from heimdall.graph.values import fixed_shape

if TYPE_CHECKING:
    import onnxruntime as ort

DOMAIN, WHOLE = "heimdall", "Model"  # of the node that stands for a whole model
_INNER = "Inner"  # in it, where numpy lacks types of the model's inputs or outputs
# What stands for those types; by their numbers, as older releases of onnx have no names for them.
_EDGES = {
    **dict.fromkeys((16, 17, 18, 19, 20, 23, 24, 27, 28), TensorProto.FLOAT),  # bfloat16, float8...
    **dict.fromkeys((22, 26), TensorProto.INT8),  # int4, int2
    **dict.fromkeys((21, 25), TensorProto.UINT8),
}


class OnlyWholeError(ModelError):
    """Why onnxruntime may run a model, and no other engine: it names the node."""


def as_one_node(
    path: Path, model: onnx.ModelProto, why: str
) -> tuple[onnx.ModelProto, Sequence[str]]:
    """The model as a function, and one node that calls it; and the outputs that are left out, for
    they are no tensors of numbers.

    Sizes of outputs that onnxruntime does not tell are free: they are known when it has run. Raises
    ModelError where onnxruntime cannot run the model on zeros, which are places in any table, nor
    on ones; ``why`` says what keeps it from being anything else.
    """
    names = [value.name for value in model.graph.input]
    model = _with_edges(model)
    try:
        session = open_session(model)
    except Exception as error:  # onnxruntime raises a dozen types of its own
        said = first_line(error)
        more = "" if said in why else f"; nor does onnxruntime load it: {said}"
        raise ModelError(f"{why}{more}") from error
    try:
        made = _tried(session, model)
    except Exception as error:  # onnxruntime raises a dozen types of its own
        raise ModelError(
            f"{why}: so it would run whole on the CPU, but onnxruntime fails there on a sample: "
            f"{first_line(error)}; where an input decides what runs, give its value, such as "
            f"shapes={{{(names or ['x'])[-1]!r}: 16000}}"
        ) from error
    values, left = [], []
    for output, array in zip(session.get_outputs(), made, strict=True):
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            left.append(output.name)
            continue
        sizes = [
            size if size == known else None
            for size, known in zip(array.shape, [*output.shape, *[None] * array.ndim], strict=False)
        ]
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        values.append(helper.make_tensor_value_info(output.name, kind, sizes))
    if not values:
        raise ModelError(
            f"{why}: so it would run whole on the CPU, but its output {left[0]!r} is no tensor of "
            "numbers (text, a sequence or a map is none); export the model without it"
        )
    outputs = [value.name for value in values]
    # Functions may not take types that few ops have: such constants are within.
    odd = [item for item in model.graph.initializer if item.data_type in _EDGES]
    plain = [item for item in model.graph.initializer if item.data_type not in _EDGES]
    nodes = [helper.make_node("Constant", [], [item.name], value=item) for item in odd]
    inputs = [*names, *(item.name for item in plain)]
    function = helper.make_function(
        DOMAIN, WHOLE, inputs, outputs, [*nodes, *model.graph.node], model.opset_import
    )
    call = helper.make_node(WHOLE, inputs, outputs, path.stem, domain=DOMAIN)
    graph = helper.make_graph([call], model.graph.name, model.graph.input, values, plain)
    imports = [each for each in model.opset_import if each.domain != DOMAIN]
    imports.append(helper.make_opsetid(DOMAIN, 1))
    functions = [function, *model.functions]
    whole = helper.make_model(
        graph, opset_imports=imports, ir_version=max(model.ir_version, 8), functions=functions
    )
    whole.metadata_props.extend(model.metadata_props)
    return whole, left


def _with_edges(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs and outputs of types that numpy has, and casts behind and before."""
    graph = model.graph
    values = [*graph.input, *graph.output]
    odd = {v.name: v.type.tensor_type.elem_type for v in values if v.type.HasField("tensor_type")}
    odd = {name: kind for name, kind in odd.items() if kind in _EDGES}
    if not odd:
        return model
    inputs, outputs = ([value.name for value in each] for each in (graph.input, graph.output))
    constants = [item.name for item in graph.initializer]
    inner = helper.make_function(
        DOMAIN, _INNER, [*inputs, *constants], outputs, graph.node, model.opset_import
    )
    typed = {name: f"{name}/typed" for name in odd}
    called = [[typed.get(name, name) for name in names] for names in (inputs, outputs)]
    nodes = [
        *(helper.make_node("Cast", [n], [typed[n]], to=odd[n]) for n in inputs if n in odd),
        helper.make_node(_INNER, [*called[0], *constants], called[1], domain=DOMAIN),
        *(
            helper.make_node("Cast", [typed[n]], [n], to=_EDGES[odd[n]])
            for n in outputs
            if n in odd
        ),
    ]
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    for value in [*made.graph.input, *made.graph.output]:
        if value.name in odd:
            value.type.tensor_type.elem_type = _EDGES[odd[value.name]]
    made.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    made.functions.append(inner)
    made.ir_version = max(model.ir_version, 8)
    return made


def _tried(session: ort.InferenceSession, model: onnx.ModelProto) -> list[object]:
    """What it makes of a sample. Raises what onnxruntime does."""
    try:
        return list(session.run(None, _filled(model, 0)))
    except Exception:
        return list(session.run(None, _filled(model, 1)))


def _filled(model: onnx.ModelProto, value: int) -> dict[str, np.ndarray]:
    kind_of = helper.tensor_dtype_to_np_dtype
    return {
        each.name: np.full(
            fixed_shape(each.type) or (), value, kind_of(each.type.tensor_type.elem_type)
        )
        for each in model.graph.input
    }
