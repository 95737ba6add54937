"""Finding targets anywhere in a picture, where nothing is known of the pose.

One kind of look at a time, so that none takes long: all markers in the picture at half its size,
small ones in a part of it, pictures by their features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.lens import Camera, Pose
from heimdall.tracking.pose.solve import planar
from heimdall.tracking.pose.targets import Prepared, dictionary, matched

HALF_FROM = 800  # pixels of width: smaller pictures are looked at as they are
TILE = (640, 400)
FEATURES = 500
LEAST_MATCHES = 12
MATCH_PX = 4.0


@dataclass(frozen=True, eq=False)
class Found:
    """A target, by its number, and the poses (from its own axes to the camera) that it may have."""

    target: int
    poses: Sequence[Pose]


class Finder:
    """Looks for targets, each time in another way."""

    def __init__(self, targets: Sequence[Prepared]) -> None:
        self._targets = list(targets)
        self._owners = {
            key: (number, corners)
            for number, each in enumerate(targets)
            for key, corners in each.fiducials.items()
        }
        parameters = cv2.aruco.DetectorParameters()
        parameters.adaptiveThreshWinSizeMin = 5
        parameters.adaptiveThreshWinSizeMax = 25
        parameters.adaptiveThreshWinSizeStep = 10
        self._detectors = {
            name: cv2.aruco.ArucoDetector(dictionary(name), parameters)
            for name in sorted({name for name, _ in self._owners})
        }
        self._features = cv2.ORB.create(FEATURES, 1.25, 6)
        self._pictures = [
            number for number, each in enumerate(targets) if each.descriptors is not None
        ]
        self._turn = self._tile = 0
        self._looks = [*(["markers", "tile"] if self._owners else [])]
        self._looks += ["pictures"] if self._pictures else []

    def look(self, grey: np.ndarray, camera: Camera, near: np.ndarray | None = None) -> list[Found]:
        """Targets in ``grey``; ``near`` (2,) is where one was seen last."""
        if not self._looks:
            return []
        kind = self._looks[self._turn % len(self._looks)]
        self._turn += 1
        if kind == "markers":
            return self._markers(grey, camera, *_halved(grey))
        if kind == "tile":
            if grey.shape[1] < HALF_FROM:
                return []
            left, top = self._next_tile(grey, near)
            part = grey[top : top + TILE[1], left : left + TILE[0]]
            return self._markers(grey, camera, part, 1.0, (left, top))
        return self._by_features(grey, camera)

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
        for name, detector in self._detectors.items():
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

    def _by_features(self, grey: np.ndarray, camera: Camera) -> list[Found]:
        small, scale = _halved(grey)
        keypoints, descriptors = self._features.detectAndCompute(small, None)
        if descriptors is None:
            return []
        pixels = (np.array([each.pt for each in keypoints]) + 0.5) / scale - 0.5
        return list(self._matched(pixels, descriptors, camera))

    def _matched(
        self, pixels: np.ndarray, descriptors: np.ndarray, camera: Camera
    ) -> Iterator[Found]:
        for number in self._pictures:
            target = self._targets[number]
            assert target.descriptors is not None
            assert target.places is not None
            pairs = matched(descriptors, target.descriptors)
            if len(pairs) < LEAST_MATCHES:
                continue
            there, points = pixels[pairs[:, 0]], target.places[pairs[:, 1]]
            size = float(np.ptp(target.places, axis=0).max())
            flat = points[:, :2] * (1000 / size, -1000 / size)  # as a picture has them
            _, agree = cv2.findHomography(flat, there, cv2.RANSAC, MATCH_PX)
            if agree is None or int(agree.sum()) < LEAST_MATCHES:
                continue
            chosen = agree.ravel() > 0
            if poses := planar(camera, points[chosen], there[chosen]):
                yield Found(number, poses)


def _halved(grey: np.ndarray) -> tuple[np.ndarray, float]:
    """The picture in half its size if it is large, and the scale."""
    if grey.shape[1] < HALF_FROM:
        return grey, 1.0
    rows, columns = (side // 2 * 2 for side in grey.shape)
    size = (columns // 2, rows // 2)
    return cv2.resize(grey[:rows, :columns], size, interpolation=cv2.INTER_AREA), 0.5
