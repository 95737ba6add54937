"""Looks at one model without an app: what is in the file, what it costs, and a picture of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import AppError, HeimdallError
from heimdall.render.content.model import Model
from heimdall.render.opening import open_surface
from heimdall.render.recorder import save_picture
from heimdall.render.scene import Scene
from heimdall.render.surface import Surface
from heimdall.system import softgpu

_DEGREES = 36.0  # across the picture's shorter side
_FROM = np.array([0.48, 0.36, 0.80])  # the side that it is looked at from: right, above, front
_ROUNDS = 9
_PATIENCE = 4  # times that half a minute is waited for a large model


def look(
    file: Path,
    size: tuple[int, int] = (1280, 720),
    *,
    png: Path | None = None,
    environment: Path | None = None,
    animation: str | int | None = None,
    time_s: float = 0.0,
) -> dict[str, Any]:
    """What `heimdall model3d` prints. ``error`` says why a file cannot be drawn, and is None for
    those that can. Raises DeviceError where there is no GL, ConfigError for a ``png`` that cannot
    be written."""
    with softgpu.restored_afterwards():
        with softgpu.plan(realtime=False).confined():
            surface = open_surface(size, headless=True, title="content")
        with surface:
            return _looked(surface, file, png, environment, animation, time_s)


def _looked(
    surface: Surface,
    file: Path,
    png: Path | None,
    environment: Path | None,
    animation: str | int | None,
    time_s: float,
) -> dict[str, Any]:
    scene = Scene(surface)
    scene.estimates_light = False
    began_s = time.perf_counter()
    try:
        scene.environment = environment
        model = _loaded(scene, file, surface.size)
        load_ms = 1e3 * (time.perf_counter() - began_s)
        scale = 1 / max(float(np.linalg.norm(model.size)), 1e-6)  # things may be miles long
        scene.camera = facing(model, surface.size, scale)
        frame = partial(_frame, scene, surface, studio(surface.size), file)
        shown = {"animation": animation, "time": time_s, "scale": scale}
        frame({})
        first_ms = frame(shown)[0]
        if png is not None:
            save_picture(png, surface.read())
        gpu_ms, cpu_ms = _cost_ms(frame, shown)
    except HeimdallError as error:
        return {**dict.fromkeys(_NOTHING), "file": str(file), "notes": [], "error": str(error)}
    return {
        "file": str(file),
        "triangles": model.triangles,
        "materials": len(model.materials),
        "animations": list(model.animations),
        "size_m": [round(float(side), 4) for side in model.size],
        "gpu_ms": round(gpu_ms, 3),
        "cpu_ms": round(cpu_ms, 3),
        "first_ms": round(first_ms, 3),
        "load_ms": round(load_ms, 1),
        "notes": list(model.notes),
        "error": None,
    }


_NOTHING = (
    *("triangles", "materials", "animations", "size_m"),
    *("gpu_ms", "cpu_ms", "first_ms", "load_ms"),
)


def _loaded(scene: Scene, file: Path, size: tuple[int, int]) -> Model:
    scene.begin(studio(size), 0, scene.camera)
    still = Pose(np.eye(3), np.zeros(3))
    scene.model(file, at=still, fade=0)
    for _ in range(_PATIENCE):
        scene.settle()
    model = scene.model(file, at=still, fade=0)
    if model is None:
        raise AppError(f"{file}: not loaded in time")
    return model


def _frame(
    scene: Scene, surface: Surface, backdrop: np.ndarray, file: Path, how: dict[str, Any]
) -> tuple[float, float]:
    """Draw one; what it took, and what it took of all cores, in ms."""
    began_ns, worked_ns = time.perf_counter_ns(), time.process_time_ns()
    scene.begin(backdrop, 0, scene.camera)
    if how:
        scene.model(file, at=Pose(np.eye(3), np.zeros(3)), **how)
    scene.render()
    surface.finish()
    took = time.perf_counter_ns() - began_ns, time.process_time_ns() - worked_ns
    return took[0] / 1e6, took[1] / 1e6


def _cost_ms(
    frame: Callable[[dict[str, Any]], tuple[float, float]], how: dict[str, Any]
) -> tuple[float, float]:
    """What the model adds to a frame, and to the work of all cores (which other programs do not
    disturb; on software GL it is the drawing). It turns a little each time, for what stands still
    is only copied."""
    extra = []
    for turn in range(_ROUNDS):
        without, whole = frame({}), frame({**how, "yaw": 0.3 * turn})
        extra.append(np.subtract(whole, without))
    wall_ms, cpu_ms = np.maximum(np.median(extra[2:], axis=0), 0.0)
    return float(wall_ms), float(cpu_ms)


def facing(model: Model, size: tuple[int, int], scale: float = 1.0) -> Camera:
    """A camera that sees all of a model, enlarged by a scale, standing at the world's origin: from
    its front right, a little from above."""
    across, down = size
    focal = min(size) / 2 / np.tan(np.radians(_DEGREES / 2))
    low, high = model.low * scale, model.high * scale
    sides = high - low
    reach = float(np.linalg.norm(sides)) / 2
    # standing on the plane its lowest point is at height 0
    middle = (low + high) / 2 * (1, 0, 1) + (0, float(sides[1]) / 2, 0)
    flat = float(sides[2]) < 0.02 * reach  # a picture or a sign
    side = np.array([0.25, 0.12, 1.0]) if flat else _FROM
    away = side / np.linalg.norm(side)
    eye = middle + away * reach / np.sin(np.radians(_DEGREES / 2)) * 0.95
    forward = -away
    right = np.cross(forward, (0, 1, 0))
    right /= np.linalg.norm(right)
    turn = np.stack([right, np.cross(forward, right), forward])
    camera = Camera(across, down, focal, focal, (across - 1) / 2, (down - 1) / 2)
    return camera.at(Pose(turn, -turn @ eye))


def studio(size: tuple[int, int]) -> np.ndarray:
    """A neutral backdrop, BGR uint8: lighter below."""
    column = np.linspace(128, 190, size[1]).astype(np.uint8)[:, None]
    return np.asarray(cv2.merge([np.repeat(column, size[0], axis=1)] * 3))
