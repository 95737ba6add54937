"""The order of a frame's life, over real runs; tests/apps has whole apps."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil
import pytest

from heimdall.app import load_app
from heimdall.app.options import RunOptions
from heimdall.coordinator.coordinator import Coordinator
from heimdall.errors import ConfigError
from heimdall.render.headless import HeadlessSurface
from heimdall.runtime.run import run_app
from heimdall.system import paths
from heimdall.tracking.pose.tracker import PoseTracker
from heimdall.vocabulary.events import FrameRendered, RenderStarted

APP = """
from heimdall import DNN, App

class Mine(App):
    dnns = (DNN("segment", model="selfie", rate_hz=5),)
"""


def test_networks_get_the_gpu_before_the_frame_that_is_drawn_is_shown(tmp_path, monkeypatch):
    steps: list[str] = []
    receive = Coordinator.receive

    def received(self, event, now_ns):
        if isinstance(event, (RenderStarted, FrameRendered)):
            steps.append(type(event).__name__)
        return receive(self, event, now_ns)

    monkeypatch.setattr(Coordinator, "receive", received)
    monkeypatch.setattr(HeadlessSurface, "present", lambda self: steps.append("present"))
    (tmp_path / "mine.py").write_text(APP)
    options = RunOptions(
        source=str(paths.ASSETS / "media" / "cup.mp4"),
        headless=True,
        size=(320, 180),
        device="onnxruntime",
        frames=20,
    )
    summary = run_app(str(tmp_path / "mine.py"), options)
    assert summary["frames"] == 20
    steps = steps[steps.index("RenderStarted") :]  # before, the picture alone is shown
    frames = [steps[first : first + 3] for first in range(0, len(steps), 3)]
    assert frames == [["RenderStarted", "FrameRendered", "present"]] * len(frames)
    assert summary["draw_interval_ms"]["p50"] is not None
    assert 0 < summary["picture_age_ms"]["p50"] <= summary["picture_age_ms"]["p99"]


WORLD = """
from heimdall import App, Marker, World

class Mine(App):
    world = World(Marker("DICT_4X4_50", 7, 0.08))
    clip = "page.mp4"
    told = []
    drawn = []
    anchored = []

    def on_tracking(self, state):
        self.told.append(state)

    def draw(self, scene):
        self.drawn.append((scene.camera.pose, scene.hit(*self.world.origin.at)))
        self.anchored.append(self.anchor((320, 300)).pose is not None)
"""


def ran(tmp_path: Path, source: str, **more: Any) -> tuple[Any, dict[str, Any]]:
    """An app of that source after forty frames without an error, and the run's summary."""
    (tmp_path / "mine.py").write_text(source)
    options = RunOptions(headless=True, size=(320, 240), device="onnxruntime", frames=40, **more)
    app: Any = load_app(str(tmp_path / "mine.py"))
    summary = run_app(app, options)
    assert summary["errors"] == []
    return app, summary


def test_an_app_with_a_world_is_told_and_draws_with_the_cameras_pose(tmp_path):
    app, summary = ran(tmp_path, WORLD)
    assert app.told[0] == "tracked"
    poses = [pose for pose, _ in app.drawn]
    assert poses[0] is not None  # a rehearsal, so that what is in the world is measured
    assert any(hit is not None and hit.plane.name == "DICT_4X4_50:7" for _, hit in app.drawn)
    assert True in app.anchored
    assert summary["world"]["tracked"] > 0
    assert summary["world"]["pose_ms"]["p50"] > 0


def test_a_tracker_that_fails_now_and_then_is_among_the_errors(tmp_path, monkeypatch):
    advance, calls = PoseTracker.advance, itertools.count()

    def failing(self, *given, **more):
        if next(calls) in (1, 2):
            raise ArithmeticError("a bad number")
        return advance(self, *given, **more)

    monkeypatch.setattr(PoseTracker, "advance", failing)
    (tmp_path / "mine.py").write_text(WORLD)
    options = RunOptions(headless=True, size=(320, 240), device="onnxruntime", frames=40)
    summary = run_app(str(tmp_path / "mine.py"), options)
    assert summary["world"]["tracked"] > 0  # and goes on
    assert summary["errors"] == [
        "finding the pose failed in a frame: ArithmeticError: a bad number (2 times)"
    ]


def test_the_view_of_the_world_is_drawn_over_the_app(tmp_path):
    taken = {}
    for view in ("off", "world"):
        place = tmp_path / f"{view}.png"
        ran(tmp_path, WORLD, overlay=view, screenshot=place)
        taken[view] = cv2.imread(str(place)).astype(int)
    corner = np.s_[160:235, 235:315]  # what is there, from above
    assert taken["world"][corner].mean() < taken["off"][corner].mean() - 20


ROOM = """
import threading

import numpy as np
from heimdall import App, World
from heimdall.capture import Pose
from heimdall.tracking.pose import Tracking
from heimdall.tracking.slam.found import FoundPlane, Planes
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.picture import Picture

STILL = Pose(np.eye(3), np.zeros(3))


class StandIn:
    reason, closed = "initializing", 0

    def __init__(self):
        self.map, self.seen = Map(), 0

    def advance(self, image, camera, sequence=0, at_s=None):
        self.seen += 1
        if self.seen == 1:
            return Tracking(sequence, "lost", None)
        if self.seen == 2:
            none = np.empty(0, int), np.empty((0, 2)), np.empty((0, 2))
            self.map.add(Keyframe(0, Picture(image, camera), STILL, *none))
        if self.seen == 3:
            pose = Pose(np.diag([1.0, -1, -1]), np.array([0, 0.5, 1.0]))
            plane = FoundPlane(4, pose, (2, 2), "horizontal", np.arange(30), 0.01, np.ones((3, 2)))
            self.map.planes = Planes((plane,), np.array([0, -1.0, 0]))
            self.map.number += 1
        return Tracking(sequence, "tracked", STILL, STILL)

    def close(self):
        self.closed += 1


class Standing(World):
    def begin(self, following=None):
        Mine.tracker = StandIn()
        super().begin(Mine.tracker)


class Mine(App):
    world = Standing()
    clip = "page.mp4"
    reasons, planes, on = set(), [], []

    def on_plane(self, plane):
        self.planes.append(plane)
        self.on.append(threading.current_thread())

    def draw(self, scene):
        if self.world.state == "lost":
            self.reasons.add(self.world.reason)
        scene.hit(100, 200)
        self.anchor((320, 300))
        scene.text(self.world.state)
"""


def test_an_app_in_a_room_is_told_of_planes_on_the_main_thread(tmp_path):
    app, summary = ran(tmp_path, ROOM)
    assert app.planes[0].name == "plane 4"
    assert set(app.on) == {threading.main_thread()}
    assert "initializing" in app.reasons
    assert app.tracker.closed == 1
    assert summary["world"]["tracked"] > 0


def test_a_run_in_a_room_ends_its_process(tmp_path):
    before = set(psutil.Process().children(recursive=True))
    (tmp_path / "mine.py").write_text(
        "from heimdall import App, World\n\n\nclass Mine(App):\n"
        "    world = World()\n    clip = 'page.mp4'\n"
    )
    options = RunOptions(headless=True, size=(320, 240), device="onnxruntime", frames=40)
    summary = run_app(str(tmp_path / "mine.py"), options)
    assert summary["errors"] == []
    assert set(psutil.Process().children(recursive=True)) <= before


def test_targets_that_cannot_be_are_refused_before_anything_is_drawn(tmp_path):
    source = WORLD.replace("0.08))", "0.08), Marker('DICT_4X4_50', 7, 0.2))")
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(ConfigError, match="given twice"):
        run_app(str(tmp_path / "mine.py"), RunOptions(headless=True, frames=2))
