"""An assistant that sees, hears and answers: a language model beside a detector and a reader.

It looks at what is in the picture (a detector) and reads what is written there, and a language
model answers questions about that on a card, token by token, while frames go on. Keys 1 to 4 ask;
where it is given sound (`--sound microphone`), "next" asks the next question, "away" closes the
card.

The model that comes along is small and was trained for this form of questions alone
(`scripts/small_decoder.py`). Any other ONNX decoder with a cache will do: `ASSISTANT_MODEL` is the
path of its file, which has its tokenizer.json beside it.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from heimdall import DNN, Answer, App, Detection, Generate, Key, Label, Scene, TextLine
from heimdall.models.scene_prompt import scene_prompt
from heimdall.system import paths

MODEL = os.environ.get("ASSISTANT_MODEL", "")
BUNDLED = "small_decoder.onnx"
TOKENIZER = paths.ASSETS / "models" / "small_decoder_tokenizer.json"
END = "<|end|>"

QUESTIONS = (
    "what do you see",
    "what does it say",
    "how many people are there",
    "is there a cup",
)
WIDTH, MOST_LINES = 44, 6  # of the card, in letters and lines
MOST_TOKENS = 48


class Assistant(App):
    """Ask about what the camera sees: the answer comes on a card."""

    title = "Assistant"
    fps = 30
    scheduler = "max-total"
    clip = "cup.mp4"
    keys: ClassVar = {
        **{str(number): f"{question}?" for number, question in enumerate(QUESTIONS, 1)},
        "x": "close the card",
    }
    gestures: ClassVar = {"say, with --sound": "next, away"}
    dnns = (
        DNN("detect", model="nanodet", rate_hz=1, max_rate_hz=5),
        DNN("read", model="ocr", on_event=True, latency_constraint_ms=1000, options={"most": 2}),
    )
    sound_dnns = (DNN("words", model="keywords"),)
    answer = Generate(
        MODEL or BUNDLED,
        tokenizer=None if MODEL else TOKENIZER,
        ends=() if MODEL else (END,),
        context=512,
        rows=32,
    )

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self.asked = ""  # the question on the card
        self.waiting = ""  # one that waits for what is written in the picture
        self.reply: Answer | None = None
        self.turn = 0  # of the questions that are asked one after the other

    def demo_events(self) -> Iterator[float]:
        while True:
            yield 2.0
            self.next()

    def next(self) -> None:
        """The next of the questions."""
        self.ask(QUESTIONS[self.turn % len(QUESTIONS)])
        self.turn += 1

    def ask(self, question: str) -> None:
        """Read what is in the picture, then have the question answered."""
        self.waiting = question
        self.request("read")

    def close(self) -> None:
        """Away with the card, and what is being written on it."""
        if self.reply is not None:
            self.reply.cancel()
        self.reply, self.asked = None, ""

    def on_result(self, dnn, result, frame) -> None:
        if dnn == "detect":
            self.look(result)
        elif dnn == "read" and self.waiting:
            self.put(self.waiting, result)
        elif dnn == "words":
            self.obey(result)

    def look(self, objects: list[Detection]) -> None:
        """What is there, the largest first."""
        objects = sorted(objects, key=lambda found: -size(found))
        self.seen = Counter(found.label for found in objects)

    def put(self, question: str, lines: list[TextLine]) -> None:
        """The question, with what is seen and read, to the language model."""
        self.close()
        read = " ".join(line.text for line in lines)
        prompt = scene_prompt(self.seen, read, question)
        self.asked, self.waiting = question, ""
        self.reply = self.answer.ask(prompt, most=MOST_TOKENS, stop="\n")

    def obey(self, words: list[Label]) -> None:
        """What was said."""
        for word in words:
            if word.name == "next":
                self.next()
            elif word.name == "away":
                self.close()

    def draw(self, scene: Scene) -> None:
        scene.boxes(self.tracked("detect") or [])
        if self.reply is not None:
            scene.text(f"{self.asked}?", bold=True)
            scene.text("\n".join(card(self.reply)))

    def on_key(self, key: Key) -> None:
        if not key.pressed:
            return
        if key.name == "x":
            self.close()
        elif key.name.isdigit() and 1 <= int(key.name) <= len(QUESTIONS):
            self.ask(QUESTIONS[int(key.name) - 1])


def size(found: Detection) -> float:
    """Of a box, in pixels."""
    left, top, right, bottom = found.box
    return float((right - left) * (bottom - top))


def card(reply: Answer) -> list[str]:
    """The newest lines of an answer, and what became of it."""
    text = reply.text.strip() or ("" if reply.done else "...")
    lines = textwrap.wrap(text, WIDTH)[-MOST_LINES:]
    if reply.reason == "failed":
        lines.append(f"(no more: {reply.error})")
    return lines or ["(no answer)"]
