"""Apps on a headless scene, without networks: a test hands in the results."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.app import App, load_app
from heimdall.capture import Frame
from heimdall.capture.camera_files import known_camera
from heimdall.errors import DeviceError
from heimdall.render import Scene, open_surface
from heimdall.system import paths
from heimdall.tracking import Tracker


class Play:
    """One app as a run would drive it, frame by frame."""

    def __init__(self, app: App, surface) -> None:
        self.app, self.surface, self.scene = app, surface, Scene(surface)
        app._tracker = self.tracker = Tracker()
        self.scene.world = app.world
        self.lens = known_camera(str(paths.ASSETS / "media" / app.clip))
        if app.world is not None:
            app.world.begin()
        self.frame: Frame | None = None
        self.app.on_start()

    def show(self, image: np.ndarray, **results) -> np.ndarray:
        """A frame with these DNNs' results on it; returns the picture, RGB."""
        self.app.tracked(self.app.dnns[0].name)  # from here on the tracker follows
        sequence = 0 if self.frame is None else self.frame.sequence + 1
        self.frame = Frame(image, sequence, sequence * 33_000_000, self.lens)
        self.tracker.advance(self.frame)
        self.tracker.show(self.frame)
        for dnn, result in results.items():
            self.tracker.renew(dnn, result, self.frame)
            self.app._keep(dnn, result, self.frame)
            self.app.on_result(dnn, result, self.frame)
        camera = self._placed()
        for _ in range(2):
            self.scene.begin(image, sequence, camera)
            self.app.draw(self.scene)
            if not self.scene.settle():  # what was asked for is loaded
                break
        self.scene.render()
        return self.surface.read()

    def _placed(self):
        """What took the frame; once its pose is known, where the app has a world."""
        world = self.app.world
        if world is None:
            return self.frame.camera
        world.thread.hand(self.frame)
        assert world.thread.settle()
        before = world.state
        camera = world.show(self.frame, 1 + self.frame.sequence * 100_000_000)
        if world.state != before:
            self.app.on_tracking(world.state)
        return camera

    def requests(self) -> list:
        """What the app has asked for since the last call."""
        asked, self.app._requests[:] = list(self.app._requests), []
        return asked

    def adjustments(self) -> dict:
        """The DNNs that the app has come to want otherwise since the last call, as it does."""
        adjusted, self.app._adjusted = self.app._adjusted, set()
        return {dnn: self.app._wanted[dnn] for dnn in adjusted}


@pytest.fixture
def play():
    """``play("emoji", ...)`` starts that app on a surface of 640 x 480, pixel for pixel."""
    try:
        surface = open_surface((640, 480), headless=True)
    except DeviceError as error:
        pytest.skip(str(error))
    started = []

    def start(name, prepare=lambda app: None):
        app = load_app(name)
        prepare(app)
        started.append(Play(app(), surface))
        return started[-1]

    with surface:
        yield start
        for each in started:
            if each.app.world is not None:
                each.app.world.end()


@pytest.fixture
def clip():
    """``clip("desk.mp4", 20)`` is that frame of a bundled clip."""

    def read(name: str, index: int) -> np.ndarray:
        capture = cv2.VideoCapture(str(paths.ASSETS / "media" / name))
        for _ in range(index):
            capture.grab()
        return capture.read()[1]

    return read


@pytest.fixture
def grey():
    """A camera picture of 640 x 480, mid grey."""
    return np.full((480, 640, 3), 128, np.uint8)
