"""A DNN's result, moved from the frame it was computed on to the newest one.

A result is a list of boxes (``movers``), of hands or bodies that move each on their own, lines of
text that move with their page, or a mask. What has no place in the picture (a Picture, an app's own
type) is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import cv2
import numpy as np

from heimdall.models.results import Body, Body3D, Detection, FaceMesh, Hand, Mask, TextRegion
from heimdall.tracking.field import Field
from heimdall.tracking.flow import Tracks
from heimdall.tracking.movers import Movers
from heimdall.tracking.patch import TOLERANCE, Inside, Patch, moved

Size = tuple[int, int]  # width and height of the frame in pixels
Thing = Detection | Hand | FaceMesh | Body | Body3D | TextRegion

KEPT = 0.6  # of the visible correction to a new result, a frame later
FADED = 0.1  # a mask's share that is not worth drawing
NEAR = 1.0  # of its size: how far a thing may be from where the last result had it


def outline(thing: Thing) -> np.ndarray:
    """The points (n, 2) that say where ``thing`` is; a box's first two are its corners."""
    if isinstance(thing, Detection):
        corners = np.reshape(thing.box, (2, 2))
        return corners if thing.points is None else np.vstack([corners, thing.points])
    if isinstance(thing, Hand):
        return thing.points[:, :2]
    if isinstance(thing, FaceMesh):
        return np.vstack([thing.points[:, :2], thing.irises[..., :2].reshape(-1, 2)])
    return thing.corners if isinstance(thing, TextRegion) else thing.joints[:, :2]


def placed(thing: Thing, points: np.ndarray) -> Thing:
    """``thing`` with its outline at ``points``."""
    if isinstance(thing, Detection):
        (left, top), (right, bottom) = points[:2].tolist()
        marks = None if thing.points is None else points[2:]
        return replace(thing, box=(left, top, right, bottom), points=marks)
    if isinstance(thing, Hand):
        return replace(thing, points=np.column_stack([points, thing.points[:, 2]]))
    if isinstance(thing, FaceMesh):
        depths = np.concatenate([thing.points[:, 2], thing.irises[..., 2].ravel()])
        every, count = np.column_stack([points, depths]), len(thing.points)
        irises = every[count:].reshape(thing.irises.shape)
        return replace(thing, points=every[:count], irises=irises)
    if isinstance(thing, TextRegion):
        return replace(thing, corners=points)
    return replace(thing, joints=np.column_stack([points, thing.joints[:, 2:]]))


def carried(thing: Thing, transform: np.ndarray) -> np.ndarray:
    """Its outline under ``transform``; a box grows and shifts, but stays upright."""
    points = outline(thing)
    there = moved(transform, points)
    if isinstance(thing, Detection):
        middle = (there[0] + there[1]) / 2
        half = np.hypot(*transform[:, 0]) * (points[1] - points[0]) / 2
        there[0], there[1] = middle - half, middle + half
    return there


class Things:
    """Hands, bodies or text regions, each following its own piece of the picture."""

    stride = 6  # frames taken at once: points found in one are mostly still there so much later

    def __init__(self, things: Sequence[Thing], tracks: Tracks, size: Size) -> None:
        self._things = list(things)
        tolerance = TOLERANCE * max(size)
        if self._things and isinstance(self._things[0], TextRegion):
            # a page moves as one, and single lines of text hold few points
            page = np.vstack([outline(each) for each in self._things])
            self._patches = [Patch(tracks, _within(page), tolerance)] * len(self._things)
        else:
            self._patches = [
                Patch(tracks, _within(outline(each)), tolerance) for each in self._things
            ]
        self._corrections: list[np.ndarray | float] = [0.0] * len(self._things)

    def follow(self, tracks: Tracks) -> None:
        """Go on to the next frame."""
        for patch in {id(patch): patch for patch in self._patches}.values():
            patch.follow(tracks)
        self._corrections = [correction * KEPT for correction in self._corrections]

    def value(self) -> list[Thing]:
        """The things in the newest frame, on their way to where they really are."""
        return [
            placed(thing, carried(thing, patch.transform) + correction)
            for thing, patch, correction in zip(
                self._things, self._patches, self._corrections, strict=True
            )
        ]

    def replace(self, before: Things) -> None:
        """Begin where ``before``, shown so far, has the same things: no jump."""
        left = before.value()
        for index, (thing, patch) in enumerate(zip(self._things, self._patches, strict=True)):
            points = carried(thing, patch.transform)
            same = [other for other in left if _same(thing, other, points)]
            if same:
                nearest = min(same, key=lambda other: _distance(outline(other), points))
                left = [other for other in left if other is not nearest]
                self._corrections[index] = outline(nearest) - points


class Cover:
    """A mask that moves with what it covers."""

    stride = 1

    def __init__(self, mask: Mask) -> None:
        self._values, self._field = mask.values, Field(mask.values.shape)
        self._before: np.ndarray | None = None  # shown when this one came
        self._share = 0.0  # of that, in what is shown

    def follow(self, tracks: Tracks) -> None:
        """Go on to the next frame."""
        self._field.follow(tracks)
        self._share *= KEPT
        if self._share < FADED:
            self._before = None

    def value(self) -> Mask:
        """The mask in the newest frame, fading over from the one before."""
        values = self._values
        if self._before is not None:
            values = cv2.addWeighted(self._before, self._share, values, 1 - self._share, 0)
        return Mask(self._field.warped(values))

    def replace(self, before: Cover) -> None:
        """Take over from ``before``, which has been shown so far."""
        if before._values.shape == self._values.shape:
            # Both go on from the newest frame, so that one field moves them.
            self._values, self._before = self.value().values, before.value().values
            self._field, self._share = Field(self._values.shape), KEPT


Carrier = Things | Movers | Cover


def carrier(
    result: Any,
    tracks: Tracks,
    size: Size,
    before: Any = None,
    numbers: Iterator[int] | None = None,
    image: np.ndarray | None = None,
) -> Carrier | None:
    """What carries ``result``, computed on the frame of ``tracks``; None: it has no place.

    Boxes are those of ``before``, the carrier until now, where they are the same, and get new ids
    from ``numbers`` where they are not; ``image`` (h, w, 3) is the frame's picture.
    """
    if isinstance(result, Mask):
        return Cover(result)
    if isinstance(result, list) and all(isinstance(each, Detection) for each in result):
        before = before if isinstance(before, Movers) else None
        return Movers(result, tracks, count() if numbers is None else numbers, before, image)
    if isinstance(result, list) and all(isinstance(each, Thing) for each in result):
        return Things(result, tracks, size)
    return None


def _within(points: np.ndarray) -> Inside:
    """Whether a point lies in the upright box around ``points``."""
    low, high = points.min(axis=0), points.max(axis=0)
    return lambda places: ((places >= low) & (places <= high)).all(axis=1)


def _same(thing: Thing, other: Thing, points: np.ndarray) -> bool:
    """True if ``other`` is probably ``thing``, which is now at ``points``."""
    theirs = outline(other)
    if type(other) is not type(thing) or theirs.shape != points.shape:
        return False
    for name in ("label", "side"):
        if getattr(thing, name, None) != getattr(other, name, None):
            return False
    return _distance(theirs, points) < NEAR * float(np.ptp(points, axis=0).max())


def _distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm(one.mean(axis=0) - other.mean(axis=0)))
