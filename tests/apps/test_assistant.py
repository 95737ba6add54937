"""The assistant answers about a picture, headless: networks, language model and all."""

from __future__ import annotations

import importlib

import pytest

pytest.importorskip("tokenizers")

import apps.assistant
from apps.assistant import QUESTIONS, Assistant, card
from heimdall import Session
from heimdall.errors import ModelError
from heimdall.models.results import Label


@pytest.fixture
def session():
    with Session(Assistant, device="onnxruntime", overlay="off", size=(320, 240)) as session:
        yield session


def answered(session, picture, steps=900):
    """The answer on the card, once it has ended."""
    for _ in range(steps):
        session.push(picture)
        session.step()
        if session.app.reply is not None and session.app.reply.done:
            return session.app.reply
    raise AssertionError(f"no answer after {steps} frames")


def test_it_says_how_many_it_sees(session, clip):
    """Of people, whom the detector sees in the picture, and of whom the app tells the model."""
    picture = clip("single_face.mp4", 0)
    for _ in range(300):
        session.push(picture)
        session.step()
        if session.app.seen["person"] == 1:
            break
    session.app.ask("how many people are there")
    answer = answered(session, picture)
    assert (answer.reason, answer.error) == ("end", "")
    assert answer.text.strip() == "people: 1."


def test_words_ask_and_close(session, clip):
    session.app.obey([Label("next", 0.9)])
    assert session.app.waiting == QUESTIONS[0]
    answered(session, clip("cup.mp4", 0))
    assert session.app.asked == QUESTIONS[0]
    session.app.obey([Label("away", 0.9)])
    assert session.app.reply is None


def test_a_card_wraps_and_tells_of_failure(session):
    reply = session.app.answer.ask("w", most=3)
    assert card(reply) == ["..."]
    reply.end("failed", "the device is lost")
    assert card(reply) == ["(no more: the device is lost)"]


def test_without_the_model_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("ASSISTANT_MODEL", "nowhere.onnx")
    with pytest.raises(ModelError, match="text-generation-with-past"):
        importlib.reload(apps.assistant)
    monkeypatch.delenv("ASSISTANT_MODEL")
    importlib.reload(apps.assistant)
