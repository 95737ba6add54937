"""The setting of a room without targets: z up, the origin on what content stands on.

Until a plane below it is found, the room's middle is taken to be a metre away, and the camera to
look down a little, unless its sensors say where down is; then the plane is level, and the camera
began so high above it as is known, or guessed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heimdall.tracking.slam.found import HORIZONTAL, FoundPlane, changed
from heimdall.tracking.world import surface
from heimdall.tracking.world.layout import Layout
from heimdall.tracking.world.setting import GUESS, HEIGHT, Setting

FIRST_M = 1.0  # from the camera to the middle of what it sees first: a guess
LEVEL = 0.97  # cosine: a level plane that faces up
MOST_AWAY = 6.0  # heights of the camera to the origin


def guessed(layout: Layout) -> Setting | None:
    """Before there is a plane: the origin is in the middle of the first picture. None before there
    is a keyframe."""
    if not layout.keyframes:
        return None
    first, depth = layout.keyframes[min(layout.keyframes)]
    lean = np.radians(surface.PITCH)
    up = layout.planes.up  # by sensors
    if up is None:
        up = first.rotation.T @ np.array([0.0, -np.cos(lean), -np.sin(lean)])
    middle = first.to_world(np.array([0.0, 0.0, depth]))
    return _setting(FIRST_M / depth, up, first.rotation[0], middle, None)


def on_ground(layout: Layout, height_m: float | None) -> Setting | None:
    """On the level plane below that has most points, ``height_m`` below where the camera began
    (None: a guess); None before there is one."""
    ground = ground_of(layout)
    if ground is None:
        return None
    first, _ = layout.keyframes[min(layout.keyframes)]
    up, eye = ground.normal, first.position
    height = float(up @ (eye - ground.pose.translation))
    if height <= 0:
        return None
    ahead = first.rotation[2]
    down = -float(up @ ahead)
    far = height / down if down > 1 / MOST_AWAY else MOST_AWAY * height
    origin = eye + far * ahead
    origin = origin - up * float(up @ (origin - ground.pose.translation))
    below_m, source = (surface.HEIGHT_M, GUESS) if height_m is None else (height_m, HEIGHT)
    found = _setting(below_m / height, up, first.rotation[0], origin, ground)
    return replace(found, source=source)


def levelled(before: Setting, layout: Layout) -> Setting | None:
    """Level with the plane that it was set by, once that is known better; None while it is not.
    Lengths stay as they are."""
    for ground in layout.planes.planes:
        on = before.on
        if on is not None and ground.id == on.id and ground is not on and changed(on, ground):
            up = ground.normal
            origin = before.turn.T @ -before.move / before.metres
            origin = origin - up * float(up @ (origin - ground.pose.translation))
            found = _setting(before.metres, up, before.turn[0], origin, ground)
            return replace(found, source=before.source)
    return None


def ground_of(layout: Layout) -> FoundPlane | None:
    """The level plane below the camera that has most points."""
    up = layout.planes.up
    below = [
        each
        for each in layout.planes.planes
        if up is not None and each.kind == HORIZONTAL and each.normal @ up > LEVEL
    ]
    return max(below, key=lambda each: each.count, default=None)


def _setting(
    metres: float, up: np.ndarray, right: np.ndarray, origin: np.ndarray, on: FoundPlane | None
) -> Setting:
    """z along ``up``, x along ``right`` as far as that is level."""
    right = right - up * float(up @ right)
    right = right / np.linalg.norm(right)
    turn = np.stack([right, np.cross(up, right), up])
    return Setting(metres, turn, -metres * turn @ origin, on)
