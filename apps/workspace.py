"""Augmented interactive workspace: documents open beside what is pointed at.

The second scenario of the Heimdall paper (section 2.1): text detection outlines what can be
selected, the index finger (or the mouse) selects, and a pinch (or a click) reads what is printed
there and looks it up in a folder of documents, by its words, else by its looks; the page that
matches is pinned beside it. A pinch held for a second keeps a picture and a JSON file.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np

from heimdall import DNN, Anchor, App, Hand, Key, Pointer, Scene, TextLine, TextRegion
from heimdall.system import paths

from .content import notes
from .content.documents import Document, Library
from .content.places import around, cut, height, sheet

PINCH, HOLD_S = 0.35, 1.0  # a pinch held so long keeps a note
LEGIBLE = 9.0  # pixels: lower text is not worth selecting
REACH = 0.2  # of the picture's width: how far from a text a finger may point
TALL = 0.58  # a page's height over the picture's
SEARCHED = (160, 110)  # pixels each way around a text are looked up: they say more than it
KEPT = 2  # pages that stay open


@dataclass
class Opened:
    """A page pinned beside the text ``source``: its middle was at ``place`` when it opened."""

    document: Document
    source: Anchor
    place: np.ndarray


class Workspace(App):
    """Point at a text and pinch: the document about it opens beside it."""

    title = "Augmented workspace"
    fps = 30
    scheduler = "max-total"
    clip = "desk.mp4"
    documents: ClassVar[Path] = paths.ASSETS / "documents"
    notes: ClassVar[Path] = Path("notes")
    keys: ClassVar = {"x": "close the pages"}
    gestures: ClassVar = {"click, pinch": "look it up", "right click, long pinch": "keep it"}
    dnns = (  # rates as in the paper's Table 1
        DNN("text", model="ppocr", rate_hz=1, max_rate_hz=5),
        DNN("hand", model="hand", rate_hz=1, max_rate_hz=10),
        DNN("read", model="ocr", on_event=True, latency_constraint_ms=1000, options={"most": 4}),
    )

    def __init__(self) -> None:
        super().__init__()
        self.library = Library(self.documents)
        self.found: list[tuple[Document | None, Anchor]] = []  # answers from the background
        self.opened: list[Opened] = []
        self.image: np.ndarray | None = None  # the newest picture that a network has seen
        self.tip: np.ndarray | None = None  # where the finger or the mouse points
        self.texts: list[TextRegion] = []
        self.selected: TextRegion | None = None
        self.source: Anchor | None = None  # the text that is being read
        self.sought = (0.0, 0.0, 0.0, 0.0)  # the box around it
        self.words: list[str] = []  # what was read last
        self.pinched_s: float | None = None  # since when; None: the fingers are open
        self.buttons: frozenset[str] = frozenset()
        self.message, self.message_until_s = "", 0.0

    def demo_events(self) -> Iterator[float]:
        for turn in count():
            yield 1.0
            if self.texts:  # as the mouse would
                self.tip = self.texts[turn % len(self.texts)].corners.mean(axis=0)
            yield 1.0
            self.search()

    def on_result(self, dnn, result, frame) -> None:
        self.image = frame.image
        if dnn == "hand" and result:
            self.follow(result[0])
        elif dnn == "read":
            self.look_up(result)

    def follow(self, hand: Hand) -> None:
        """The index finger points; thumb and index together search, held they keep a note."""
        if hand.pointing:
            self.tip = hand.points[8, :2]
        now_s = time.monotonic()
        if hand.pinch >= PINCH:
            self.pinched_s = None
        elif self.pinched_s is None:
            self.pinched_s = now_s
            self.search()
        elif now_s - self.pinched_s > HOLD_S:
            self.pinched_s = float("inf")  # once a pinch
            self.keep_note()

    def select(self, texts: list[TextRegion]) -> TextRegion | None:
        """The text nearest to the fingertip, if one is within reach."""
        if self.tip is None or self.image is None or not texts:
            return None
        tip = self.tip.astype(float).tolist()
        away = [-cv2.pointPolygonTest(text.corners.astype(np.float32), tip, True) for text in texts]
        return texts[np.argmin(away)] if min(away) < REACH * self.image.shape[1] else None

    def search(self) -> None:
        """Read the selected text and those around it; the answer comes some frames later."""
        if self.selected is not None:
            middle = self.selected.corners.mean(axis=0)
            self.source = self.anchor((float(middle[0]), float(middle[1])))
            beside = [text.corners - middle for text in self.texts if near(text, middle)]
            reach = np.abs(np.vstack([*beside, SEARCHED])).max(axis=0)
            self.sought = around(np.vstack([middle - reach, middle + reach]), 0)
            self.request("read", region=self.sought)

    def look_up(self, lines: list[TextLine]) -> None:
        """Find the document that says this, or shows what is there."""
        if self.source is None or self.image is None:
            return
        source, at = self.source, np.array(self.source.at)
        lines = sorted(lines, key=lambda line: float(np.linalg.norm(line.corners.mean(0) - at)))
        self.words = words = [line.text for line in lines]  # what was pointed at comes first
        self.tell(textwrap.shorten(words[0], 60) if words else "nothing to read")
        patch = cut(self.image, self.sought)
        self.in_background(lambda: self.found.append((self.library.find(patch, words), source)))

    def open(self, document: Document | None, source: Anchor, size: tuple[int, int]) -> None:
        """Pin a page beside its text, right or left; one that is open stays where it is."""
        if document is None:
            self.tell("no document shows this")
        elif document not in [opened.document for opened in self.opened]:
            taken = [opened.place[0] > size[0] / 2 for opened in self.opened[1 - KEPT :]]
            place = np.array([(0.17 if True in taken else 0.83), 0.34]) * size
            self.opened = [*self.opened, Opened(document, source, place)][-KEPT:]

    def keep_note(self) -> None:
        """Save the selected text as a picture, and what was read, where and when as JSON."""
        if self.selected is None or self.image is None:
            return
        corners = self.selected.corners
        about = {
            "corners": corners.round(1).tolist(),
            "score": round(self.selected.score, 3),
            "read": self.words,
            "documents": [opened.document.path.name for opened in self.opened],
        }
        notes.keep(self.notes, cut(self.image, around(corners, 4)), about)
        self.tell(f"note kept in {self.notes}")

    def tell(self, message: str) -> None:
        self.message, self.message_until_s = message, time.monotonic() + 2

    def draw(self, scene: Scene) -> None:
        while self.found:
            self.open(*self.found.pop(0), scene.picture_size)
        texts = [text for text in self.tracked("text") or [] if height(text.corners) >= LEGIBLE]
        self.texts, self.selected = texts, self.select(texts)
        scene.polygons([text.corners for text in texts if text is not self.selected], "#7dd3fc")
        if self.selected is not None:
            scene.polygons([self.selected.corners], "#facc15")
        scene.hands(self.tracked("hand") or [])
        for opened in self.opened:
            self.draw_page(scene, opened)
        if time.monotonic() < self.message_until_s:
            scene.text(self.message, at=(12, scene.free[3] - 32))

    def draw_page(self, scene: Scene, opened: Opened) -> None:
        """The page, turned a little towards the text, and a line that leads to it."""
        page, at = opened.document.page, np.array(opened.source.at)
        place = opened.place + at - opened.source.origin
        corners, edge = sheet(page, place, TALL, scene.picture_size, at)
        scene.skeleton(np.array([at, edge]), [(0, 1)], "#facc15")
        scene.picture(page, corners)

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        self.tip = np.array(scene.to_picture(pointer.x, pointer.y))
        pressed, self.buttons = pointer.buttons - self.buttons, pointer.buttons
        if "left" in pressed:
            self.search()
        elif "right" in pressed:
            self.keep_note()

    def on_key(self, key: Key) -> None:
        if key.pressed and key.name == "x":
            self.opened = []


def near(text: TextRegion, place: np.ndarray) -> bool:
    """Whether the middle of a text is near enough to belong to what is looked up there."""
    return bool((abs(text.corners.mean(axis=0) - place) < SEARCHED).all())
