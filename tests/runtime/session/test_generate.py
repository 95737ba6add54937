"""An app whose language model answers between frames."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from heimdall import App, Generate
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.errors import AppError, ConfigError, DeviceError, ModelError, RequestError
from heimdall.runtime.session.reload import _become, _declarations
from heimdall.runtime.session.session import Session
from heimdall.vocabulary.enums import Precision
from tests.graph.decoders import SHAPE, Reference, decoder

pytest.importorskip("tokenizers")

GREY = np.full((48, 64, 3), 128, np.uint8)
PROMPT = np.random.default_rng(5).integers(0, SHAPE.vocabulary, 40).tolist()
STEPS = 64


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """A word a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({f"w{n}": n for n in range(SHAPE.vocabulary)}, "w0"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    path = tmp_path_factory.mktemp("tokens") / "tokenizer.json"
    made.save(str(path))
    return path


def app_of(tokenizer, form="optimum", **more):
    class Talk(App):
        answer = Generate(decoder(form), tokenizer=tokenizer, context=160, rows=16, **more)
        heard = 0

        def on_result(self, dnn, result, frame):
            self.heard += dnn == "answer"

    return Talk()


def until(session, answer, steps=400):
    session.push(GREY)
    for _ in range(steps):
        session.step()
        if answer.done:
            return answer
    raise AssertionError(f"{answer} after {steps} frames")


def opened(app, device=None):
    return Session(app, size=(64, 48), overlay="off", device=device)


def words(tokens):
    return " ".join(f"w{token}" for token in tokens)


@pytest.mark.parametrize("device", [None, "onnxruntime"])
def test_it_writes_what_the_file_itself_would(tokenizer, device):
    wanted = Reference(decoder("optimum")).greedy(PROMPT, STEPS)
    app = app_of(tokenizer)
    with opened(app, device) as session:
        answer = until(session, app.answer.ask(words(PROMPT), most=STEPS))
        assert answer.tokens == wanted
        assert answer.text.split() == words(wanted).split()
        assert answer.reason == "length"
        assert app.heard >= STEPS - 1  # of every token; the last one may be on its way
        assert app.answer.latest is answer
        again = until(session, app.answer.ask(PROMPT[:20], most=8))  # in the cache already
        assert again.tokens == Reference(decoder("optimum")).greedy(PROMPT[:20], 8)


def test_half_precision_is_the_gpus_or_refused(tokenizer):
    app = app_of(tokenizer, precision="fp16")
    if Precision.FP16 not in OpenCLEngine(keep_kernels=False).precisions:
        with pytest.raises(DeviceError, match="use precision='fp32'"):
            opened(app).__enter__()
        return
    with opened(app) as session:
        answer = until(session, app.answer.ask(PROMPT, most=12))
    assert answer.tokens == Reference(decoder("optimum")).greedy(PROMPT, 12)


def test_half_precision_refuses_positions_that_are_computed_with(tokenizer, monkeypatch):
    monkeypatch.setattr("heimdall.graph.decoder_attention._Graph._turns", lambda *_: [])

    class Talk(App):  # of a length that nothing is kept of
        answer = Generate(
            decoder("optimum"), tokenizer=tokenizer, context=152, rows=16, precision="fp16"
        )

    with pytest.raises(ModelError, match=r"computes with its positions .* precision='fp32'"):
        opened(Talk()).__enter__()


def test_the_form_of_genai(tokenizer):
    app = app_of(tokenizer, "genai")
    with opened(app) as session:
        answer = until(session, app.answer.ask(PROMPT, most=12))
    assert answer.tokens == Reference(decoder("genai")).greedy(PROMPT, 12)


def test_an_app_whose_file_was_saved_asks_the_same_model(tokenizer):
    app = app_of(tokenizer)
    again = type(app_of(tokenizer))
    assert _declarations(again) == _declarations(type(app))
    with opened(app) as session:
        _become(app, again)
        answer = until(session, app.answer.ask(PROMPT, most=3))
    assert answer.tokens == Reference(decoder("optimum")).greedy(PROMPT, 3)


def test_frames_go_on_when_its_logits_are_no_numbers(tokenizer, tmp_path):
    model = onnx.load(decoder("optimum"))
    for item in model.graph.initializer:
        if "norm" in item.name and item.data_type == 1:
            broken = np.full(tuple(item.dims), np.nan, np.float32)
            item.CopyFrom(onnx.numpy_helper.from_array(broken, item.name))
    path = tmp_path / "broken.onnx"
    onnx.save(model, path)

    class Talk(App):
        answer = Generate(path, tokenizer=tokenizer, context=64, rows=16)

    app = Talk()
    with opened(app) as session:
        for _ in range(2):  # the second is asked of a model that has failed once
            answer = until(session, app.answer.ask("w1 w2", most=5))
            with pytest.raises(RequestError, match="no numbers"):
                answer.result()


def test_who_waits_is_told_when_the_run_is_over(tokenizer):
    app = app_of(tokenizer)
    with opened(app) as session:
        session.push(GREY)
        answer = app.answer.ask("w1", most=100)
        session.step()
    with pytest.raises(RequestError, match="the run is over"):
        answer.result(timeout=5)


def test_what_cannot_be_asked_is_refused_at_once(tokenizer):
    app = app_of(tokenizer)
    with pytest.raises(AppError, match="before the run"):
        app.answer.ask("w1")
    with opened(app):
        with pytest.raises(ConfigError, match="200 tokens, and the cache has room for 160"):
            app.answer.ask([1] * 200)
        with pytest.raises(ConfigError, match="token 100 is not among the 100"):
            app.answer.ask([100])


def test_a_model_that_is_not_there_says_how_to_get_one():
    with pytest.raises(ModelError, match="text-generation-with-past"):
        Generate("nowhere.onnx")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"context": 1.5}, "context must be a whole number"),
        ({"rows": 1}, "rows must be a whole number from 2 on"),
        ({"context": 64, "rows": 40}, "needs rows of 32 or less"),
        ({"priority": "urgent"}, "priority must be one of"),
        ({"precision": "auto"}, "precision must be fp32 or fp16"),
    ],
)
def test_what_cannot_be_declared(wrong, said):
    with pytest.raises(ConfigError, match=said):
        Generate(decoder("optimum"), **wrong)


def test_a_tokenizer_of_another_model_is_refused(tokenizer, tmp_path):
    content = json.loads(tokenizer.read_text())
    content["model"]["vocab"]["more"] = SHAPE.vocabulary
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="another model's"):
        opened(app_of(path)).open()


def test_without_its_tokenizer_it_says_where_that_should_be(tmp_path):
    with pytest.raises(ModelError, match="comes with the model"):
        opened(app_of(tmp_path / "tokenizer.json")).open()
