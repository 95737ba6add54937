"""Reading in three stages: PP-OCR finds the lines of text, sees which are upside down, reads them.

A line is cut out flat. The reader's input is as wide as it was declared; what is longer is read in
pieces, cut where there is no ink. The network sees few of the spaces between words (desk.mp4 and a
printed page: 152 characters of 1772 wrong, nearly all of them spaces), so a wide gap is one too (30
wrong).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import cv2
import numpy as np

from heimdall.errors import ConfigError, ModelError
from heimdall.graph.graph import Graph
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.letterbox import shrink
from heimdall.models.results import TextLine, TextRegion
from heimdall.models.text import PPOCR

TALL = 48  # input pixels of a line's height
TURN_WIDTH = 192
UPSIDE_DOWN = 0.9  # probability above which a line is turned
VERTICAL = 1.5  # times as high as wide: the line runs downwards
STRIDE = 8  # input pixels of one letter's place in the output
SHORTEST = 0.6  # of the input's width: the least that a piece of a longer line takes
WORD_GAP = 11  # input pixels without ink that part two words
# Grey levels between a column's darkest and brightest pixel where a letter is: at least so many,
# and this share of what most of the line's letters have.
INK, INK_SHARE, INK_PERCENTILE = 15, 0.4, 90
UNSPACED = 0x2E80  # scripts from here on have no spaces between words


@dataclass(frozen=True)
class Line:
    """A line to be read: its corners (4, 2) from where its first letter begins, and its picture,
    BGR uint8 (48, any width, 3)."""

    corners: np.ndarray
    image: np.ndarray


@dataclass(frozen=True)
class Piece:
    """What was read of a part of ``line``; ``apart``: a gap between words is before it."""

    line: Line
    apart: bool
    text: str
    scores: tuple[float, ...]


class OCR(Pipeline[list[TextLine]]):
    """Result: list[TextLine], from top to bottom.

    ``size`` = (height, width) of the detector's input, multiples of 32: larger finds smaller text.
    ``width`` is that of the reader's input for a line 48 pixels high, a multiple of 8. ``score`` is
    the smallest mean probability of a line's letters; of ``most`` lines the largest are read.

    Request option ``region``, a box (left, top, right, bottom) in frame pixels: read there only,
    the closer, and of ``most`` lines those nearest to its middle.
    """

    size_step = PPOCR.size_step

    def __init__(
        self,
        size: tuple[int, int] = (480, 640),
        score: float = 0.5,
        width: int = 320,
        most: int = 20,
    ) -> None:
        if width < 2 * TALL or width % STRIDE:
            raise ConfigError(
                f"width {width} of ocr: give a multiple of {STRIDE}, {2 * TALL} at least"
            )
        self.score, self.width, self.most = score, width, most
        self._find = PPOCR(size)
        self._alphabet: list[str] = []
        self.networks = (
            *self._find.networks,
            Network("text_ppocr_cls_dynamic.onnx", {"x": (1, 3, TALL, TURN_WIDTH)}),
            Network("text_ppocrv4_rec_dynamic.onnx", {"x": (1, 3, TALL, width)}),
        )

    def bind(self, graphs: Sequence[Graph]) -> None:
        """Take the alphabet from the reader's file. Raises ModelError when it has none."""
        letters = graphs[2].metadata.get("character", "")
        self._alphabet = ["", *letters.split("\n"), " "]  # no letter comes first
        classes = graphs[2].outputs[0].shape[-1]
        if len(self._alphabet) != classes:
            raise ModelError(
                f"{graphs[2].name} tells {classes} letters apart, and its metadata 'character' "
                f"names {len(self._alphabet)}: use the file that came with its alphabet"
            )

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        if stage == 0:
            return self._find.prepare(0, image, previous, options)
        if stage == 1:
            regions = _first(previous[0], options.get("region"))[: self.most]
            lines = [flat(image, region) for region in regions]
            return [Prepared({"x": _tensor(each.image, TURN_WIDTH)}, each) for each in lines]
        tasks = []
        for line in previous:
            for start, end, apart in pieces(line.image, self.width):
                part = line.image[:, start:end]
                tasks.append(Prepared({"x": _tensor(part, self.width)}, (line, apart, part)))
        return tasks

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Any:
        """Stage 0: list[TextRegion]; 1: a Line, its first letter left; 2: a Piece."""
        if stage == 0:
            return self._find.decode(0, outputs, context)
        (found,) = outputs.values()
        if stage == 1:
            return turned(context) if found[0, 1] > UPSIDE_DOWN else context
        line, apart, part = context
        return Piece(line, apart, *self._read(found[0], inked(part)))

    def combine(self, results: Sequence[Sequence[Any]], image: np.ndarray) -> list[TextLine]:
        if len(results) < 3:
            return []
        lines = []
        for _, group in groupby(results[2], key=lambda piece: id(piece.line)):
            parts = list(group)
            text = "".join((" " if part.apart else "") + part.text for part in parts).strip()
            scores = [score for part in parts for score in part.scores]
            if text and np.mean(scores) >= self.score:
                lines.append(TextLine(parts[0].line.corners, float(np.mean(scores)), text))
        return sorted(lines, key=lambda line: float(line.corners[:, 1].min()))

    def _read(self, places: np.ndarray, ink: np.ndarray) -> tuple[str, tuple[float, ...]]:
        """The likeliest letter of each place (places, letters), one that lasts once; and spaces,
        where there is no ``ink`` for long."""
        if not self._alphabet:
            raise ModelError("this OCR is not bound to its networks: call bind(graphs) first")
        best = places.argmax(axis=1)
        first = np.flatnonzero((best > 0) & (best != np.concatenate([[0], best[:-1]])))
        text = ""
        for before, place in zip([None, *first], first, strict=False):
            letter = self._alphabet[best[place]]
            if before is not None and _part_words(text[-1], letter):
                between = ink[int((before + 0.5) * STRIDE) : int((place + 0.5) * STRIDE)]
                text += " " if _widest_gap(between)[0] >= WORD_GAP else ""
            text += letter
        return text, tuple(places[first, best[first]].tolist())


def flat(image: np.ndarray, region: TextRegion) -> Line:
    """A line as it would be on a page before us, 48 pixels high."""
    corners = region.corners.astype(np.float32)
    sides = np.linalg.norm(corners - np.roll(corners, -1, axis=0), axis=1)
    wide, high = float(sides[[0, 2]].max()), float(sides[[1, 3]].max())
    if high >= VERTICAL * wide:  # it is read from above, or from below
        corners, wide, high = np.roll(corners, -1, axis=0), high, wide
    across, down = max(round(wide), 1), max(round(high), 1)
    ends = np.array([[0, 0], [across, 0], [across, down], [0, down]], np.float32)
    part = cv2.warpPerspective(
        image,
        cv2.getPerspectiveTransform(corners, ends),
        (across, down),
        flags=cv2.INTER_CUBIC,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return Line(corners, shrink(part, max(round(across * TALL / down), 1), TALL))


def turned(line: Line) -> Line:
    """This line, when it was upside down."""
    return Line(np.roll(line.corners, -2, axis=0), np.ascontiguousarray(line.image[::-1, ::-1]))


def pieces(line: np.ndarray, width: int) -> list[tuple[int, int, bool]]:
    """Columns [start, end) of a line's picture that fit into ``width``, and whether a gap between
    words is before them: cut in the middle of the widest gap that can be had."""
    length, ink = line.shape[1], inked(line)
    found, start, apart = [], 0, False
    while length - start > width:
        low, high = start + int(SHORTEST * width), start + width
        end = low + _widest_gap(ink[low:high])[1]
        found.append((start, end, apart))
        start, apart = end, _gap_at(ink, end) >= WORD_GAP
    return [*found, (start, length, apart)]


def inked(line: np.ndarray) -> np.ndarray:
    """In which columns of a line's picture something is printed, bool."""
    grey = cv2.cvtColor(line, cv2.COLOR_BGR2GRAY).astype(np.int16)
    contrast = np.ptp(grey, axis=0)
    return contrast > max(INK, INK_SHARE * float(np.percentile(contrast, INK_PERCENTILE)))


def _part_words(one: str, other: str) -> bool:
    """Whether a gap between these letters would be a space, and is none yet."""
    return " " not in (one, other) and max(ord(one), ord(other)) < UNSPACED


def _widest_gap(ink: np.ndarray) -> tuple[int, int]:
    """How wide the widest run of columns without ink is, the last of several, and its middle; the
    end of all, where there is none."""
    best, middle, run = 0, len(ink), 0
    for column, inked in enumerate(ink):
        run = 0 if inked else run + 1
        if run and run >= best:
            best, middle = run, column + 1 - run // 2
    return best, middle


def _gap_at(ink: np.ndarray, column: int) -> int:
    """How many columns without ink there are around this one, from ink to ink."""
    before, after = np.flatnonzero(ink[:column]), np.flatnonzero(ink[column:])
    end = column + int(after[0]) if len(after) else len(ink)
    return end - (int(before[-1]) + 1 if len(before) else 0)


def _tensor(line: np.ndarray, width: int) -> np.ndarray:
    """A line in an input (1, 3, 48, width): at its left, or squeezed into it."""
    if line.shape[1] > width:
        line = shrink(line, width, TALL)
    tensor = np.zeros((1, 3, TALL, width), np.float32)
    tensor[0, :, :, : line.shape[1]] = line.transpose(2, 0, 1) * np.float32(1 / 127.5) - 1
    return tensor


def _first(regions: Sequence[TextRegion], box: Sequence[float] | None) -> list[TextRegion]:
    """The regions nearest to the middle of the box first; without one, the largest."""
    if box is None:
        return sorted(
            regions, key=lambda each: -cv2.contourArea(np.asarray(each.corners, np.float32))
        )
    middle = np.reshape(np.asarray(box, np.float32), (2, 2)).mean(axis=0)
    return sorted(regions, key=lambda each: float(np.hypot(*(each.corners.mean(axis=0) - middle))))
