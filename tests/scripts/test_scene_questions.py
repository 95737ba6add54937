"""What the small decoder learns from: every answer follows from its prompt."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from itertools import islice

import pytest

scene_questions = importlib.import_module("scripts.scene_questions")
PARTS = re.compile(r'Seen: (.*)\. Read: (nothing|".*")\. Question: ([^?"]+)\? Answer:')


@pytest.fixture(scope="module")
def some():
    return list(islice(scene_questions.questions(5), 3000))


def parts(question):
    """What is seen by its plural, what is read, and what is asked."""
    seen, read, asked = PARTS.fullmatch(question.prompt).groups()
    things = [] if seen == "nothing" else [each.split(": ") for each in seen.split(", ")]
    return {name: int(count) for name, count in things}, read, asked


def of_kind(some, kind):
    found = [each for each in some if each.kind == kind]
    assert len(found) > 100
    return found


def test_every_prompt_has_the_one_form_and_every_kind_is_asked(some):
    assert all(PARTS.fullmatch(each.prompt) for each in some)
    assert set(Counter(each.kind for each in some)) == set(scene_questions.KINDS)


def test_of_what_is_asked_for_it_is_told_how_many_are_seen(some):
    answers = Counter[bool]()
    for each in of_kind(some, "count") + of_kind(some, "any"):
        seen, _, asked = parts(each)
        name, told = re.fullmatch(r" (.+): (\d+|none)\.", each.answer).groups()
        assert told == str(seen.get(name, "none"))
        known = {scene_questions.plural(label): label for label in scene_questions.COCO}
        label = known.get(name, name)
        called = {name, label, name.removesuffix("s"), name.removesuffix("es")}
        if alias := scene_questions.ALIASES.get(label):
            called |= {alias, scene_questions.plural(alias)}
        assert any(each in asked for each in called)
        answers[name in seen] += 1
    assert min(answers.values()) > 200


def test_a_list_tells_all_that_is_seen_as_it_is_written(some):
    for each in of_kind(some, "list"):
        seen, _, _ = parts(each)
        told = ", ".join(f"{name}: {count}" for name, count in seen.items())
        assert each.answer == f" I see {told or 'nothing'}."


def test_what_is_read_is_copied(some):
    found = of_kind(some, "read")
    for each in found:
        _, read, _ = parts(each)
        assert each.answer == (f" It says {read}." if read != "nothing" else " I see no text.")
    assert len({each.answer for each in found}) > len(found) / 2


def test_two_are_told_and_of_which_there_are_more(some):
    answers = Counter[int]()
    for each in of_kind(some, "more"):
        seen, _, _ = parts(each)
        found = re.fullmatch(r" (.+): (\w+), (.+): (\w+), so (as many|more (.+))\.", each.answer)
        one, first, other, second, _, more = found.groups()
        assert [first, second] == [str(seen.get(name, "none")) for name in (one, other)]
        counts = seen.get(one, 0), seen.get(other, 0)
        assert more == (None if counts[0] == counts[1] else one if counts[0] > counts[1] else other)
        answers[(counts[0] > counts[1]) - (counts[0] < counts[1])] += 1
    assert min(answers.values()) > 50


def test_nobody_learns_from_what_is_held_out(some):
    held = list(islice(scene_questions.questions(5, held_out=True), 200))
    assert all(each.held_out for each in held)
    assert not {each.prompt for each in held} & {each.prompt for each in some}
    assert not any(each.held_out for each in some)


def test_questions_follow_the_seed(some):
    assert list(islice(scene_questions.questions(5), 50)) == some[:50]
    assert list(islice(scene_questions.questions(6), 50)) != some[:50]
