"""Where a model stands: from its own space to the picture, by the camera.

A model's space is y up; `at` leads from there, or from the anchor that it stands on, to the world,
and the camera's pose from the world to the camera, as `heimdall.capture.lens` has them. Without a
pose there is the guess that flat pictures get: a camera 60 degrees high, looking down by 24 at a
level floor. All models stand on that: the lower in the picture, the nearer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import AppError
from heimdall.render.content.model import Model
from heimdall.render.layout import Letterbox

NEAR, FAR = 0.02, 1000.0  # metres
# Of the guessed camera over a picture, degrees and metres: about as a person looks at a floor.
FIELD_OF_VIEW, PITCH, ABOVE = 60.0, 24.0, 1.6
_FARTHEST = 60.0  # metres: of what stands on no floor, as its point is above the horizon
_FLIP = np.diag([1.0, -1.0, -1.0])  # y up, z to the viewer <-> y down, z into the picture


@dataclass(frozen=True, eq=False)
class Placing:
    """A model before a camera. ``to_camera``: (4, 4) from its space; ``turn``: directions of its
    space in the light's, which is y up; ``eye``: from its origin to the camera, the light's space;
    ``upright``: the world's directions in the light's; ``plane``: the height of the plane it stands
    on, its space, None where there is none; ``scale``: its lengths to metres."""

    camera: Camera
    to_camera: np.ndarray
    turn: np.ndarray
    eye: np.ndarray
    upright: np.ndarray
    plane: float | None
    scale: float

    def clip(self, box: Letterbox) -> np.ndarray:
        """From the model's space to clip space, (4, 4)."""
        return projection(self.camera, box) @ self.to_camera

    def distance(self, model: Model) -> float:
        """From the camera to the middle of the model, metres."""
        middle = (model.low + model.high) / 2
        return float(np.linalg.norm(self.to_camera[:3, :3] @ middle + self.to_camera[:3, 3]))


def stand(
    model: Model, at: Pose, camera: Camera, *, scale: float, yaw: float, lift: float, ground: bool
) -> Placing:
    """A model at a place in the world; ``ground``: its lowest point is on the anchor's plane, y = 0
    there, ``lift`` metres above it."""
    assert camera.pose is not None
    turned = at.rotation @ about_y(yaw)
    up = lift - (scale * float(model.low[1]) if ground else 0.0)
    origin = at.translation + at.rotation[:, 1] * up
    upright = _upright(at.rotation[:, 1])
    to_camera = np.eye(4)
    to_camera[:3, :3] = camera.pose.rotation @ turned * scale
    to_camera[:3, 3] = camera.pose.to_camera(origin)
    return Placing(
        camera=camera,
        to_camera=to_camera,
        turn=upright @ turned,
        eye=upright @ (camera.pose.position - origin),
        upright=upright,
        plane=-up / scale if ground else None,
        scale=scale,
    )


def in_picture(
    model: Model, at: tuple[float, float], width: float, size: tuple[int, int]
) -> tuple[Camera, Pose, float]:
    """The guessed camera over a picture of ``size``, and where a model's base has to be, and its
    scale, so that it is at a point of the picture and its front, at two thirds of its height,
    ``width`` pixels wide.

    Scaled about the camera it looks the same wherever it is. So it stands on the floor that all
    models share, and hides what stands behind it."""
    across, down = size
    focal = down / 2 / np.tan(np.radians(FIELD_OF_VIEW / 2))
    c, s = np.cos(np.radians(PITCH)), np.sin(np.radians(PITCH))
    pitch = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    wide, high, deep = (float(side) for side in model.size)
    nearer = (pitch @ (0, high * 2 / 3, deep / 2))[2]
    ray = pitch.T @ ((at[0] - across / 2) / focal, (down / 2 - at[1]) / focal, -1.0)
    distance = ABOVE / max(-ray[1], ABOVE / _FARTHEST)
    scale = distance / max(focal * wide / width + nearer, 1e-6)  # 0: all of it is in one place
    camera = Camera(across, down, focal, focal, (across - 1) / 2, (down - 1) / 2, guessed=True)
    return camera.at(Pose(_FLIP @ pitch, np.zeros(3))), Pose(np.eye(3), distance * ray), scale


def pose_of(at: object) -> Pose:
    """The pose of a `Pose`, or of anything that has one. Raises AppError for other things."""
    found = at if isinstance(at, Pose) else getattr(at, "pose", None)
    if not isinstance(found, Pose):
        raise AppError(f"a model at {at!r}: give a Pose, an anchor, or a point of the picture")
    if not (np.isfinite(found.rotation).all() and np.isfinite(found.translation).all()):
        raise AppError("a model at a pose with numbers that are not finite")
    return found


def projection(camera: Camera, box: Letterbox) -> np.ndarray:
    """A camera's space to clip space, so that the picture lies where the letterbox has it, (4, 4).
    Without the lens' distortion: straight lines of content stay straight."""
    lens = camera if camera.size == box.picture else camera.scaled(*box.picture)
    across, down = box.surface
    # pixels are counted from the middle of the first
    x = box.left + box.zoom * (lens.cx + 0.5)
    y = box.top + box.zoom * (lens.cy + 0.5)
    depth = (FAR + NEAR) / (FAR - NEAR), -2 * FAR * NEAR / (FAR - NEAR)
    return np.array(
        [
            [2 * box.zoom * lens.fx / across, 0, 2 * x / across - 1, 0],
            [0, -2 * box.zoom * lens.fy / down, 1 - 2 * y / down, 0],
            [0, 0, depth[0], depth[1]],
            [0, 0, 1, 0],
        ]
    )


def about_y(degrees: float) -> np.ndarray:
    """A turn about the vertical, (3, 3)."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _upright(up: np.ndarray) -> np.ndarray:
    """The shortest turn that takes a direction to y, (3, 3)."""
    axis, cosine = np.cross(up, (0.0, 1.0, 0.0)), float(up[1])
    if cosine > 1 - 1e-12:
        return np.eye(3)
    if cosine < -0.9999:
        return np.diag([1.0, -1.0, -1.0])
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + k + k @ k / (1 + cosine))
