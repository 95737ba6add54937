"""What is drawn of models in a frame: figures, their shadows, and planes that hide them. Where on
the screen they are, and when they look the same; nothing here asks anything of a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import AppError, unknown
from heimdall.render.content.floor import outline_of
from heimdall.render.content.light import Light
from heimdall.render.content.model import Model, box_corners
from heimdall.render.content.motion import Animation, Stance
from heimdall.render.content.placing import NEAR, Placing
from heimdall.render.content.posing import joint_matrices
from heimdall.render.content.sending import Sent
from heimdall.render.layout import Letterbox

OUTLINE = 64  # corners of a shadow's polygon, at most
CORNERS = 64  # of a plane that hides, at most
_SUNK = 0.004  # metres that a hiding plane lies lower, so that shadows on it are seen
_UNSURE = 0.01  # of its distance that a found one does: its place is known so well


@dataclass(frozen=True, eq=False)
class Figure:
    """A model placed in a frame. ``cloths``: pictures for materials, by name; "": for the first."""

    sent: Sent
    placing: Placing
    stance: Stance
    fade: float = 1.0
    cloths: Mapping[str, np.ndarray] = field(default_factory=dict)
    moment: tuple[str, float] = ("", 0.0)  # animation and time
    floor: np.ndarray | None = None  # corners around what it stands on, x and z of its space (k, 2)


@dataclass(frozen=True, eq=False)
class Hider:
    """A convex piece of a plane that hides what is behind it: corners (k, 3) of the world, metres,
    one after the other."""

    corners: np.ndarray
    camera: Camera


Solid = Figure | Hider


@dataclass(frozen=True, eq=False)
class Shadow:
    """On the plane: a polygon around it, (n, 2) in shares of its picture's sides; how far those of
    low, middle and high parts lie ``away`` from them, (3, 2), the same; its ``strength``."""

    outline: np.ndarray
    away: np.ndarray
    strength: float


def hider(plane: object, at: Pose, camera: Camera) -> Hider:
    """A plane's outline, or its size, a little lower than it is: what stands on it is seen, though
    the place of a plane that was found changes."""
    assert camera.pose is not None
    sunk = _SUNK
    if getattr(plane, "outline", None) is not None:
        far = float(np.linalg.norm(camera.pose.to_camera(at.translation)))
        sunk = max(sunk, _UNSURE * far)
    around = cv2.convexHull(outline_of(plane).astype(np.float32))[:, 0]
    around = around[:: -(-len(around) // CORNERS)]
    return Hider(at.to_camera(np.insert(around.astype(np.float64), 1, -sunk, axis=1)), camera)


def animation_of(model: Model, which: str | int | None) -> Animation | None:
    """A model's animation by name or number. Raises AppError for one that it does not have."""
    if which is None:
        return None
    names = list(model.animations)
    if isinstance(which, int) and 0 <= which < len(names):
        return model.animations[names[which]]
    if isinstance(which, str) and which in model.animations:
        return model.animations[which]
    if not names:
        raise AppError(f"model {model.name} has no animation")
    raise AppError(f"model {model.name}: {unknown('animation', str(which), names)}")


def shadow_of(figure: Figure, light: Light) -> Shadow | None:
    """Where a figure's shadow falls; None where there is no plane, or nothing on it."""
    placing, ground = figure.placing, figure.sent.model.ground
    if ground is None or placing.plane is None or placing.camera.pose is None:
        return None
    key = placing.turn.T @ light.key(placing.upright, placing.camera.pose)
    left, back, right, front = ground.extent
    slope = -key[[0, 2]] / max(float(key[1]), 0.5) / (right - left, front - back)
    lift = float(figure.sent.model.low[1]) - placing.plane  # above the plane, its lengths
    away = np.array([slope * (height + lift) for height in ground.heights])
    places = [outline + by for outline, by in zip(ground.outlines, away, strict=True)]
    around = cv2.convexHull(np.concatenate(places).astype(np.float32))
    if around is not None and figure.floor is not None:
        floor = (figure.floor - (left, back)) / (right - left, front - back)
        around = cv2.intersectConvexConvex(around, cv2.convexHull(floor.astype(np.float32)))[1]
    if around is None or len(around) < 3:
        return None
    strength = 1 / (1 + 2.0 * max(lift, 0.0) * placing.scale)
    return Shadow(around[:OUTLINE, 0], away, strength)


def extent(figure: Figure, box: Letterbox, shadow: Shadow | None) -> np.ndarray:
    """The screen positions of the corners of a figure, and of its shadow."""
    model, placing = figure.sent.model, figure.placing
    corners = _moved(figure) if figure.moment[0] else model.corners
    if shadow is not None and model.ground is not None:
        left, back, right, front = model.ground.extent
        x, z = (shadow.outline * (right - left, front - back) + (left, back)).T
        flat = np.column_stack([x, np.full(len(x), placing.plane), z])
        corners = np.vstack([corners, flat])
    clip = np.column_stack([corners, np.ones(len(corners))]) @ placing.clip(box).T
    if (clip[:, 3] <= NEAR).any():  # reaches behind the camera: may be anywhere
        return np.array([[0, 0], box.surface], np.float32)
    return np.asarray((clip[:, :2] / clip[:, 3:] * (1, -1) + 1) / 2 * box.surface)


def _moved(figure: Figure) -> np.ndarray:
    """The corners of a box around a figure that an animation has moved, (8, 3)."""
    stance, found = figure.stance, []
    for each in figure.sent.parts:
        part, matrices = each.part, np.eye(4)[None]
        if part.skin is not None:
            matrices = joint_matrices(figure.sent.model.skins[part.skin], stance)
        elif part.node is not None:
            matrices = stance.matrices[part.node][None]
        weights = stance.weights.get(part.shaped_by, ()) if part.shaped_by is not None else ()
        further = sum(abs(a) * b for a, b in zip(weights, each.reaches, strict=False))
        corners = box_corners(each.corners[0] - further, each.corners[-1] + further)
        places = np.einsum("nij,kj->nki", matrices[:, :3, :3], corners)
        found.append((places + matrices[:, None, :3, 3]).reshape(-1, 3))
    points = np.concatenate(found)
    return box_corners(points.min(axis=0), points.max(axis=0))


def key_of(figure: Solid, step: float) -> list[Any]:
    """Equal for what looks the same; ``step``: by how much it may move, pixels of the picture."""
    if isinstance(figure, Hider):
        return [figure.corners.tobytes(), _pose_key(figure.camera, step)]
    placing = figure.placing
    away = max(abs(float(placing.to_camera[2, 3])), NEAR)
    pixels = placing.to_camera[:3] * (placing.camera.fx / away)  # of the picture
    pixels[:, :3] *= np.linalg.norm(figure.sent.model.size)
    return [
        id(figure.sent),
        np.round(pixels / step).tobytes(),
        _pose_key(placing.camera, step),
        figure.moment,
        round(figure.fade, 2),
        b"" if figure.floor is None else np.round(figure.floor, 3).tobytes(),
        [(name, id(cloth)) for name, cloth in figure.cloths.items()],
    ]


def _pose_key(camera: Camera, step: float) -> tuple[float, ...]:
    return tuple(round(each / step) for each in (camera.fx, camera.fy, camera.cx, camera.cy))
