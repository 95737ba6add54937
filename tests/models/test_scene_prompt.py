"""The prompt of the bundled language model."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.models.scene_prompt import MOST_COUNT, MOST_LABELS, MOST_LETTERS, plural, scene_prompt


def test_a_prompt_tells_what_is_seen_what_is_read_and_what_is_asked():
    found = scene_prompt({"cup": 2, "person": 1}, "SALE 20%", "how many cups are there?")
    assert found == (
        'Seen: cups: 2, people: 1. Read: "SALE 20%". Question: how many cups are there? Answer:'
    )


def test_nothing_is_said_to_be_nothing():
    found = scene_prompt({}, "", "what do you see")
    assert found == "Seen: nothing. Read: nothing. Question: what do you see? Answer:"


@pytest.mark.parametrize(
    "asked", ["Which is more, cups or books?!", "  which IS more\ncups or books"]
)
def test_questions_are_written_alike_however_they_were_typed_or_heard(asked):
    assert "Question: which is more cups or books? Answer:" in scene_prompt({}, "", asked)


def test_a_text_is_one_line_of_a_certain_length():
    assert "Read: \"a 'b' c\"." in scene_prompt({}, ' a "b"\n c ', "read it")
    assert f'Read: "{"x" * MOST_LETTERS}".' in scene_prompt({}, "x" * 100, "read it")


def test_the_first_of_many_things_are_told():
    seen = {f"thing{i}": 30 for i in range(10)}
    found = scene_prompt(seen, "", "what is there").partition(". Read")[0]
    assert found.count(f": {MOST_COUNT}") == MOST_LABELS
    assert f"thing0s: {MOST_COUNT}" in found


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ("cup", "cups"), ("person", "people"), ("wine glass", "wine glasses"), ("bus", "buses"),
        ("couch", "couches"), ("toothbrush", "toothbrushes"), ("mouse", "mice"), ("sheep", "sheep"),
        ("knife", "knives"), ("scissors", "scissors"), ("toy", "toys"), ("berry", "berries"),
    ],
)  # fmt: skip
def test_plurals_are_words(one, several):
    assert plural(one) == several


def test_what_makes_no_prompt_is_refused():
    with pytest.raises(ConfigError, match="0 of 'cup': must be 1 or more"):
        scene_prompt({"cup": 0}, "", "what is there")
    with pytest.raises(ConfigError, match=r"question ' \?' has no words"):
        scene_prompt({}, "", " ?")
