"""What a world is known by, drawn over the picture: planes and points where the camera sees them,
and in a corner all of it from above, with the way that the camera went."""

from __future__ import annotations

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.render import planes, shapes, wires
from heimdall.render.content.floor import in_world, outline_of
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
    known, points = world.known_planes, world.points
    outlines = [in_world(each, outline_of(each))[:, :2] for each in known if each.size is not None]
    return np.concatenate(
        [
            planes.rows(known, camera, box, 0.7 * pen, None),
            shapes.discs(_seen(points, camera, box), 0.6 * pen, POINT),
            _from_above(_some(points)[:, :2], world.path[:, :2], outlines, camera.pose, box, pen),
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
    there = wires.points(points, camera, box)
    return _some(there[((there >= 0) & (there < box.surface)).all(axis=1)])


def _some(points: np.ndarray) -> np.ndarray:
    return points[:: max(1, -(-len(points) // MOST_POINTS))]


def _from_above(
    points: np.ndarray,
    path: np.ndarray,
    outlines: list[np.ndarray],
    pose: Pose,
    box: Letterbox,
    pen: float,
) -> np.ndarray:
    """A square in the lower right corner: x to the right, y up, of a world whose z is up."""
    side = SIDE * box.picture[1] * box.zoom
    left, top = corner = box.to_screen(np.array(box.picture)) - side - 2 * pen
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
