"""Which step of which answer is next: a writer against a model that counts."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import numpy as np
import pytest

from heimdall.errors import AppError, ArgumentError, ConfigError, ModelError, RequestError
from heimdall.models.generation.sampling import Sampling
from heimdall.models.generation.writer import Kind, Writer

VOCABULARY, END = 27, 26


class Letters:
    """One token a letter; the last one ends a text."""

    size = VOCABULARY

    def encode(self, text):
        return [ord(letter) - ord("a") for letter in text]

    def decode(self, tokens):
        return "".join(chr(ord("a") + token) for token in tokens)

    def token(self, name):
        return {"<|end|>": END}.get(name)


class Model:
    """The next letter of the alphabet is the likeliest; it checks that the cache holds the text."""

    def __init__(self, context=64, rows=8):
        self.writer = Writer(context, rows)
        self.writer.open(Letters(), VOCABULARY, ends=("<|end|>",))
        self.cache, self.steps, self.asked = [], [], []
        self.spoilt = False

    def run(self, most=200):
        """Steps as long as they are asked for."""
        for kind in Kind:
            self.writer.attach(kind, partial(self.asked.append, kind))
        while self.asked and len(self.steps) < most:
            self.step()

    def step(self):
        step = self.writer.begin(self.asked.pop(0))
        self.steps.append((step.kind, len(step.tokens)))
        assert step.position <= len(self.cache)
        self.cache[step.position :] = step.tokens
        assert list(step.answer.prompt[: len(self.cache)]) == self.cache[: len(step.answer.prompt)]
        logits = None
        if step.kind is Kind.STEP:
            logits = np.zeros(VOCABULARY, np.float32)
            logits[(step.tokens[0] + 1) % VOCABULARY] = np.nan if self.spoilt else 1.0
        self.writer.took(step, logits)


def test_a_question_goes_in_pieces_and_the_answer_token_by_token():
    model = Model()
    answer = model.writer.ask("abcdefghijklmnopqrs", most=4)
    model.run()
    assert (answer.text, answer.reason) == ("tuvw", "length")
    assert model.steps == [("prompt", 8), ("prompt", 8), ("prompt", 2), *[("step", 1)] * 4]


def test_the_models_own_end_ends_it():
    model = Model()
    answer = model.writer.ask("x", most=99)
    model.run()
    assert (answer.text, answer.reason) == ("yz", "end")


def test_a_stop_text_is_left_out_and_not_told_before_it_is_whole():
    model = Model()
    pieces: list[str] = []
    answer = model.writer.ask("a", most=99, stop="efg", on_token=pieces.append)
    model.run()
    assert (answer.text, answer.reason) == ("bcd", "stop")
    assert "".join(pieces) == "bcd"


def test_what_was_begun_like_a_stop_is_told_when_it_ends_otherwise():
    model = Model()
    answer = model.writer.ask("a", most=5, stop=["efz"])
    model.run()
    assert (answer.text, answer.reason) == ("bcdef", "length")


def test_questions_wait_for_each_other_and_share_their_beginnings():
    model = Model()
    first = model.writer.ask("abcdefghijklmnop", most=2)
    second = model.writer.ask("abcdefghijklmnopz", most=1)
    model.run()
    assert (first.text, second.reason) == ("qr", "end")
    assert model.steps == [("prompt", 8), ("prompt", 7), *[("step", 1)] * 3]


def test_the_cache_is_full():
    model = Model(context=16)
    answer = model.writer.ask("aaaaaaaaaa", most=99)
    model.run()
    assert answer.reason == "context"
    assert len(model.cache) == 16


def test_one_that_is_cancelled_leaves_room_for_the_next():
    model = Model()
    first, second = model.writer.ask("a", most=99), model.writer.ask("k", most=1)
    model.run(most=2)
    first.cancel()
    model.run()
    assert (first.text, first.reason, second.text) == ("bc", "cancelled", "l")


def test_a_step_that_fails_ends_the_answer_and_no_other():
    model = Model()
    first, second = model.writer.ask("a", most=9), model.writer.ask("k", most=1)
    model.run(most=1)
    model.writer.failed(model.writer.begin(model.asked.pop()), "the device is lost")
    model.run()
    assert second.text == "l"
    with pytest.raises(RequestError, match="after 1 tokens: the device is lost"):
        first.result()


def test_logits_that_are_no_numbers_end_it():
    model = Model()
    model.spoilt = True
    answer = model.writer.ask("a", most=9)
    model.run()
    with pytest.raises(RequestError, match="no numbers"):
        answer.result()


def test_who_waits_hears_that_it_is_over():
    model = Model()
    answer = model.writer.ask("a", most=9)
    model.writer.detach("the run is over")
    with pytest.raises(RequestError, match="the run is over"):
        answer.result()


@pytest.mark.parametrize(
    ("prompt", "said"),
    [("", "empty"), ("a" * 64, "64 tokens, and the cache has room for 64"), ([3, 99], "token 99")],
)
def test_what_cannot_be_asked(prompt, said):
    with pytest.raises(ConfigError, match=said):
        Model().writer.ask(prompt, most=1)


def test_nothing_is_asked_before_the_run():
    with pytest.raises(AppError, match="before the run"):
        Writer(64, 8).ask("a", most=1)


def test_another_models_tokenizer_is_refused():
    with pytest.raises(ModelError, match="another model's"):
        Writer(64, 8).open(Letters(), VOCABULARY - 1)
    with pytest.raises(ConfigError, match="no token '<|stop|>'".replace("|", r"\|")):
        Writer(64, 8).open(Letters(), VOCABULARY, ends=("<|stop|>",))


def test_pieces_come_while_it_grows():
    model = Model()
    answer = model.writer.ask("a", most=6)
    thread = threading.Thread(target=model.run)
    thread.start()
    assert "".join(answer) == "bcdefg"
    thread.join()
    assert answer.result(timeout=5) == "bcdefg"


def test_pieces_come_to_an_event_loop():
    model = Model()
    answer = model.writer.ask("a", most=6)

    async def read():
        thread = threading.Thread(target=model.run)
        thread.start()
        found = [piece async for piece in answer]
        thread.join()
        return "".join(found)

    assert asyncio.run(read()) == "bcdefg"


def test_who_cannot_wait_longer_is_told_so():
    with pytest.raises(TimeoutError):
        Model().writer.ask("a", most=1).result(timeout=0.01)


def test_a_callback_that_fails_does_not_end_the_answer(caplog):
    def broken(piece):
        raise ValueError("mine")

    model = Model()
    answer = model.writer.ask("a", most=3, on_token=broken)
    model.run()
    assert answer.text == "bcd"
    assert "on_token" in caplog.text


# --- chance -----------------------------------------------------------------------------------


def test_the_likeliest_without_temperature():
    assert Sampling().choose(np.array([0.0, 3.0, 2.0]), Sampling().random()) == 1


def test_shares_are_those_of_the_softmax():
    logits = np.log(np.array([0.5, 0.3, 0.2]))
    sampling = Sampling(temperature=1.0, seed=1)
    chance = sampling.random()
    found = np.bincount([sampling.choose(logits, chance) for _ in range(4000)], minlength=3)
    np.testing.assert_allclose(found / 4000, [0.5, 0.3, 0.2], atol=0.03)


@pytest.mark.parametrize(
    ("limits", "kept"), [({"top_k": 2}, {0, 1}), ({"top_p": 0.55}, {0, 1}), ({"top_p": 0.4}, {0})]
)
def test_only_the_likeliest_are_drawn_from(limits, kept):
    logits = np.log(np.array([0.5, 0.3, 0.2]))
    sampling = Sampling(temperature=2.0, seed=1, **limits)
    chance = sampling.random()
    assert {sampling.choose(logits, chance) for _ in range(200)} == kept


def test_the_same_seed_gives_the_same_text():
    def text(seed):
        model = Model()
        answer = model.writer.ask("a", most=9, sampling=Sampling(temperature=3.0, seed=seed))
        model.run()
        return answer.text

    assert text(5) == text(5)
    assert len({text(seed) for seed in range(8)}) > 1


@pytest.mark.parametrize("wrong", [{"temperature": -1}, {"top_k": -1}, {"top_p": 0}])
def test_what_is_no_chance(wrong):
    with pytest.raises(ArgumentError):
        Sampling(**wrong)
