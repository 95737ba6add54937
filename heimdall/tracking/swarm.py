"""Points on things that move by themselves: where each box goes, by what is inside it.

A box holds background as well, and parts of what moves in front. So its points vote: of the
movements among them the one that most share, those near its middle more than those at its edge,
and one that differs from the camera's more than one that the camera explains anyway. Of a
hidden thing only points of what is in front are seen: their way says little about a thing that is
known to go another, and is the best guess about one of which nothing is known yet.
"""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.tracking.flow import followed
from heimdall.tracking.motion import NEVER
from heimdall.tracking.patch import moved

ACROSS = 4  # cells of a box across and down, one point in each
SLOTS = ACROSS * ACROSS
CELL = 8  # pixels of a cell, after the box has been scaled to them
MARGIN = (0.15, 0.1)  # of a box's sides: so near its edge is mostly background
FAINTEST = 1e-5  # smallest eigenvalue of a corner worth following
KEY = 6  # frames that a point is sought from the same picture: its errors do not add up so fast
LEVELS = 1  # halvings on which a point is sought; more, and small things are lost in background
LATEST = 0.4  # share of the latest step in a point's velocity
ALIKE = (0.25, 0.015)  # reduced pixels, and of the box: velocities that differ by less are one
OWN, KNOWN = 1.3, 1.5  # votes count so much more: not the camera's way; as it went before
HIDDEN = 0.05  # votes count so much where a thing is in front: its lower edge is lower
THEIRS = 0.02  # of the box, a frame: what a way is uncertain by that is probably another's
LEAST = 3  # points that must agree
NOISE = 0.4  # reduced pixels a frame that a way by points is uncertain by, at least
LEAST_FOR_SIZE = 6  # points that say how a box grows
SIZE_NOISE = 0.03  # logarithm of size, a frame


class Swarm:
    """The points of ``n`` boxes; all in pixels of the reduced pictures."""

    def __init__(self, count: int) -> None:
        self._points = np.zeros((count, SLOTS, 2), np.float32)
        self._speed = np.zeros((count, SLOTS, 2), np.float32)  # beside the camera's, a frame
        self._alive = np.zeros((count, SLOTS), bool)
        self._key: np.ndarray | None = None  # the picture in which points are at `_start`
        self._start, self._since = self._points, 0

    def seed(self, grey: np.ndarray, boxes: np.ndarray, speed: np.ndarray) -> None:
        """Take new points where half of a box's are gone. ``boxes`` (n, 4) lie in ``grey`` and go
        at ``speed`` (n, 2)."""
        poor = self._alive.sum(axis=1) <= SLOTS // 2
        inner = _inner(boxes)
        inner = np.clip(inner, 0, np.tile(grey.shape[::-1], 2))
        roomy = (inner[:, 2:] - inner[:, :2] >= 4).all(axis=1)
        rows = np.flatnonzero(poor & roomy)
        self._key = None  # what is followed next begins here
        if not len(rows):
            return
        corners, good = _corners(grey, inner[rows])
        for row, places, usable in zip(rows, corners, good, strict=True):
            cell = (self._points[row] - inner[row, :2]) / (inner[row, 2:] - inner[row, :2])
            cell = np.clip(cell * ACROSS, 0, ACROSS - 1).astype(int)
            usable[(cell[:, 1] * ACROSS + cell[:, 0])[self._alive[row]]] = False
            fresh = np.flatnonzero(usable)
            slots = np.flatnonzero(~self._alive[row])[: len(fresh)]
            self._points[row, slots] = places[fresh[: len(slots)]]
            self._speed[row, slots] = speed[row]
            self._alive[row, slots] = True

    def follow(
        self,
        before: np.ndarray,
        grey: np.ndarray,
        frames: int,
        camera: np.ndarray,
        boxes: np.ndarray,
        speed: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Go on from picture ``before`` to ``grey``, ``frames`` later, in which the background
        moved by ``camera`` (2, 3) and ``boxes`` (n, 4), of before, probably by ``speed`` (n, 2) a
        frame beside that.

        The way (n, 4) that each went beside the camera's: x, y, and growth of the log side (nothing
        is said of the shape); its variance (n, 4); and its roll (n,) in radians.
        """
        rows, slots = np.nonzero(self._alive)
        if not len(rows):
            return _unknown(len(boxes))
        if self._key is None or self._since >= KEY:
            self._key, self._start, self._since = before, self._points.copy(), 0
        self._since += frames
        rest = moved(camera, self._points[rows, slots])
        guess = rest + (speed[rows] * frames).astype(np.float32)
        there, found = followed(self._key, grey, self._start[rows, slots], guess, LEVELS)
        inside = ((there >= 0) & (there < grey.shape[::-1])).all(axis=1)
        alive = np.zeros_like(self._alive)
        alive[rows, slots] = found & inside
        step = np.zeros_like(self._points)
        step[rows, slots] = (there - rest) / frames
        self._points[rows, slots] = there
        self._alive = alive
        self._speed += np.float32(LATEST) * (step - self._speed)
        return self._voted(boxes, speed, step, frames)

    def _voted(
        self, boxes: np.ndarray, speed: np.ndarray, step: np.ndarray, frames: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Way, variance and roll by the points of each box that agree."""
        way, variance, roll = _unknown(len(boxes))
        before = self._points - step * frames
        side = np.sqrt((boxes[:, 2:] - boxes[:, :2]).prod(axis=1))
        alike = np.maximum(ALIKE[0], ALIKE[1] * side)[:, None]
        middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) / 2
        off = (before - middle[:, None]) / half[:, None]
        weight = self._alive * np.exp(-2 * (off**2).sum(axis=2))
        hidden = _hidden(before, boxes)
        weight *= np.where(hidden, HIDDEN, 1)
        gap = np.linalg.norm(self._speed[:, :, None] - self._speed[:, None], axis=3)
        agree = (gap < alike[..., None]) & self._alive[:, None]
        votes = (agree * weight[:, None]).sum(axis=2) * self._alive
        votes *= np.where(np.linalg.norm(self._speed, axis=2) > alike, OWN, 1)
        votes *= np.where(np.linalg.norm(self._speed - speed[:, None], axis=2) < alike, KNOWN, 1)
        best = votes.argmax(axis=1)
        chosen = agree[np.arange(len(boxes)), best] & self._alive
        count = chosen.sum(axis=1)
        theirs = 2 * (chosen & hidden).sum(axis=1) > count
        sure = np.flatnonzero(count >= LEAST)
        mask = chosen[sure]
        n = count[sure, None]
        mean = (step[sure] * mask[..., None]).sum(axis=1) / n
        spread = ((step[sure] - mean[:, None]) ** 2 * mask[..., None]).sum(axis=1) / n
        way[sure, :2] = mean * frames
        other = (theirs * (THEIRS * side) ** 2)[sure, None]
        variance[sure, :2] = ((NOISE**2 + spread) / n + other) * frames**2
        rows = np.flatnonzero((count >= LEAST_FOR_SIZE) & ~theirs)
        turn, spread = _turned(before[rows], self._points[rows], chosen[rows])
        usable = (np.abs(turn) > 0.5) & (np.abs(turn) < 2)
        rows, turn, spread = rows[usable], turn[usable], spread[usable]
        way[rows, 2] = np.log(np.abs(turn))
        roll[rows] = np.angle(turn)
        variance[rows, 2] = SIZE_NOISE**2 + variance[rows, 0] / np.maximum(spread, 1e-6)
        return way, variance, roll

    def keep_inside(self, boxes: np.ndarray) -> None:
        """Drop the points that ``boxes`` (n, 4) have left behind."""
        inner = _inner(boxes, 0.5)[:, None]
        inside = (self._points >= inner[..., :2]) & (self._points <= inner[..., 2:])
        self._alive &= inside.all(axis=2)


def _unknown(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Way, variance and roll of boxes without points."""
    return np.zeros((count, 4)), np.full((count, 4), NEVER), np.zeros(count)


def _turned(was: np.ndarray, now: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How the chosen points (n, SLOTS) of each box grow and turn, a complex number: the similarity
    nearest to their way, by least squares; and how far they are spread, pixels squared."""
    share = chosen / chosen.sum(axis=1, keepdims=True)
    z, w = (each[..., 0] + 1j * each[..., 1] for each in (was, now))
    z -= (z * share).sum(axis=1, keepdims=True)
    w -= (w * share).sum(axis=1, keepdims=True)
    spread = (np.abs(z) ** 2 * share).sum(axis=1)
    return (z.conj() * w * share).sum(axis=1) / np.maximum(spread, 1e-6), spread


def _hidden(points: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """(n, SLOTS): which points lie in the box of a thing that is further in front."""
    front = boxes[None, :, 3] > boxes[:, None, 3]
    low, high = boxes[:, :2], boxes[:, 2:]
    inside = (points[:, :, None] > low) & (points[:, :, None] < high)
    return np.asarray((inside.all(axis=3) & front[:, None]).any(axis=2))


def _inner(boxes: np.ndarray, share: float = 1.0) -> np.ndarray:
    margin = share * (boxes[:, 2:] - boxes[:, :2]) * MARGIN
    return np.hstack([boxes[:, :2] + margin, boxes[:, 2:] - margin])


def _corners(grey: np.ndarray, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best corner (n, SLOTS, 2) of each cell of each box, and whether it is worth following."""
    side, count = ACROSS * CELL, len(boxes)
    scaled = np.empty((count * side, side), np.uint8)
    for row, box in enumerate(boxes):
        zoom = (box[2:] - box[:2]) / side
        view = np.array([[zoom[0], 0, box[0]], [0, zoom[1], box[1]]], np.float32)
        cv2.warpAffine(
            grey,
            view,
            (side, side),
            dst=scaled[row * side : (row + 1) * side],
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )
    strength = cv2.cornerMinEigenVal(scaled, 3)
    cells = strength.reshape(count, ACROSS, CELL, ACROSS, CELL).swapaxes(2, 3)
    cells = cells.reshape(count, SLOTS, CELL * CELL)
    best = cells.argmax(axis=2)
    good = np.take_along_axis(cells, best[..., None], axis=2)[..., 0] > FAINTEST
    cell = np.arange(SLOTS)
    x = (cell % ACROSS) * CELL + best % CELL
    y = (cell // ACROSS) * CELL + best // CELL
    zoom = (boxes[:, 2:] - boxes[:, :2]) / side
    return (boxes[:, None, :2] + np.stack([x, y], axis=2) * zoom[:, None]).astype(np.float32), good
