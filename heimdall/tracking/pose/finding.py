"""Finding targets anywhere in a picture, where nothing is known of the pose.

One kind of look at a time, in slices, one a frame, so that none takes long: all markers in the
picture at half its size, small ones in a part of it, pictures by their features, large and small.
What a picture of some frames ago showed is followed to the present one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.flow import followed
from heimdall.tracking.pose.features import described, matched
from heimdall.tracking.pose.solve import planar
from heimdall.tracking.pose.targets import Prepared, dictionary

HALF_FROM = 800  # pixels of width: smaller pictures are looked at as they are
TILE = (640, 400)
WINDOWS = (13, 21, 7)  # of the threshold, pixels: one a look
FEATURES = 500
LEAST_MATCHES = 8  # few: what they say is compared with the picture before it is believed
MATCH_PX = 4.0
TRIES = 200  # of RANSAC: finds what 40% of the pairs agree on
PAIRS = 560_000  # of features that are compared in a slice
FLOW_WINDOW, FLOW_LEVELS, FLOW_STEPS = 15, 4, (30, 0.01)


@dataclass(frozen=True, eq=False)
class Found:
    """A target, by its number, and the poses (from its own axes to the camera) that it may have."""

    target: int
    poses: Sequence[Pose]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Points (n, 3) of a target and where they may have been: ``places`` (n, 2) of ``picture``."""

    target: int
    points: np.ndarray
    places: np.ndarray
    picture: np.ndarray


class Finder:
    """Looks for targets, each time in another way."""

    def __init__(self, targets: Sequence[Prepared]) -> None:
        self._targets = list(targets)
        self._owners = {
            key: (number, corners)
            for number, each in enumerate(targets)
            for key, corners in each.fiducials.items()
        }
        self._detectors = {
            name: [cv2.aruco.ArucoDetector(dictionary(name), _parameters(each)) for each in WINDOWS]
            for name in sorted({name for name, _ in self._owners})
        }
        self._pictures = [
            number for number, each in enumerate(targets) if each.descriptors is not None
        ]
        self._turn = self._tile = 0
        self._window = -1
        self._sliced = False
        self._looks = [*(["markers", "tile"] if self._owners else [])]
        self._looks += ["large", "small"] if self._pictures else []
        self._search: Iterator[tuple[_Pairs | None, bool]] | None = None

    @property
    def busy(self) -> bool:
        """True if a look goes on that has begun with an earlier frame."""
        return self._search is not None

    @property
    def costly(self) -> bool:
        """True if the last look was a slice of a long one."""
        return self._sliced

    def look(self, grey: np.ndarray, camera: Camera, near: np.ndarray | None = None) -> list[Found]:
        """Targets in ``grey``, by the next slice of a look; ``near`` (2,) is where one was seen
        last."""
        self._sliced = self._search is not None
        if self._search is not None:
            return self._go_on(grey, camera)
        if not self._looks:
            return []
        kind = self._looks[self._turn % len(self._looks)]
        self._turn += 1
        large = grey.shape[1] >= HALF_FROM
        if kind == "markers" or (kind == "tile" and not large):
            return self._markers(grey, camera, *halved(grey))
        if kind == "tile":
            left, top = self._next_tile(grey, near)
            part = grey[top : top + TILE[1], left : left + TILE[0]]
            return self._markers(grey, camera, part, 1.0, (left, top))
        self._sliced = True
        self._search = self._pairs(grey, kind == "small" and large)
        return self._go_on(grey, camera)

    def forget(self) -> None:
        """End what has begun with earlier frames."""
        self._search = None

    # --- markers --------------------------------------------------------------------------

    def _next_tile(self, grey: np.ndarray, near: np.ndarray | None) -> tuple[int, int]:
        columns, rows = (
            max(1, side - size) for side, size in zip(grey.shape[::-1], TILE, strict=True)
        )
        self._tile += 1
        if near is not None and self._tile % 2:
            left, top = near - np.array(TILE) / 2
        else:
            place = self._tile // 2 % 4
            left, top = columns * (place % 2), rows * (place // 2)
        return int(np.clip(left, 0, columns)), int(np.clip(top, 0, rows))

    def _markers(
        self,
        grey: np.ndarray,
        camera: Camera,
        part: np.ndarray,
        scale: float,
        corner: tuple[int, int] = (0, 0),
    ) -> list[Found]:
        """In ``part``, ``scale`` times as large as what lies at ``corner`` of the picture."""
        seen: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._window += 1
        for name, detectors in self._detectors.items():
            detector = detectors[self._window % len(detectors)]
            corners, numbers, _ = detector.detectMarkers(part)
            for four, number in zip(corners, () if numbers is None else numbers, strict=True):
                owner = self._owners.get((name, int(np.ravel(number)[0])))
                if owner is not None:
                    pixels = (four.reshape(4, 2) + 0.5) / scale - 0.5 + np.array(corner)
                    seen.setdefault(owner[0], []).append((owner[1], pixels))
        found = []
        for target, pairs in seen.items():
            points = np.concatenate([each for each, _ in pairs])
            pixels = np.concatenate([each for _, each in pairs])
            found.append(Found(target, planar(camera, points, pixels)))
        return found

    # --- pictures -------------------------------------------------------------------------

    def _pairs(self, grey: np.ndarray, small: bool) -> Iterator[tuple[_Pairs | None, bool]]:
        """A look through one frame: its features, then each target's that look like them, and
        whether that was all. Small targets are seen in the whole picture, large ones in half and a
        quarter of its size."""
        half, scale = halved(grey)
        places, descriptors = described(grey if small else half, FEATURES, 1 if small else 2)
        if small:
            places = (places + 0.5) * scale - 0.5
        for number in self._pictures:
            target, last = self._targets[number], number == self._pictures[-1]
            assert target.descriptors is not None
            assert target.places is not None
            at_once = max(1, PAIRS // len(target.descriptors))
            pairs = []
            for begin in range(0, len(descriptors), at_once):
                if begin:
                    yield None, False
                part = matched(
                    descriptors[begin : begin + at_once], target.descriptors, target.places
                )
                pairs.append(np.add(part, (begin, 0)))
            alike = np.concatenate([*pairs, np.empty((0, 2), int)])
            found = None
            if len(alike) >= LEAST_MATCHES:
                points, there = target.places[alike[:, 1]], places[alike[:, 0]]
                found = _Pairs(number, points, there, half)
            yield found, last

    def _go_on(self, grey: np.ndarray, camera: Camera) -> list[Found]:
        assert self._search is not None
        pairs, last = next(self._search)
        if last:
            self._search = None
        found = self._agreed(pairs, grey, camera) if pairs is not None else None
        return [found] if found is not None else []

    def _agreed(self, pairs: _Pairs, grey: np.ndarray, camera: Camera) -> Found | None:
        """What most of the pairs say, now."""
        pixels, there = _followed(pairs, grey)
        if there.sum() < LEAST_MATCHES:
            return None
        points, pixels = pairs.points[there], pixels[there]
        size = float(np.ptp(points, axis=0).max()) or 1.0
        flat = points[:, :2] * (1000 / size, -1000 / size)  # as a picture has them
        _, agree = cv2.findHomography(flat, pixels, cv2.RANSAC, MATCH_PX, maxIters=TRIES)
        if agree is None or int(agree.sum()) < LEAST_MATCHES:
            return None
        chosen = agree.ravel() > 0
        poses = planar(camera, points[chosen], pixels[chosen])
        return Found(pairs.target, poses) if poses else None


def _followed(pairs: _Pairs, grey: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where places of an earlier picture are now, in pixels of ``grey``, and which are there."""
    now, scale = halved(grey)
    begin, flow = pairs.places.astype(np.float32), (FLOW_LEVELS, FLOW_WINDOW, FLOW_STEPS)
    there, found = followed(pairs.picture, now, begin, None, *flow)
    return (there.astype(np.float64) + 0.5) / scale - 0.5, found


def _parameters(window: int) -> cv2.aruco.DetectorParameters:
    parameters = cv2.aruco.DetectorParameters()
    parameters.adaptiveThreshWinSizeMin = parameters.adaptiveThreshWinSizeMax = window
    parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
    return parameters


def halved(grey: np.ndarray) -> tuple[np.ndarray, float]:
    """The picture in half its size if it is large, and the scale."""
    if grey.shape[1] < HALF_FROM:
        return grey, 1.0
    rows, columns = (side // 2 * 2 for side in grey.shape)
    size = (columns // 2, rows // 2)
    return cv2.resize(grey[:rows, :columns], size, interpolation=cv2.INTER_AREA), 0.5
