"""A folder of Markdown documents that is searched by words, then by looks.

What was read is compared with the documents letter by letter, in runs of five without the spaces
between words (Broder 1997: containment of shingles): a reader that takes a 0 for an o, or misses a
space, still finds the page. Where nothing can be read, what is pointed at is compared with the
document's pictures and its own page, by SIFT features whose places agree on one perspective (Lowe
2004: ratio test, then RANSAC).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from heimdall.errors import ConfigError

from .pages import page, pictures

# How a picture is stretched before it is compared: SIFT forgives half a foreshortening, and a
# page on a table is seen from so low that its lines are half as high as they are far apart.
STRETCHES = ((1.0, 1.0), (1.5, 2.4))
_RATIO = 0.75  # the best match must be so much nearer than the second best
_AGREEING = 8  # features that must fit one perspective: right documents had 8-60, wrong ones 0-6
_MISFIT = 4.0  # pixels
_FEATURES = 1000
_ZOOM = (0.02, 50.0)  # areas that grow or shrink more are a wrong fit
# Of what was read, runs of letters so long; how many there must be, and which share of them a
# document must hold.
_RUN, _RUNS, _HELD = 5, 8, 0.5
_SQUARE = np.array([[0, 0], [100, 0], [100, 100], [0, 100]], np.float32)


@dataclass(frozen=True)
class Look:
    """The features of one picture: places (n, 2) and descriptors (n, 128)."""

    places: np.ndarray
    descriptors: np.ndarray

    def agreement(self, other: Look) -> int:
        """How many places of this picture show features of ``other`` in one perspective."""
        if min(len(self.places), len(other.places)) < 2:
            return 0
        pairs = cv2.BFMatcher(cv2.NORM_L2).knnMatch(other.descriptors, self.descriptors, k=2)
        good = [near for near, next_ in pairs if near.distance < _RATIO * next_.distance]
        if len(good) < _AGREEING:
            return 0
        source = other.places[[match.queryIdx for match in good]]
        target = self.places[[match.trainIdx for match in good]]
        fitted, inside = cv2.findHomography(source, target, cv2.USAC_MAGSAC, _MISFIT)
        if fitted is None or not _plausible(fitted, source.mean(axis=0)):
            return 0
        kept = target[inside.ravel() > 0]
        return len(np.unique((kept / _MISFIT).round(), axis=0))  # letters look alike: count places


def _plausible(homography: np.ndarray, middle: np.ndarray) -> bool:
    """A picture may be turned and seen at a slant, but not mirrored or crushed to a line."""
    around = _SQUARE + middle - 50
    area = cv2.contourArea(cv2.perspectiveTransform(around[None], homography)[0], oriented=True)
    return _ZOOM[0] < area / cv2.contourArea(around, oriented=True) < _ZOOM[1]


@dataclass(frozen=True)
class Document:
    """A Markdown file: its title, its first page as RGBA uint8 (h, w, 4), how it looks, and the
    runs of letters in it."""

    title: str
    path: Path
    page: np.ndarray
    looks: tuple[Look, ...]
    runs: frozenset[str]


class Library:
    """The documents of ``folder``, in the order of their names.

    Raises ConfigError when the folder has none or one cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.documents = [_open(path) for path in sorted(folder.glob("*.md"))]
        if not self.documents:
            raise ConfigError(f"no documents in {folder}: put Markdown files (*.md) there")

    def find(self, picture: np.ndarray, lines: Sequence[str] = ()) -> Document | None:
        """The document that says what ``lines`` say, else the one that shows what ``picture``, BGR
        uint8 (h, w, 3), shows; None if none does. Looking takes 0.1-0.3 s: call it on a thread of
        your own."""
        return self.saying(lines) or self.showing(picture)

    def saying(self, lines: Sequence[str]) -> Document | None:
        """The document with the words of these lines, as they were read; None where they are too
        few, or in no document."""
        read = frozenset().union(*(runs(line) for line in lines))
        if len(read) < _RUNS:
            return None
        held, document = max(
            ((len(read & each.runs), each) for each in self.documents), key=lambda found: found[0]
        )
        return document if held >= _HELD * len(read) else None

    def showing(self, picture: np.ndarray) -> Document | None:
        """The document that shows what ``picture`` shows; None if none does."""
        views = [
            look(cv2.resize(picture, None, fx=x, fy=y, interpolation=cv2.INTER_CUBIC))
            for x, y in STRETCHES
        ]
        ranked = [(_best(document, views), document) for document in self.documents]
        agreeing, document = max(ranked, key=lambda each: each[0])
        return document if agreeing >= _AGREEING else None


def runs(text: str) -> frozenset[str]:
    """Every run of five letters and digits of a text, whatever is between them."""
    letters = "".join(filter(str.isalnum, text.casefold()))
    return frozenset(letters[start : start + _RUN] for start in range(len(letters) - _RUN + 1))


def look(picture: np.ndarray) -> Look:
    """The SIFT features of a picture, BGR uint8 (h, w, 3)."""
    grey = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    sift = cv2.SIFT_create(_FEATURES)  # type: ignore[attr-defined]
    points, descriptors = sift.detectAndCompute(grey, None)
    if descriptors is None:
        descriptors = np.zeros((0, 128), np.float32)
    return Look(np.array([point.pt for point in points], np.float32).reshape(-1, 2), descriptors)


def _best(document: Document, views: list[Look]) -> int:
    return max(each.agreement(view) for each in document.looks for view in views)


def _open(path: Path) -> Document:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read document {path}: {error}") from error
    lines = [line.lstrip("# ").strip() for line in text.splitlines()]
    title = next((line for line in lines if line), path.stem)
    sheet = page(text, folder=path.parent)
    read = [cv2.imread(str(path.parent / name)) for name in pictures(text)]
    shown = [picture for picture in read if picture is not None]
    looks = [look(picture) for picture in (np.ascontiguousarray(sheet[..., 2::-1]), *shown)]
    return Document(title, path, sheet, tuple(looks), runs(text))
