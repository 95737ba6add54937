"""Matches things of a new result with those known before: by place, by kind and by looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.tracking.assign import pairs
from heimdall.tracking.motion import Motion

# What it costs to take one box for another, beside what they do not overlap (1 - IoU):
DISTANT = 0.5  # each mean side between their middles
UNLIKE = 5.0  # looks that differ by all there is
OTHER = 0.4  # another label: networks waver between a car and a lorry
LATE = 0.1  # each result that it was missing from
LIMIT = 2.5  # a pair that costs more is no match
# How far, in mean sides, it may be from where it was expected:
SIGMAS, NEAREST = 3.0, 0.7  # by what that was uncertain by, but no less than this
FARTHEST = 2.0  # no more than this; and that far, too, what looks the same
TWINS = 0.1  # looks that differ by less are the same
SHARED = 0.25  # of a box that lies in another's: it shows the looks of several
NEWS = 0.3  # of new looks in those that are remembered
CELLS = (3, 6)  # of looks: colours across and down a box
UNKNOWN = 0.12  # how much two differ on average of which one was never seen
INNER = 0.2  # of a box's sides: so much at its edges is mostly background


@dataclass
class Known:
    """All things (n) that are known: ids, labels, from how many results they have been missing
    since, and looks (n, 54)."""

    ids: list[int]
    labels: list[str]
    missed: np.ndarray
    looks: np.ndarray

    def chosen(self, rows: np.ndarray) -> Known:
        ids, labels = [self.ids[row] for row in rows], [self.labels[row] for row in rows]
        return Known(ids, labels, self.missed[rows], self.looks[rows])

    def joined(self, other: Known) -> Known:
        """These and the others."""
        return Known(
            self.ids + other.ids,
            self.labels + other.labels,
            np.concatenate([self.missed, other.missed]),
            np.concatenate([self.looks, other.looks]),
        )

    def recognised(
        self, expected: Motion, boxes: np.ndarray, labels: Sequence[str], looks: np.ndarray
    ) -> list[tuple[int, int]]:
        """(row here, row of the new ``boxes`` (m, 4)) of each pair that is the same thing."""
        cost = _costs(expected, boxes, unlike(self.looks, looks)) + LATE * self.missed[:, None]
        for row, label in enumerate(self.labels):
            cost[row] += OTHER * np.array([label != other for other in labels], float)
        return pairs(cost, LIMIT)


def looks(image: np.ndarray | None, boxes: np.ndarray) -> np.ndarray:
    """The colours (n, 54), each 0..1, of the middle of ``boxes`` (n, 4) in ``image``, BGR uint8.
    Of what lies outside of the picture they are NaN."""
    found = np.full((len(boxes), CELLS[0] * CELLS[1] * 3), np.nan, np.float32)
    if image is None:
        return found
    height, width = image.shape[:2]
    margin = INNER * (boxes[:, 2:] - boxes[:, :2])
    low = np.clip(boxes[:, :2] + margin, 0, (width, height)).astype(int)
    high = np.clip(np.ceil(boxes[:, 2:] - margin), 0, (width, height)).astype(int)
    for row, ((left, top), (right, bottom)) in enumerate(zip(low, high, strict=True)):
        if right > left and bottom > top:
            piece = cv2.resize(image[top:bottom, left:right], CELLS, interpolation=cv2.INTER_AREA)
            found[row] = piece.ravel() / np.float32(255)
    return found


def unlike(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(n, m): how much each of ``one`` (n, 54) differs from each of ``other`` (m, 54): 0 to 1, and
    ``UNKNOWN`` where one is."""
    gap = np.abs(one[:, None] - other[None]).mean(axis=2)
    return np.nan_to_num(gap, nan=UNKNOWN)


def remembered(known: np.ndarray, seen: np.ndarray, crowded: np.ndarray) -> np.ndarray:
    """Looks (n, 54) that were ``known``, renewed by those ``seen`` now, where nothing else is in
    the way."""
    known = np.where(np.isnan(known), seen, known)
    share = np.where(crowded, 0.0, NEWS).astype(np.float32)[:, None]
    return known + share * np.nan_to_num(seen - known)


def crowded(boxes: np.ndarray) -> np.ndarray:
    """(n,) bool: which of ``boxes`` (n, 4) share much with another."""
    shared = _shared(boxes, boxes)
    np.fill_diagonal(shared, 0)
    return np.asarray((shared > SHARED * areas(boxes)[:, None]).any(axis=1))


def _costs(expected: Motion, boxes: np.ndarray, unlikely: np.ndarray) -> np.ndarray:
    """(n, m); inf: too far, or not quite so far but too unlike."""
    there = expected.boxes()
    shared = _shared(there, boxes)
    area, other = areas(there)[:, None], areas(boxes)[None]
    iou = shared / np.maximum(area + other - shared, 1e-6)
    middles = [(each[:, :2] + each[:, 2:]) / 2 for each in (there, boxes)]
    # In sides of the larger: a thing that comes into the picture is a sliver first.
    gap = np.linalg.norm(middles[0][:, None] - middles[1][None], axis=2)
    gap /= np.sqrt(np.maximum(np.maximum(area, other), 1e-6))
    near = gap < np.clip(SIGMAS * expected.doubt(), NEAREST, FARTHEST)[:, None]
    likely = near | ((unlikely < TWINS) & (gap < FARTHEST))
    return np.where(likely, 1 - iou + DISTANT * gap + UNLIKE * unlikely, np.inf)


def _shared(ones: np.ndarray, others: np.ndarray) -> np.ndarray:
    low = np.maximum(ones[:, None, :2], others[None, :, :2])
    high = np.minimum(ones[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.clip(high - low, 0, None).prod(axis=2))


def areas(boxes: np.ndarray) -> np.ndarray:
    return np.asarray((boxes[:, 2:] - boxes[:, :2]).prod(axis=1))
