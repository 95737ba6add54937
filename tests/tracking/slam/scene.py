"""A room of textured boards, drawn by warping pictures: exact, and quick enough for tests."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose

SIZE = 480, 360
CAMERA = Camera(*SIZE, 400.0, 400.0, 239.5, 179.5)


def texture(seed: int, side: int = 512) -> np.ndarray:
    """Blobs of all sizes."""
    chance = np.random.default_rng(seed)
    made = np.full((side, side), 120.0, np.float32)
    for cells in (16, 48, 128):
        rough = chance.normal(0, 28, (cells, cells)).astype(np.float32)
        made += cv2.resize(rough, (side, side), interpolation=cv2.INTER_CUBIC)
    return np.clip(made, 0, 255).astype(np.uint8)


# (a corner, its two sides, metres): y down, z away from the first camera
BOARDS = [
    ((-3.0, -2.0, 4.0), (6.0, 0, 0), (0, 4.0, 0)),  # wall
    ((-3.0, 0.9, 0.5), (6.0, 0, 0), (0, 0, 3.5)),  # floor
    ((-0.9, 0.0, 1.8), (0.7, 0, 0.2), (0, 0.9, 0)),  # boxes
    ((0.3, 0.2, 2.3), (0.8, 0, -0.2), (0, 0.7, 0)),
]
TEXTURES = [texture(seed) for seed in range(len(BOARDS))]


def look(
    pose: Pose,
    camera: Camera = CAMERA,
    noise: float = 2.0,
    seed: int = 0,
    textures: list[np.ndarray] = TEXTURES,
) -> np.ndarray:
    """The picture (h, w) uint8 of a camera at ``pose``, painted from the farthest board on."""
    picture = np.full((camera.height, camera.width), 90, np.uint8)
    for (corner, across, down), pattern in zip(BOARDS, textures, strict=True):
        side = pattern.shape[0]
        o, u, v = (np.array(each, float) for each in (corner, across, down))
        plane = np.column_stack([u / side, v / side, o])
        turned = pose.rotation @ plane
        turned[:, 2] += pose.translation
        corners = np.array([[0, 0, 1], [side, 0, 1], [side, side, 1], [0, side, 1]]) @ turned.T
        if (corners[:, 2] < 0.05).any():
            continue
        seen = cv2.warpPerspective(pattern, camera.matrix @ turned, camera.size)
        there = cv2.warpPerspective(np.full_like(pattern, 255), camera.matrix @ turned, camera.size)
        picture = np.where(there > 127, seen, picture)
    grain = np.random.default_rng(seed).normal(0, noise, picture.shape)
    return np.clip(picture + grain, 0, 255).astype(np.uint8)


def walk(frames: int = 90, reach: float = 0.35) -> Iterator[Pose]:
    """A camera that sways from side to side, nearer and farther."""
    for number in range(frames):
        t = number / 30
        where = np.array([reach * np.sin(1.6 * t), 0.08 * np.sin(2.1 * t), 0.15 * (1 - np.cos(t))])
        turn = np.array([0.03 * np.sin(1.3 * t), 0.10 * np.sin(0.9 * t), 0.02 * np.sin(1.7 * t)])
        rotation = cv2.Rodrigues(turn)[0]
        yield Pose(rotation, -rotation @ where)
