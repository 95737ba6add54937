"""Questions about what is seen and read, with their answers: what the small decoder learns from.

Everything is drawn at random from lists and made-up words. Prompts are of one form
(``heimdall.models.scene_prompt``), and an answer follows from its prompt, so it can be checked.
"""

from __future__ import annotations

import hashlib
import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

from heimdall.models.detect import COCO
from heimdall.models.scene_prompt import (
    MOST_COUNT,
    MOST_LABELS,
    MOST_LETTERS,
    plural,
    scene_prompt,
)

# Other names by which people ask for what a detector calls by its own.
ALIASES = {
    "airplane": "plane", "bicycle": "bike", "cell phone": "phone", "couch": "sofa",
    "dining table": "table", "donut": "doughnut", "motorcycle": "motorbike", "person": "human",
    "potted plant": "plant", "refrigerator": "fridge", "sports ball": "ball", "tv": "television",
}  # fmt: skip
# {0} is one of a thing with its article, {1} are several.
COUNT = (
    "how many {1} are there", "how many {1} do you see", "how many {1} can you see",
    "how many {1}", "count the {1}", "what is the number of {1}", "how many {1} are here",
)  # fmt: skip
ANY = (
    "is there {0}", "do you see {0}", "can you see {0}", "is {0} there", "is {0} here",
    "are there any {1}", "are there {1}", "do you see any {1}", "can you see any {1}",
    "do you see {1}",
)  # fmt: skip
LIST = (
    "what do you see", "what can you see", "what is there", "what is here", "what's there",
    "what's here", "what is in front of me", "describe what you see", "list what you see",
    "which things do you see", "what are you looking at", "describe the scene", "what is this",
    "what things are there", "what is on the table", "tell me what you see",
)  # fmt: skip
READ = (
    "what does it say", "read it to me", "read it", "read this", "read this to me", "read that",
    "read the text", "what is written there", "what is written here", "what is written on it",
    "what does the sign say", "what does the label say", "what does this say", "what does that say",
    "what can you read", "what do you read", "what text do you see", "what is the text",
    "read the sign", "read the label", "what's written there", "what does the text say",
)  # fmt: skip
MORE = (
    "are there more {0} or {1}", "which is more {0} or {1}", "what is more {0} or {1}",
    "do you see more {0} or {1}", "are there more {0} than {1}", "more {0} or {1}",
    "of which are there more {0} or {1}", "do you see more {0} than {1}",
)  # fmt: skip
UNKNOWN = (
    "what time is it", "what day is it", "what is your name", "who are you", "how are you",
    "how old are you", "what is the weather like", "is it raining", "is it cold outside",
    "where am i", "where are we", "what is two plus two", "tell me a joke", "play some music",
    "why is the sky blue", "who is the president", "what is behind me", "what is the time",
    "how long is a day", "what is the meaning of life", "can you help me", "what should i eat",
    "what colour is {2}", "what color is {2}", "how old is {2}", "how big is {2}",
    "how heavy is {2}", "how much is {2}", "how much does {2} cost", "where is {2} from",
    "whose is {2}", "who made {2}", "why is {2} here", "is {2} heavy", "is {2} new",
    "is {2} clean", "what is {2} made of", "what brand is {2}", "how far is {2}", "is {2} mine",
    "when was {2} made", "can i eat {2}", "does {2} work", "is {2} expensive",
)  # fmt: skip
ANSWERS = ("I see nothing", "none", "so more", "so as many", "It says", "I see no text", "I do not")
BEFORE = ("please", "tell me", "hey", "please tell me", "hello", "can you tell me", "and", "so")
AFTER = ("please", "now", "here", "in front of me", "in the picture", "right now", "over there")
SIGNS = string.digits + "%$#&+-*/.,:;!?()'@=_<>"
FOREIGN = "äöüßéèêàçñøåí€£°"


def words() -> list[str]:
    """All words of prompts and answers that are no text that is read, nor made up; of things, the
    singular, and plurals that are words of their own."""
    prompts = scene_prompt({}, "", "what").replace("what", "")
    groups = (COUNT, ANY, LIST, READ, MORE, UNKNOWN, BEFORE, AFTER, ANSWERS)
    texts = [prompts, *COCO, *ALIASES.values(), *map(plural, ("person", "mouse", "knife"))]
    texts += [text for group in groups for text in group]
    found = (re.findall(r"[A-Za-z]{2,}", re.sub(r"{\d}", "", text)) for text in texts)
    return sorted({word for some in found for word in some})


@dataclass(frozen=True)
class Question:
    """One of a kind, with all that stands before the answer, and the answer with its space."""

    kind: str
    prompt: str
    answer: str

    @property
    def held_out(self) -> bool:
        """True for one in 32, by the prompt alone: nobody learns from those."""
        return hashlib.sha256(self.prompt.encode()).digest()[0] < 8


def questions(seed: int, *, held_out: bool = False) -> Iterator[Question]:
    """One after the other, without an end: those to learn from, or those to be judged by."""
    draw = random.Random(seed)
    while True:
        found = question(draw, draw.choices(tuple(KINDS), WEIGHTS)[0])
        if found.held_out == held_out:
            yield found


def question(draw: random.Random, kind: str) -> Question:
    """One question of a kind."""
    labels = draw.sample(COCO, 0 if draw.random() < 0.06 else draw.randint(1, MOST_LABELS))
    scene = Scene({label: _count(draw) for label in labels}, _text(draw))
    asked, answer = KINDS[kind](draw, scene)
    if draw.random() < 0.1:
        asked = f"{draw.choice(BEFORE)} {asked}"
    if draw.random() < 0.1:
        asked = f"{asked} {draw.choice(AFTER)}"
    return Question(kind, scene_prompt(scene.seen, scene.read, asked), f" {answer}")


@dataclass(frozen=True)
class Scene:
    """How many of which label are seen, and what is read: "" for nothing."""

    seen: dict[str, int]
    read: str

    def of(self, label: str) -> int:
        return self.seen.get(label, 0)

    def told(self, label: str) -> str:
        return f"{plural(label)}: {self.of(label) or 'none'}"


def _how_many(draw: random.Random, scene: Scene) -> tuple[str, str]:
    label, name = _thing(draw, scene)
    return draw.choice(COUNT).format(_one(name), plural(name)), f"{scene.told(label)}."


def _is_there(draw: random.Random, scene: Scene) -> tuple[str, str]:
    label, name = _thing(draw, scene)
    return draw.choice(ANY).format(_one(name), plural(name)), f"{scene.told(label)}."


def _what(draw: random.Random, scene: Scene) -> tuple[str, str]:
    return draw.choice(LIST), f"I see {', '.join(map(scene.told, scene.seen)) or 'nothing'}."


def _say(draw: random.Random, scene: Scene) -> tuple[str, str]:
    return draw.choice(READ), f'It says "{scene.read}".' if scene.read else "I see no text."


def _which_more(draw: random.Random, scene: Scene) -> tuple[str, str]:
    (first, one), (second, other) = _thing(draw, scene), _thing(draw, scene)
    while second == first:
        second, other = _thing(draw, scene)
    told, counts = (
        f"{scene.told(first)}, {scene.told(second)}",
        (scene.of(first), scene.of(second)),
    )
    more = f"more {plural(first if counts[0] > counts[1] else second)}"
    found = "as many" if counts[0] == counts[1] else more
    return draw.choice(MORE).format(plural(one), plural(other)), f"{told}, so {found}."


def _unknown(draw: random.Random, scene: Scene) -> tuple[str, str]:
    _, name = _thing(draw, scene)
    the = f"{draw.choice(('the', 'this', 'that', 'my'))} {name}"
    return draw.choice(UNKNOWN).format("", "", the), "I do not see that."


KINDS = {
    "count": _how_many, "any": _is_there, "list": _what, "read": _say, "more": _which_more,
    "unknown": _unknown,
}  # fmt: skip
WEIGHTS = (0.22, 0.22, 0.14, 0.16, 0.2, 0.06)


def _thing(draw: random.Random, scene: Scene) -> tuple[str, str]:
    """A label, mostly of what is seen, and what it is called; made-up ones are not seen."""
    if scene.seen and draw.random() < 0.7:
        label = draw.choice(list(scene.seen))
    elif draw.random() < 0.3:
        return (word := _word(draw)), word
    else:
        label = draw.choice(COCO)
    return label, ALIASES[label] if label in ALIASES and draw.random() < 0.3 else label


def _one(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _count(draw: random.Random) -> int:
    if draw.random() < 0.4:
        return 1
    return draw.randint(1, 9) if draw.random() < 0.85 else draw.randint(1, MOST_COUNT)


def _text(draw: random.Random) -> str:
    """What a sign, a label or a page may say: mostly short."""
    if draw.random() < 0.3:
        return ""
    longest = min(MOST_LETTERS, 3 + int(draw.expovariate(1 / 8)))
    text = _piece(draw)
    while len(text) < longest and draw.random() < 0.8:
        text += draw.choice("      -/.:") + _piece(draw)
    return " ".join(text[:longest].split())


def _piece(draw: random.Random) -> str:
    chance = draw.random()
    if chance < 0.25:  # such words as are in prompts
        group = draw.choice((COUNT, ANY, LIST, READ, MORE, UNKNOWN, COCO, COCO, COCO))
        found = re.findall("[a-z]+", re.sub(r"{\d}", "", draw.choice(group)))
        return _cased(draw, draw.choice(found))
    if chance < 0.75:
        return _cased(draw, _word(draw))
    if chance < 0.93:
        number = "".join(draw.choices(string.digits, k=draw.randint(1, 4)))
        return number + draw.choice(("", "", "", "%", " kg", "€", ":30", ".99", "th", " km", "!"))
    letters = string.ascii_letters + SIGNS + FOREIGN
    return "".join(draw.choices(letters, k=draw.randint(1, 4)))


def _word(draw: random.Random) -> str:
    """A made-up word that can be pronounced."""
    starts, vowels, ends = (
        "bcdfghjklmnprstvwz",
        "aeiou",
        ("", "", "n", "r", "s", "t", "l", "m", "ck"),
    )
    parts = [
        draw.choice(starts) + draw.choice(vowels) + draw.choice(ends)
        for _ in range(draw.randint(1, 3))
    ]
    return "".join(parts)


def _cased(draw: random.Random, word: str) -> str:
    return draw.choice((word, word.upper(), word.capitalize()))
