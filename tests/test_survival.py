"""What happens to laptops: the app goes on."""

from __future__ import annotations

import time

import numpy as np
import pytest

import heimdall.runtime.loop.base
import heimdall.runtime.opening.setup
import heimdall.runtime.session.shared_gpu
from heimdall.app.options import RunOptions
from heimdall.capture import Source
from heimdall.errors import DeviceError
from heimdall.runtime.run import run_app
from heimdall.system.clock import AwakeClock

APP = """
from heimdall import DNN, App

class Mine(App):
    dnns = (DNN("segment", model="selfie", rate_hz=5),)
"""
HOUR_NS = 3_600_000_000_000


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(APP)
    return str(path)


def options(**more):
    return RunOptions(headless=True, size=(160, 90), device="onnxruntime", **more)


def test_an_hour_of_sleep_leaves_no_mark_on_the_figures(app, monkeypatch):
    """The clock jumps by an hour in the middle of a second of frames."""
    began_ns = time.perf_counter_ns()
    asleep: list[int] = []

    def clock() -> int:
        now_ns = time.perf_counter_ns()
        if asleep and now_ns > asleep[0]:
            return now_ns + HOUR_NS
        return now_ns

    class Sleepy(AwakeClock):
        def __init__(self) -> None:
            super().__init__(clock, lambda: clock() - time.perf_counter_ns())

    warm = heimdall.runtime.loop.base.Reporter.warm

    def fall_asleep(self, now_ns):
        warm(self, now_ns)
        asleep.append(time.perf_counter_ns() + 500_000_000)

    monkeypatch.setattr(heimdall.runtime.session.shared_gpu, "AwakeClock", Sleepy)
    monkeypatch.setattr(heimdall.runtime.loop.base.Reporter, "warm", fall_asleep)
    summary = run_app(app, options(seconds=1.5))
    assert time.perf_counter_ns() - began_ns > 1_500_000_000
    assert summary["errors"] == []
    assert summary["seconds"] < 100
    assert summary["skipped_frames"] < 1000
    assert summary["frame_interval_ms"]["max"] < 60_000
    segment = summary["dnns"]["segment"]
    assert segment["latency_ms"]["max"] < 60_000
    assert segment["end_to_end_ms"]["max"] < 60_000


class Unplugged:
    """A camera that gives a few pictures, and is gone for a while."""

    fps, live = 0.0, True
    opened = 0

    def __init__(self, gone: int) -> None:
        type(self).opened += 1
        if 1 < self.opened <= gone:
            raise DeviceError("cannot open camera 0; is it plugged in, and free?")
        self._left = 3 if self.opened == 1 else 10**6

    def read(self):
        time.sleep(0.01)
        self._left -= 1
        return (
            np.full((48, 64, 3), 90 if self.opened == 1 else 200, np.uint8) if self._left else None
        )

    def skip(self):
        return False

    def rewind(self):
        return False

    def close(self):
        pass


@pytest.mark.parametrize("gone", [4, 10**6])
def test_a_camera_may_go_and_come_back(app, monkeypatch, tmp_path, gone):
    monkeypatch.setattr("heimdall.capture.source.RETRY_S", (0.05,))
    monkeypatch.setattr(Unplugged, "opened", 0)
    source = Source(lambda: Unplugged(gone), "camera 0")
    monkeypatch.setattr(heimdall.runtime.opening.setup, "open_source", lambda *args, **more: source)
    picture = tmp_path / "last.png"
    summary = run_app(app, options(frames=60, screenshot=picture, overlay="off"))
    assert summary["frames"] == 60
    if gone == 4:
        assert summary["dnns"]["segment"]["inferences"] > 0
        assert summary["errors"][0].startswith("camera 0 stopped giving pictures")
        assert source.latest().image[0, 0, 0] == 200
    else:
        assert any("is it plugged in, and free?" in each for each in summary["errors"])
        assert source.latest().image[0, 0, 0] == 90
