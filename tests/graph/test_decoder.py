"""Files of language models become networks with a cache of fixed length."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.errors import ModelError
from heimdall.graph.graph import load_graph
from tests.graph.decoders import FORMS, SHAPE, Reference, decoder
from tests.graph.models import model

CONTEXT, ROWS, STEPS = 96, 8, 64
TOKENS = np.random.default_rng(3).integers(0, SHAPE.vocabulary, 20).tolist()


@pytest.fixture(params=["opencl", "onnxruntime"])
def engine(request):
    return OpenCLEngine() if request.param == "opencl" else OnnxRuntimeEngine()


class Running:
    """Both networks of a file on an engine, with one cache."""

    def __init__(self, engine, path, rows):
        self.graphs = {
            count: load_graph(path, {"input_ids": (1, count), "context": CONTEXT})
            for count in (1, rows)
        }
        self._networks = {count: engine.load(each) for count, each in self.graphs.items()}
        self._states = {count: each.new_state() for count, each in self._networks.items()}
        graph = self.graphs[1]
        self._cache = {
            each.name: np.zeros(each.shape, each.dtype)
            for each in graph.inputs
            if each.name.startswith("past")
        }
        self._kept = [each.name for each in graph.outputs if each.name != "logits"]

    def lacking(self):
        return [op.name for each in self._networks.values() for op in each.ops if op.fallback]

    def run(self, tokens, position):
        rows = len(tokens)
        network, state = self._networks[rows], self._states[rows]
        lengths = {
            "seqlens_k": np.array([position + rows - 1], np.int32),
            "total_sequence_length": np.array([position + rows], np.int32),
        }
        given = {"input_ids": np.array([tokens], np.int64), **lengths, **self._cache}
        for each in self.graphs[rows].inputs:
            if each.name == "position_ids":
                given[each.name] = np.arange(position, position + rows, dtype=each.dtype)[None]
        network.write(state, given)
        network.run_any(state, 0, len(network.ops))
        made = network.keep(state, self._kept)
        self._cache = {n.replace("present", "past_key_values"): each for n, each in made.items()}
        return network.read(state, leave=self._kept)


@pytest.mark.parametrize("form", FORMS)
def test_pieces_of_a_prompt_and_steps_make_the_logits_of_the_file(form, engine):
    reference, running = Reference(decoder(form)), Running(engine, decoder(form), ROWS)
    assert running.run(TOKENS[:ROWS], 0) == {}  # nobody needs the logits of a prompt
    assert running.run(TOKENS[ROWS : 2 * ROWS], ROWS) == {}
    seen, tokens = 2 * ROWS, TOKENS[2 * ROWS : 2 * ROWS + 1]
    wanted = reference.logits(TOKENS[: 2 * ROWS + 1])
    for _ in range(STEPS):
        found = running.run(tokens, seen)["logits"][0, 0]
        assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()
        assert found.argmax() == wanted.argmax()
        seen, tokens = seen + 1, [int(wanted.argmax())]
        wanted = reference.logits(tokens)


def counting(count):
    """The exported decoder without positions: ``count(op, before, place)`` makes something of how
    many tokens there were before and of every token's place, and says what takes whose place."""
    other = onnx.load(decoder("optimum"))
    (positions,) = (each for each in other.graph.input if each.name == "position_ids")
    other.graph.input.remove(positions)
    made = []

    def op(kind, inputs, name, **attributes):
        made.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def whole(name, number):
        item = numpy_helper.from_array(np.array(number, np.int64), name)
        return op("Constant", [], name, value=item)

    def size(name, axis):
        return op("Gather", [op("Shape", [name], f"{name}/sizes"), axis], f"{name}/size")

    before = size("past_key_values.0.key", whole("two", 2))
    rows, one = size("input_ids", whole("one", 1)), "one"
    end = op("Add", [before, rows], "end")
    place = op("Range", [before, end, one], "place")
    op("Unsqueeze", [place, whole("axes", [0])], "position_ids")
    count(other, op, before)
    for node in reversed(made):
        other.graph.node.insert(0, node)
    return other


def test_positions_may_follow_from_how_many_tokens_there_were(tmp_path, engine):
    path = tmp_path / "counting.onnx"
    onnx.save(counting(lambda *_: None), path)
    running, reference = Running(engine, path, ROWS), Reference(decoder("optimum"))
    running.run(TOKENS[:ROWS], 0)
    found = running.run(TOKENS[ROWS : ROWS + 1], ROWS)["logits"][0, 0]
    wanted = reference.logits(TOKENS[: ROWS + 1])
    assert np.abs(found - wanted).max() <= 1e-4 * np.abs(wanted).max()


def test_what_else_follows_from_that_is_refused(tmp_path):
    """With a cache of fixed length there were always as many."""

    def scaled(other, op, before):
        (norm,) = (n for n in other.graph.node if "model.norm.weight" in n.input)
        (last,) = (each for each in norm.input if each == "model.norm.weight")
        more = op("Cast", [before], "more", to=TensorProto.FLOAT)
        norm.input[list(norm.input).index(last)] = op("Add", [last, more], "scaled")

    path = tmp_path / "scaled.onnx"
    onnx.save(counting(scaled), path)
    with pytest.raises(ModelError, match=r"would compute something else .* 'logits' differs"):
        load_graph(path, {"context": CONTEXT})


@pytest.mark.parametrize("form", FORMS)
def test_all_of_it_runs_on_opencl(form):
    assert Running(OpenCLEngine(), decoder(form), ROWS).lacking() == []


def test_a_cache_is_as_long_as_it_is_asked_for_and_nothing_else_is_an_input():
    graph = load_graph(decoder("optimum"), {"input_ids": (1, 4), "context": 32})
    shapes = {each.name: each.shape for each in graph.inputs}
    cache = (1, SHAPE.kv_heads, 32, SHAPE.head_width)
    assert shapes.pop("input_ids") == (1, 4)
    assert shapes.pop("seqlens_k") == shapes.pop("total_sequence_length") == (1,)
    assert set(shapes) == {
        f"past_key_values.{layer}.{kind}"
        for layer in range(SHAPE.layers)
        for kind in ("key", "value")
    }
    assert set(shapes.values()) == {cache}


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"input_ids": (1, 8), "context": 12}, "too short"),
        ({"input_ids": (2, 8), "context": 64}, "must be of shape"),
        ({"input_ids": (1, 8), "context": 40.5}, "no whole number"),
    ],
)
def test_what_has_no_room_is_refused(shapes, said):
    with pytest.raises(ModelError, match=said):
        load_graph(decoder("optimum"), shapes)


def test_a_cache_longer_than_the_files_positions_is_refused():
    with pytest.raises(ModelError, match=r"a context of 5000 .* it has 4096 positions"):
        load_graph(decoder("genai"), {"input_ids": (1, 8), "context": 5000})


def test_other_networks_have_no_context(tmp_path):
    path = tmp_path / "abs.onnx"
    onnx.save(model([helper.make_node("Abs", ["x"], ["y"])], {"x": [1, 4]}, ["y"]), path)
    with pytest.raises(ModelError, match="no language model with a cache"):
        load_graph(path, {"context": 64})


def squashed(op, scores):
    """Scores that are squashed before the softmax, as some models' are."""
    return [op("Tanh", [scores], "squashed")], "squashed"


def places(op, scores):
    """The number of each token that may be looked at, as floats "place"."""
    numbers = {"zero": np.int64(0), "one": np.int64(1), "last": np.array([3], np.int64)}
    made = [
        op("Constant", [], name, value=numpy_helper.from_array(np.asarray(number), name))
        for name, number in numbers.items()
    ]
    return [
        *made,
        op("Shape", [scores], "sizes"),
        op("Gather", ["sizes", "last"], "length"),
        op("Squeeze", ["length"], "count"),
        op("Range", ["zero", "count", "one"], "places"),
        op("Cast", ["places"], "place", to=TensorProto.FLOAT),
    ]


def sloping(op, scores):
    """Scores that sink with distance instead of positions that turn: the mask says so."""
    return [*places(op, scores), op("Add", [scores, "place"], "sloping")], "sloping"


def windowed(op, scores):
    """The first tokens are not seen."""
    numbers = {"first": np.float32(CONTEXT // 2), "low": np.float32(-1e9)}
    made = [
        op("Constant", [], name, value=numpy_helper.from_array(np.asarray(number), name))
        for name, number in numbers.items()
    ]
    made += [*places(op, scores), op("Greater", ["place", "first"], "seen")]
    return [*made, op("Where", ["seen", scores, "low"], "windowed")], "windowed"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (squashed, "Tanh"),
        (sloping, "it is more than the softmax over all tokens before"),
        (windowed, "it is more than the softmax over all tokens before"),
    ],
)
def test_attention_that_is_otherwise_is_refused(tmp_path, change, said):
    other = onnx.load(decoder("optimum"))
    nodes = other.graph.node
    softmax = next(node for node in nodes if node.op_type == "Softmax")

    def op(kind, inputs, made, **attributes):
        return helper.make_node(kind, inputs, [made], made, **attributes)

    added, softmax.input[0] = change(op, softmax.input[0])
    at = list(nodes).index(softmax)
    for node in reversed(added):
        nodes.insert(at, node)
    path = tmp_path / "other.onnx"
    onnx.save(other, path)
    with pytest.raises(ModelError, match=rf"attention of layer 0 .* not understood: {said}"):
        load_graph(path, {"context": CONTEXT})
