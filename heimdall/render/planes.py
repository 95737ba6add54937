"""A plane of the world as it is shown: the line around it, and a grid that lies on it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.render import shapes, wires
from heimdall.render.content.floor import in_world, outline_of
from heimdall.render.layout import Letterbox
from heimdall.render.shapes import Color
from heimdall.tracking.world.places import Plane

COLORS = {"horizontal": "#2dd4bf", "vertical": "#f59e0b"}
OTHER = "#94a3b8"
GRID = 0.38  # opacity
MOST_LINES = 16  # of a grid, along its longer side
STEPS = (1.0, 2.0, 5.0, 10.0)


def rows(
    planes: Sequence[Plane], camera: Camera, box: Letterbox, pen: float, color: Color | None
) -> np.ndarray:
    """Bars (see `shapes`) for planes before a camera with a pose. ``color`` None: by their kind."""
    made = [np.zeros((0, shapes.FLOATS), np.float32)]
    for plane in planes:
        tint = shapes.rgba(color or COLORS.get(plane.kind, OTHER))
        around = outline_of(plane)
        for flat, width, opacity in (
            (grid(around), 0.5 * pen, GRID * tint[3]),
            (np.stack([around, np.roll(around, -1, axis=0)], axis=1), pen, tint[3]),
        ):
            ends = wires.lines(in_world(plane, flat), camera, box)
            made.append(shapes.lines(*ends, width, (*tint[:3], opacity)))
    return np.concatenate(made)


def grid(around: np.ndarray) -> np.ndarray:
    """Lines (n, 2, 2) across a convex outline (k, 2), in both directions, a round number of metres
    apart."""
    step = _step(float(np.ptp(around, axis=0).max()))
    return np.concatenate([_across(around, step), _across(around[:, ::-1], step)[..., ::-1]])


def _step(across: float) -> float:
    least = across / MOST_LINES
    ten = 10.0 ** math.floor(math.log10(least))
    return next(ten * each for each in STEPS if ten * each >= least * (1 - 1e-9))


def _across(around: np.ndarray, step: float) -> np.ndarray:
    """Lines at multiples of a step along the first axis, from side to side along the second."""
    low, high = around[:, 0].min(), around[:, 0].max()
    found = []
    for at in step * np.arange(math.floor(low / step) + 1, math.ceil(high / step)):
        start, end = around, np.roll(around, -1, axis=0)
        met = (start[:, 0] <= at) != (end[:, 0] <= at)
        start, end = start[met], end[met]
        share = (at - start[:, 0]) / (end[:, 0] - start[:, 0])
        where = start[:, 1] + share * (end[:, 1] - start[:, 1])
        found.append([(at, where.min()), (at, where.max())])
    return np.array(found).reshape(-1, 2, 2)
