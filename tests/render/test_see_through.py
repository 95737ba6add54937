"""A frame without its picture, over that picture, is the frame with it."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.models.results import Mask
from heimdall.render import Scene
from tests.render.test_scene import drawn

SIZE = (640, 360)  # of the surface and of the camera


@pytest.fixture
def camera() -> np.ndarray:
    """A picture of soft colours, BGR."""
    noise = np.random.default_rng(3).integers(0, 255, (6, 10, 3), np.uint8)
    return cv2.resize(noise, SIZE, interpolation=cv2.INTER_CUBIC)


def left_half() -> Mask:
    values = np.zeros((36, 64), np.float32)
    values[:, :32] = 1
    return Mask(values)


def layers(scene: Scene) -> None:
    scene.polygons([[[100, 100], [300, 120], [200, 300]]], "#ff000080")
    scene.mask(left_half(), "#00ff00", 0.3)
    picture = np.zeros((10, 10, 4), np.uint8)
    picture[:, 5:] = (255, 0, 0, 100)
    scene.picture(picture, np.array([[400, 50], [500, 50], [500, 150], [400, 150]]))
    scene.text("words on a plate", (350, 200))


def a_model(scene: Scene) -> None:
    scene.model("couch.glb", (320, 300), width=300)


def a_model_behind(scene: Scene) -> None:
    scene.text("behind it", (350, 200))
    a_model(scene)
    scene.occlude(left_half())


def another_place(scene: Scene) -> None:
    scene.background(np.full((20, 30, 3), (20, 200, 90), np.uint8), left_half())
    scene.text("somewhere else", (350, 200))


def content(headless) -> np.ndarray:
    """RGBA, premultiplied, top row first."""
    w, h = headless.size
    pixels = np.empty((h, w, 4), np.uint8)
    headless.pixels.read(headless.framebuffer, pixels)
    return headless.pixels.in_order(pixels)[::-1]


def one(headless, camera, paint) -> tuple[np.ndarray, np.ndarray]:
    scene = Scene(headless)
    drawn(headless, camera, paint, scene=scene)
    scene.settle()
    return drawn(headless, camera, paint, scene=scene), content(headless)


@pytest.mark.parametrize("paint", [layers, a_model, a_model_behind, another_place])
@pytest.mark.parametrize("software", [False, True])
def test_content_over_the_camera_is_the_frame(headless, camera, paint, software):
    headless.software = software
    whole, _ = one(headless, camera, paint)
    headless.see_through = True
    _, over = one(headless, camera, paint)
    opacity = over[..., 3:].astype(float) / 255
    together = over[..., :3] + camera[..., ::-1] * (1 - opacity)
    apart = np.abs(together - whole)
    # At the mask's soft edge, 10 pixels for each of its own, the ways of scaling it differ.
    apart[:, SIZE[0] // 2 - 10 : SIZE[0] // 2 + 10] = 0
    assert apart.max() <= 4
    assert 0.002 < (over[..., 3] > 0).mean() < 0.9
    assert (over[..., :3] <= over[..., 3:].astype(int) + 3).all()


def test_nothing_drawn_is_clear(headless, camera):
    headless.see_through = True
    _, over = one(headless, camera, lambda scene: None)
    assert not over.any()
