"""Recordings: playable, complete, in order, and refused early where they cannot be written."""

import os
import threading
import time
from itertools import count

import cv2
import moderngl
import numpy as np
import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.render import Recorder, open_surface, save_picture
from heimdall.render.recorder import Copies
from heimdall.render.video import VideoFile

INTERVAL_NS = round(1e9 / 30)
FEW = 12  # frames that wait for the encoder without being left out, however slow it is


def played(path):
    video = cv2.VideoCapture(str(path))
    rate = video.get(cv2.CAP_PROP_FPS)
    frames = []
    while (got := video.read())[0]:
        frames.append(got[1])
    return frames, rate


def add_for_ever(recorder, surface):
    for number in count():
        recorder.add(surface, number * INTERVAL_NS)


def wait_for_frames(recorder, frames):
    while recorder.written < frames:
        time.sleep(0.01)


@pytest.fixture
def slow(monkeypatch):
    """An encoder that waits until ``set``."""
    go_on = threading.Event()
    write = VideoFile.write

    def wait_and_write(self, picture, at_ns):
        go_on.wait()
        write(self, picture, at_ns)

    monkeypatch.setattr(VideoFile, "write", wait_and_write)
    yield go_on
    go_on.set()


def test_buffers_of_former_sizes_are_released(headless):
    copies, kept = Copies(), []
    for width in range(16, 32):
        headless.resize((width, 16))
        for number in range(4):
            copies.ask(headless, number)
            taken = copies.take(leave=2)
            assert taken is None or taken[0].shape[2] == 4
        kept.append(copies._buffers + [each[0] for each in copies._pending])
    assert max(map(len, kept)) <= 4
    for before in kept[:-2]:
        assert all(isinstance(each.mglo, moderngl.InvalidObject) for each in before)
    copies.release()


def test_every_frame_is_there_in_order_at_the_target_rate(surface, tmp_path):
    path = tmp_path / "new" / "out.mp4"
    recorder = Recorder(path, surface.size, 30)
    recorder.ready()
    for number in range(FEW):
        surface.framebuffer.clear(number / FEW, 0.2, 0)
        recorder.add(surface, number * INTERVAL_NS)
        surface.finish()
        surface.present()
    assert recorder.close() == FEW
    frames, rate = played(path)
    assert len(frames) == FEW
    assert rate == pytest.approx(30)
    reds = [frame[90, 160, 2] for frame in frames]
    assert reds == sorted(reds)
    assert reds[-1] > reds[0] + 150


def test_frames_are_upright(headless, tmp_path):
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    headless.framebuffer.clear(0, 0, 0)
    headless.framebuffer.clear(1, 1, 1, viewport=(0, 180, 640, 180))  # GL's upper half
    recorder.add(headless, 0)
    recorder.close()
    frame = played(tmp_path / "a.mp4")[0][0]
    assert frame[:170].mean() > 230
    assert frame[190:].mean() < 30


def test_a_slow_encoder_costs_frames_of_the_recording_and_no_waiting(headless, tmp_path, slow):
    """The frames at the end come after the gap, at their own time."""
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    many = 60
    for number in range(many):
        recorder.add(headless, number * INTERVAL_NS)
    assert 0 < recorder.dropped < many
    slow.set()
    kept = many - recorder.dropped - 2  # two are on their way from the GPU
    wait_for_frames(recorder, kept)
    for number in range(90, 93):
        recorder.add(headless, number * INTERVAL_NS)
    assert recorder.close() == many + 3 - recorder.dropped
    video = cv2.VideoCapture(str(tmp_path / "a.mp4"))
    times_ms = []
    while video.grab():
        times_ms.append(video.get(cv2.CAP_PROP_POS_MSEC))
    assert len(times_ms) == recorder.written
    assert times_ms[-3:] == pytest.approx([3000, 3033.3, 3066.7], abs=1)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are told by Linux only")
def test_the_encoder_has_no_threads_that_could_disturb_others(tmp_path):
    before = set(os.listdir("/proc/self/task"))
    with open_surface((640, 360), headless=True) as surface:
        surface.finish()
        drawing = set(os.listdir("/proc/self/task"))
        recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
        for number in range(FEW):
            recorder.add(surface, number * INTERVAL_NS)
        wait_for_frames(recorder, FEW - 2)
        encoding = set(os.listdir("/proc/self/task")) - drawing - before
        assert len(encoding) == 2  # its own, and the one that waits for the disk
        assert {os.getpriority(os.PRIO_PROCESS, int(each)) for each in encoding} == {10}
        policies = {os.sched_getscheduler(int(each)) for each in encoding}
        assert policies <= {os.SCHED_OTHER, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK}
        recorder.close()


def test_buffers_are_reused(headless, tmp_path):
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    for number in range(FEW):
        recorder.add(headless, number * INTERVAL_NS)
    assert len(recorder._copies._buffers) + len(recorder._copies._pending) <= 4
    assert recorder.close() == FEW
    assert recorder.close() == FEW


def test_a_path_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be written"):
        Recorder(tmp_path / "file" / "out.mp4", (32, 32), 30)
    with pytest.raises(ConfigError, match=r"\.mp4"):
        Recorder(tmp_path / "out.gif", (32, 32), 30)
    with pytest.raises(ConfigError, match="above 0"):
        Recorder(tmp_path / "out.mp4", (32, 32), 0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_a_full_disk_is_found_before_the_first_frame(tmp_path):
    (tmp_path / "a.mp4").symlink_to("/dev/full")
    recorder = Recorder(tmp_path / "a.mp4", (32, 32), 30)
    with pytest.raises(DeviceError, match=r"a\.mp4 stopped after 0 frames: No space left"):
        recorder.ready()


def test_adding_after_the_end_is_refused(headless, tmp_path):
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    recorder.close()
    with pytest.raises(ConfigError, match="closed"):
        recorder.add(headless, 0)


def test_a_failing_encoder_is_reported_by_the_next_frame_and_at_the_end(
    headless, tmp_path, monkeypatch
):
    failed = threading.Event()

    def fail(*_):
        failed.set()
        raise OSError(28, "disk full")

    monkeypatch.setattr(VideoFile, "write", fail)
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    for number in range(3):
        recorder.add(headless, number * INTERVAL_NS)
    failed.wait()
    with pytest.raises(DeviceError, match="stopped after 0 frames: disk full"):
        add_for_ever(recorder, headless)
    with pytest.raises(DeviceError, match="disk full"):
        recorder.close()


def test_a_picture_replaces_another_only_when_it_is_whole(tmp_path):
    rgb = np.zeros((8, 8, 3), np.uint8)
    rgb[..., 0] = 255
    save_picture(tmp_path / "a.png", rgb)
    assert tuple(cv2.imread(str(tmp_path / "a.png"))[0, 0]) == (0, 0, 255)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ConfigError, match="cannot write picture"):
        save_picture(tmp_path / "folder.png", rgb)
    with pytest.raises(ConfigError, match=r"\.png or \.jpg"):
        save_picture(tmp_path / "a.xyz", rgb)
    assert {path.name for path in tmp_path.iterdir()} == {"a.png", "folder.png"}
