"""A camera that begins to move before points: what looks at them see, and where it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.capture.pose import Pose

FOCAL = 520.0
HALF = 0.6, 0.46  # of a picture of 640 x 480, on the plane z = 1
SCENES = "general", "deep", "frontal", "tilted", "nearly plane", "corner"


@dataclass
class Walk:
    """What ``start`` is asked, and the truth: ``poses`` of looks, ``points`` (n, 3) before the
    reference, half of them nearer than 1, and which tracks are ``wrong`` (n,)."""

    reference: np.ndarray
    looks: list[np.ndarray]
    poses: list[Pose]
    points: np.ndarray
    wrong: np.ndarray


def walk(
    scene: str = "general",
    way: str = "any",
    seed: int = 0,
    far: float = 0.05,
    wrong: float = 0.0,
    looks: int = 7,
    turn: float = 6.0,
    noise: float = 0.5,
    count: int = 300,
) -> Walk:
    """A walk ``far`` of the median depth, to the "side", "forward" (or back), in "any" direction,
    or "none", while the camera turns by up to ``turn`` degrees and a hand shakes; ``noise`` pixels,
    and a share of ``wrong`` tracks, which drift by tens of pixels."""
    draw = np.random.default_rng([seed, SCENES.index(scene), len(way)])
    points = _points(scene, draw, count)
    move = _way(way, draw) * far
    axis = draw.normal(size=3)
    axis *= np.radians(turn) * draw.uniform(0.2, 1) / np.linalg.norm(axis)
    reference = points[:, :2] / points[:, 2:] + draw.normal(0, noise / FOCAL, (count, 2))
    drifts = draw.random(count) < wrong
    drift = draw.normal(0, 15 / FOCAL, (count, 2))
    seen, poses = [], []
    for look in range(1, looks + 1):
        share = look / looks
        place = move * share + (far > 0) * draw.normal(0, 0.003, 3) * (way != "none")
        still = Pose.of(axis * share + draw.normal(0, 0.004, 3), np.zeros(3))
        pose = Pose(still.rotation, -still.rotation @ place)
        there = pose.to_camera(points)
        at = there[:, :2] / there[:, 2:] + draw.normal(0, noise / FOCAL, (count, 2))
        at[drifts] += drift[drifts] * share + draw.normal(0, 3 / FOCAL, (int(drifts.sum()), 2))
        gone = (np.abs(at) > np.array(HALF) * 1.05).any(axis=1) | (draw.random(count) < 0.03)
        at[gone] = np.nan
        seen.append(at)
        poses.append(pose)
    return Walk(reference, seen, poses, points, drifts)


def _points(scene: str, draw: np.random.Generator, count: int) -> np.ndarray:
    spots = draw.uniform(-1, 1, (count, 2)) * HALF
    rays = np.column_stack([spots, np.ones(count)])
    if scene == "general":
        depth = draw.uniform(0.6, 1.6, count)
    elif scene == "deep":
        depth = np.exp(draw.uniform(np.log(0.4), np.log(5), count))
    elif scene == "corner":
        depth = 1 / np.maximum(rays @ (0.7, 0, 1), rays @ (-0.7, 0, 1))
    else:
        steep = (0, 15) if scene == "frontal" else (15, 50)
        angle, slope = draw.uniform(0, 2 * np.pi), np.tan(np.radians(draw.uniform(*steep)))
        normal = np.array([np.cos(angle) * slope, np.sin(angle) * slope, 1])
        depth = 1 / np.maximum(rays @ normal, 0.25)
        if scene == "nearly plane":
            depth *= 1 + draw.normal(0, 0.03, count)
    return rays * (depth / np.median(depth))[:, None]


def _way(way: str, draw: np.random.Generator) -> np.ndarray:
    if way == "none":
        return np.zeros(3)
    move = draw.normal(size=3)
    if way == "side":
        move[2] = 0
    elif way == "forward":
        move[:2] = draw.normal(0, 0.1, 2)
        move[2] = np.sign(move[2])
    return np.asarray(move / np.linalg.norm(move))


def off(found: Pose, truth: Pose) -> tuple[float, float]:
    """Degrees between rotations, and between directions to where the camera has moved."""
    turn = (np.trace(found.rotation @ truth.rotation.T) - 1) / 2
    one, other = found.position, truth.position
    way = one @ other / (np.linalg.norm(one) * np.linalg.norm(other))
    return tuple(np.degrees(np.arccos(np.clip((turn, way), -1, 1))).tolist())
