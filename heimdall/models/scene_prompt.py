"""What the bundled language model is asked: what is seen, what is read, and a question.

The model (``assets/models/small_decoder.onnx``) has learnt prompts of this one form, which
``scripts/scene_questions.py`` writes with these functions, too:

    Seen: cups: 2, books: 1. Read: "SALE 20%". Question: how many cups are there? Answer:

Its answer begins with a space and ends with the token <|end|>.
"""

from __future__ import annotations

from collections.abc import Mapping

from heimdall.errors import ConfigError

MOST_LABELS = 4  # of what is seen
MOST_COUNT = 20  # of things with one label
MOST_LETTERS = 32  # of what is read
_PLURALS = {"person": "people", "mouse": "mice", "knife": "knives"}
_UNCHANGED = {"sheep", "skis", "scissors", "broccoli"}


def scene_prompt(seen: Mapping[str, int], read: str, question: str) -> str:
    """The prompt for things with their number, in the order in which they shall be told; a text,
    empty where there is none; and a question as it was typed or heard.

    The model knows prompts of up to MOST_LABELS things, of each MOST_COUNT, and a text of
    MOST_LETTERS: of more labels the first are told, of more things MOST_COUNT, and a longer text
    is cut. Raises ConfigError for a number below 1, or for a question without words.
    """
    if few := [label for label, count in seen.items() if count < 1]:
        raise ConfigError(f"seen: {seen[few[0]]} of {few[0]!r}: must be 1 or more; leave it out")
    words = "".join(each if each.isalnum() or each in "'-" else " " for each in question.lower())
    asked = " ".join(words.split())
    if not asked:
        raise ConfigError(f"question {question!r} has no words")
    things = [f"{plural(label)}: {min(count, MOST_COUNT)}" for label, count in seen.items()]
    told = ", ".join(things[:MOST_LABELS]) or "nothing"
    text = " ".join(read.replace('"', "'").split())[:MOST_LETTERS].strip()
    written = f'"{text}"' if text else "nothing"
    return f"Seen: {told}. Read: {written}. Question: {asked}? Answer:"


def plural(label: str) -> str:
    """Several of what a detector's label names: of COCO's, the right word."""
    if label in _UNCHANGED:
        return label
    if label in _PLURALS:
        return _PLURALS[label]
    if label.endswith(("s", "x", "ch", "sh")):
        return f"{label}es"
    if label.endswith("y") and label[-2:-1] not in {"", *"aeiou"}:
        return f"{label[:-1]}ies"
    return f"{label}s"
