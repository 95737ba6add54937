"""Boxes that move by themselves, each a thing that stays the same from result to result.

A result is about a frame of the past. Where everything known was in that frame is remembered, so
the new boxes are compared with them there (``identity``), and correct how they move (``motion``).
From there to the newest frame they go with the points inside them (``swarm``), and where those are
too few or hidden, as they went before. What is missing from a result is not shown, but known again
if it comes back soon. All this happens in pixels of the reduced pictures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from heimdall.models.results import Detection
from heimdall.tracking.flow import Tracks, common
from heimdall.tracking.identity import Known, areas, crowded, looks, remembered
from heimdall.tracking.motion import Motion
from heimdall.tracking.patch import STILL, TOLERANCE, similarity
from heimdall.tracking.swarm import Swarm

KEPT = 0.4  # of the visible correction to a new result, a frame later: over in a tenth of a second
REFILL_EVERY = 4  # frames between looks for new points
PAST = 64  # frames remembered
MISSED = 4  # results that a thing may be missing from and still be known again
INSIDE = 0.1  # of a box that must lie in the picture, or it is gone


class Movers:
    """The boxes of one result on their way from its frame, that of ``tracks``, whose picture was
    ``image``; ``before`` is what was shown until now, ``numbers`` has ids for new ones."""

    stride = 2  # frames taken at once on the way to the newest

    def __init__(
        self,
        things: Sequence[Detection],
        tracks: Tracks,
        numbers: Iterator[int],
        before: Movers | None = None,
        image: np.ndarray | None = None,
    ) -> None:
        self._at, self._age = tracks, 0
        full = np.array([each.box for each in things], float).reshape(-1, 4)
        boxes = (full + 0.5) / tracks.scale - 0.5
        self._motion = Motion.of(boxes)
        self._known = Known(
            [-1] * len(things),
            [each.label for each in things],
            np.zeros(len(things), int),
            looks(image, full),
        )
        if before is not None:
            self._recognise(boxes, before)
        for row in range(len(things)):
            if self._known.ids[row] < 0:
                self._known.ids[row] = next(numbers)
        self._things = [replace(each, id=self._known.ids[row]) for row, each in enumerate(things)]
        self._own_sides = self._motion.sides()
        self._roll = np.zeros(len(self._motion))  # since the own frame, radians
        self._corrections = np.zeros((len(things), 4))
        self._swarm = Swarm(len(self._motion))
        self._past: deque[tuple[int, Motion]] = deque(maxlen=PAST)
        self._remember()
        self._seed()

    def _recognise(self, boxes: np.ndarray, before: Movers) -> None:
        """Take ids, speed and looks from ``before``; what it knew and was not found is known
        here, too, after those that were."""
        expected, known = before._then(self._at.sequence), before._known
        found = known.recognised(expected, boxes, self._known.labels, self._known.looks)
        old, new = np.array(found, int).reshape(-1, 2).T
        matched = expected.chosen(old)
        matched.found(boxes[new])
        self._motion.mean[new], self._motion.cov[new] = matched.mean, matched.cov
        for row, here in found:
            self._known.ids[here] = known.ids[row]
        self._known.looks[new] = remembered(
            known.looks[old], self._known.looks[new], crowded(boxes)[new]
        )
        left = np.setdiff1d(np.arange(len(expected)), old)
        left = left[known.missed[left] < MISSED]
        lost = known.chosen(left)
        lost.missed = lost.missed + 1
        self._known = self._known.joined(lost)
        self._motion = self._motion.joined(expected.chosen(left))

    def _then(self, sequence: int) -> Motion:
        """Where everything was in a frame of the past, or soon after it."""
        return next((motion for when, motion in self._past if when >= sequence), self._motion)

    def follow(self, tracks: Tracks) -> None:
        """Go on to the next frame."""
        if not len(self._motion):
            self._at = tracks
            return
        frames = max(1, tracks.sequence - self._at.sequence)
        camera = self._camera(tracks)
        way, variance, roll = self._swarm.follow(
            self._at.grey,
            tracks.grey,
            frames,
            camera,
            self._motion.boxes(),
            self._motion.mean[:, :2, 1],
        )
        self._motion.turned(camera)
        self._motion.step(frames, way, variance)
        self._roll += roll + np.arctan2(camera[1, 0], camera[0, 0])
        self._corrections *= KEPT
        self._at = tracks
        self._swarm.keep_inside(self._motion.boxes())
        self._age += frames
        if self._age % REFILL_EVERY < frames:
            self._seed()
        self._remember()

    def _camera(self, tracks: Tracks) -> np.ndarray:
        """How the background has moved: the similarity (2, 3) of most points of the picture."""
        mine, theirs = common(self._at.ids, tracks.ids)
        own, now = (
            ((points + np.float32(0.5)) / np.float32(tracks.scale) - np.float32(0.5))
            for points in (self._at.points[mine], tracks.points[theirs])
        )
        fitted = similarity(own, now, TOLERANCE * max(tracks.grey.shape))
        return STILL if fitted is None else fitted

    def _seed(self) -> None:
        boxes = self._motion.boxes()
        shown = len(self._things)
        boxes[shown:, 2:] = boxes[shown:, :2]  # these are not shown, so nothing is there to follow
        self._swarm.seed(self._at.grey, boxes, self._motion.mean[:, :2, 1])

    def _remember(self) -> None:
        self._past.append((self._at.sequence, self._motion.copy()))

    def value(self) -> list[Detection]:
        """The things in the newest frame, on their way to where they really are; of those at its
        edge the part that is in it, and nothing that has left it."""
        high, wide = self._at.grey.shape
        edge = self._at.scale * np.array([wide, high, wide, high])
        boxes = self._boxes() + self._corrections
        seen = np.clip(boxes, 0, edge)
        share = areas(seen) / np.maximum(areas(boxes), 1e-6)
        grown = self._motion.sides() / self._own_sides
        return [
            replace(
                thing,
                box=tuple(seen[row].tolist()),
                points=_marks(thing, boxes[row], grown[row], self._roll[row]),
            )
            for row, thing in enumerate(self._things)
            if share[row] > INSIDE
        ]

    def replace(self, before: Movers) -> None:
        """Begin where ``before``, shown so far, has the same things: no jump."""
        shown = {
            (thing.id, thing.label): box
            for thing, box in zip(
                before._things, before._boxes() + before._corrections, strict=True
            )
        }
        for row, (thing, box) in enumerate(zip(self._things, self._boxes(), strict=True)):
            self._corrections[row] = shown.get((thing.id, thing.label), box) - box

    def _boxes(self) -> np.ndarray:
        """(n, 4): those that are shown, in pixels of the frame."""
        boxes = self._motion.boxes()[: len(self._things)]
        return np.asarray((boxes + 0.5) * self._at.scale - 0.5)


def _marks(thing: Detection, box: np.ndarray, grown: float, roll: float) -> np.ndarray | None:
    """The key points of ``thing``, shifted to the middle of ``box``, grown and turned with it."""
    if thing.points is None:
        return None
    own = np.array(thing.box)
    cos, sin = grown * np.cos(roll), grown * np.sin(roll)
    off = (thing.points - (own[:2] + own[2:]) / 2) @ np.array([[cos, sin], [-sin, cos]])
    return (off + (box[:2] + box[2:]) / 2).astype(np.float32)
