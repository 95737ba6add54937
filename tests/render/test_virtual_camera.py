"""What is drawn as a camera: by pyvirtualcam itself, with a device that remembers."""

from __future__ import annotations

import json
import time
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

from heimdall.cli import main
from heimdall.errors import DeviceError
from heimdall.render.virtual_camera import VirtualCamera

pyvirtualcam = pytest.importorskip("pyvirtualcam")
BLUE, RED = (0, 0, 255), (255, 0, 0)


class Device:
    """One of pyvirtualcam's drivers."""

    made: ClassVar[list[Device]] = []
    broken = False

    def __init__(self, *, width, height, fps, fourcc, device, **more):
        if device not in (None, "a camera"):
            raise RuntimeError(f"{device} is no camera")
        self.size, self.frames, self.closed = (width, height), [], False
        self.made.append(self)

    def send(self, frame):
        if self.broken:
            raise RuntimeError("unplugged")
        self.frames.append(np.array(frame).reshape(self.size[1], self.size[0], 3))

    def device(self):
        return "a camera"

    def native_fourcc(self):
        return None

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def made(monkeypatch):
    monkeypatch.setattr("pyvirtualcam.camera.BACKENDS", {"of this test": Device})
    monkeypatch.setattr(Device, "made", [])
    return Device.made


def until(condition) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def paint(surface) -> None:
    """Blue, its lower half red."""
    w, h = surface.size
    surface.framebuffer.clear(0, 0, 1)
    surface.framebuffer.clear(1, 0, 0, viewport=(0, 0, w, h // 2))
    surface.finish()


def test_frames_come_upright_in_their_colours(headless, made):
    camera = VirtualCamera("any", headless.size, 30)
    paint(headless)
    camera.frame(headless)
    camera.frame(headless)
    until(lambda: made[0].frames)
    frame = made[0].frames[0]
    assert frame.shape == (360, 640, 3)
    assert tuple(frame[40, 300]) == BLUE
    assert tuple(frame[320, 300]) == RED
    camera.close()
    camera.close()
    assert made[0].closed
    assert camera.sent + camera.overtaken <= 2


def test_a_frame_of_another_shape_gets_bars(headless, made):
    camera = VirtualCamera("a camera", headless.size, 30)
    headless.resize((180, 360))
    paint(headless)
    for _ in range(2):
        camera.frame(headless)
    until(lambda: made[0].frames)
    frame = made[0].frames[-1]
    assert frame.shape == (360, 640, 3)
    assert not frame[:, :225].any()
    assert not frame[:, 415:].any()
    assert tuple(frame[40, 320]) == BLUE
    camera.close()


def test_no_such_device_is_told_with_what_to_do(headless):
    with pytest.raises(DeviceError, match=r"/dev/video99: .* is no camera; "):
        VirtualCamera("/dev/video99", headless.size, 30)


def run(*more: str) -> dict:
    done = CliRunner().invoke(
        main,
        [
            *("run", "marker", "--headless", "--frames", "20", "--json", "--device", "onnxruntime"),
            *("--virtual-camera", *more),
        ],
    )
    return {**json.loads(done.stdout), "exit": done.exit_code}


def test_a_run_is_a_camera(made):
    summary = run()
    told = summary["outputs"]["virtual_camera"]
    assert told["path"] == "a camera"
    assert told["error"] is None
    assert told["frames"] == len(made[0].frames) > 5
    assert made[0].closed


def test_a_camera_that_fails_is_named_and_the_run_goes_on(monkeypatch):
    monkeypatch.setattr(Device, "broken", True)
    summary = run("a camera")
    assert "unplugged" in summary["outputs"]["virtual_camera"]["error"]
    assert any("unplugged" in error for error in summary["errors"])
    assert summary["frames"] >= 20
    assert summary["exit"] == 2
