"""What a world is known by, drawn over the picture: planes and points where the camera sees them,
and in a corner all of it from above, with the way that the camera went."""

from __future__ import annotations

import numpy as np

from heimdall.capture.lens import Camera, Pose
from heimdall.render import planes, shapes, wires
from heimdall.render.content.floor import outline_of
from heimdall.render.layout import Letterbox
from heimdall.tracking import World

MOST_POINTS = 800  # drawn; of more, some
POINT, PATH, PAPER = "#f8fafcc0", "#facc15", "#101418b0"
SIDE = 0.3  # of the picture's height: the corner's picture
MARGIN = 0.08  # of that, around all that is shown
VIEW = 0.16  # of it: how far lines lead to what the camera sees


def rows(world: World, camera: Camera, box: Letterbox, pen: float) -> np.ndarray:
    """Bars (see `shapes`) before a camera with a pose."""
    assert camera.pose is not None
    return np.concatenate(
        [
            planes.rows(world.known_planes, camera, box, 0.7 * pen, None),
            shapes.discs(_seen(world.points, camera, box), 0.6 * pen, POINT),
            _from_above(world, camera.pose, box, pen),
        ]
    )


def described(world: World) -> str:
    """The same in words."""
    state = world.problem or world.reason or world.state
    words = [f"world {state}"]
    if world.in_room:
        words += [f"points: {len(world.points)}", f"planes: {len(world.found)}"]
    return ", ".join([*words, f"metres by {world.scale_source}"])


def _seen(points: np.ndarray, camera: Camera, box: Letterbox) -> np.ndarray:
    starts, _ = wires.lines(np.repeat(points[:, None], 2, axis=1), camera, box)
    inside = ((starts >= 0) & (starts < box.surface)).all(axis=1)
    return _some(starts[inside])


def _some(points: np.ndarray) -> np.ndarray:
    return points[:: max(1, -(-len(points) // MOST_POINTS))]


def _from_above(world: World, pose: Pose, box: Letterbox, pen: float) -> np.ndarray:
    """A square in the lower right corner: x to the right, y up, of a world whose z is up."""
    side = SIDE * box.picture[1] * box.zoom
    left, top = corner = box.to_screen(np.array(box.picture)) - side - 2 * pen
    path, points = world.path[:, :2], _some(world.points)[:, :2]
    outlines = [_outline(each) for each in world.known_planes if each.size is not None]
    everything = np.concatenate([path, pose.position[None, :2], *outlines])
    low, high = everything.min(axis=0), everything.max(axis=0)
    zoom = (1 - 2 * MARGIN) * side / max(float((high - low).max()), 0.1)

    def place(flat: np.ndarray) -> np.ndarray:
        return np.asarray(corner + side / 2 + (flat - (low + high) / 2) * (zoom, -zoom))

    shown = place(points)
    inside = ((shown > corner) & (shown < corner + side)).all(axis=1)
    eye, ahead = place(pose.position[None, :2]), pose.rotation[2, :2] * (1, -1)
    right = pose.rotation[0, :2] * (1, -1)
    ends = eye + VIEW * side * np.stack([ahead + 0.6 * right, ahead - 0.6 * right])
    lines = [
        shapes.lines(place(path[:-1]), place(path[1:]), 0.5 * pen, PATH),
        shapes.lines(np.repeat(eye, 2, axis=0), ends, 0.5 * pen, PATH),
    ]
    for outline in outlines:
        lines.append(shapes.outline(place(outline), 0.5 * pen, planes.OTHER))
    return np.concatenate(
        [
            shapes.panel(left, top, left + side, top + side, 2 * pen, PAPER),
            shapes.discs(shown[inside], 0.4 * pen, POINT),
            *lines,
        ]
    )


def _outline(plane: planes.Plane) -> np.ndarray:
    flat = np.insert(outline_of(plane), 1, 0.0, axis=-1)  # x, z to x, y, z
    return np.asarray(plane.pose.to_camera(flat)[:, :2])  # to the world
