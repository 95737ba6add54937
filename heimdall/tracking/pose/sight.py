"""What a picture says about a pose: near a guess, what should be seen there is compared with it.

Targets whose place is known and remembered views say it together. A pose is borne out only by
enough of what should be seen, that agrees, and pins it down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.reference import SIDE_PX, Seen, register
from heimdall.tracking.pose.solve import Fit, refine
from heimdall.tracking.pose.targets import Prepared
from heimdall.tracking.pose.views import Views

LEAST_POINTS, FEW_POINTS = 5, 8  # a marker of 4x4 cells has 18, and may be hidden by 60%
WORST_PX = 1.8  # root mean square, in a picture 1280 wide
FEW_WORST_PX = 0.7  # of few points, which agree with much
TURN_SD, PLACE_SD = math.radians(1.6), 0.018  # worse is not known
HIDDEN, GLANCED = 0.1, 0.25  # share of a target's points: less is none; so many are worth a look
GLANCE_POINTS = 40  # of a hidden target, which tell whether it is still hidden
VIEW_WEIGHT = 0.3  # of a remembered point beside a target's
COARSE_PX = 130  # side of the pictures compared where a pose has jumped


@dataclass(frozen=True, eq=False)
class Measured:
    """What a pose was measured by: ``points`` (n, 3) at ``pixels`` (n, 2), their ``weights``, of
    how many targets and views (``parts``), whether that is one target alone (``flat``), and whether
    a target was seen ``well``, so that nothing else had a say."""

    points: np.ndarray
    pixels: np.ndarray
    weights: np.ndarray
    parts: int
    flat: bool
    well: bool


class Sight:
    """The comparison, by ``targets`` and ``views`` (None: there are none). ``places``: from the
    axes of each target whose place is known, by its number, to the world; the first is the
    world's. ``last`` is what the last pose was measured by."""

    def __init__(self, targets: Sequence[Prepared], views: Views | None) -> None:
        self._targets, self.views = targets, views
        self.places: dict[int, Pose] = {0: Pose(np.eye(3), np.zeros(3))}
        self.last: Measured | None = None
        self._hidden: set[int] = set()  # targets of which nothing was to be seen last

    def forget_hidden(self) -> None:
        """Any target may be seen again."""
        self._hidden.clear()

    def measured(
        self,
        grey: np.ndarray,
        camera: Camera,
        guess: Pose,
        least: float,
        side_px: int = 0,
        *,
        again: bool = False,
    ) -> Fit | None:
        """The pose near ``guess``, if the picture bears it out. ``again``: much time has gone into
        this frame."""
        parts = self._seen(grey, camera, guess, side_px, again)
        if not parts:
            return None
        points, pixels, weights, expected = _together(parts)
        fit = refine(camera, points, pixels, guess, weights)
        if fit is None or fit.count < max(LEAST_POINTS, least * expected):
            return None
        worst = FEW_WORST_PX if fit.count < FEW_POINTS else WORST_PX
        if fit.rms_px > worst * camera.width / 1280 * (3 if side_px else 1):
            return None
        if not side_px and not is_known(fit):
            return None
        flat = len(parts) == 1 and parts[0][1] == 1.0
        well = any(weight == 1.0 and _is_well(seen) for seen, weight in parts)
        self.last = Measured(points, pixels, weights, len(parts), flat, well)
        return fit

    def _seen(
        self, grey: np.ndarray, camera: Camera, guess: Pose, side_px: int, again: bool
    ) -> list[tuple[Seen, float]]:
        side_px = side_px or SIDE_PX
        parts: list[tuple[Seen, float]] = []
        for number, at in self.places.items():
            seen = self._target_seen(grey, camera, number, guess.after(at), side_px)
            if seen is not None and len(seen.points):
                world = at.to_camera(seen.points)
                parts.append((Seen(world, seen.pixels, seen.expected, seen.numbers), 1.0))
        if self.views is not None:
            # A target that is seen well says all: what was learnt from it can only be worse.
            well = any(_is_well(seen) for seen, _ in parts)
            helping = 1 - again if parts else 1 + (side_px == SIDE_PX)
            for view in () if well else self.views.near(guess, helping):
                seen = register(grey, camera, view.reference, guess, side_px)
                if seen is not None and len(seen.points):
                    parts.append((seen, VIEW_WEIGHT))
        return parts

    def _target_seen(
        self, grey: np.ndarray, camera: Camera, number: int, pose: Pose, side_px: int
    ) -> Seen | None:
        """The points of a target; of one that was hidden no more than a glance, while it is."""
        reference = self._targets[number].reference
        if number in self._hidden:
            seen = register(grey, camera, reference, pose, COARSE_PX, GLANCE_POINTS)
            if seen is None or len(seen.points) < GLANCED * seen.expected:
                return None
            self._hidden.remove(number)
        seen = register(grey, camera, reference, pose, side_px)
        if seen is not None and len(seen.points) < HIDDEN * seen.expected:
            self._hidden.add(number)
        return seen


def _is_well(seen: Seen) -> bool:
    """Whether so much of a target is seen that it says all."""
    return len(seen.points) >= max(FEW_POINTS, 0.5 * seen.expected)


def is_known(fit: Fit, share: float = 1.0) -> bool:
    """Whether the points pin the pose down, to a ``share`` of what is enough."""
    return fit.turn_sd < share * TURN_SD and fit.place_sd < share * PLACE_SD


def _together(
    parts: list[tuple[Seen, float]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Points, pixels, weights, and how many were expected at least."""
    full = any(weight == 1.0 for _, weight in parts)
    weights = [np.full(len(seen.points), weight if full else 1.0) for seen, weight in parts]
    return (
        np.concatenate([seen.points for seen, _ in parts]),
        np.concatenate([seen.pixels for seen, _ in parts]),
        np.concatenate(weights),
        # a view may be hidden by what moves while a target is seen well, and the other way round
        max(seen.expected for seen, _ in parts),
    )
