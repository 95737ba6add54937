"""Recordings: playable, complete, in order, and refused early where they cannot be written."""

import cv2
import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.render import Recorder, open_surface


def played(path):
    video = cv2.VideoCapture(str(path))
    rate = video.get(cv2.CAP_PROP_FPS)
    frames = []
    while (got := video.read())[0]:
        frames.append(got[1])
    return frames, rate


def test_every_frame_is_there_in_order_at_the_target_rate(surface, tmp_path):
    path = tmp_path / "new" / "out.mp4"
    recorder = Recorder(path, surface.size, 30)
    for number in range(20):
        surface.framebuffer.clear(number / 20, 0.2, 0)
        recorder.add(surface)
        surface.finish()
        surface.present()
    assert recorder.close() == 20
    frames, rate = played(path)
    assert len(frames) == 20
    assert rate == pytest.approx(30)
    reds = [frame[90, 160, 2] for frame in frames]
    assert reds == sorted(reds)
    assert reds[-1] > reds[0] + 150


def test_frames_are_upright(headless, tmp_path):
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    headless.framebuffer.clear(0, 0, 0)
    headless.framebuffer.clear(1, 1, 1, viewport=(0, 180, 640, 180))  # GL's upper half
    recorder.add(headless)
    recorder.close()
    frame = played(tmp_path / "a.mp4")[0][0]
    assert frame[:170].mean() > 230
    assert frame[190:].mean() < 30


def test_frames_of_another_size_are_scaled(tmp_path):
    recorder = Recorder(tmp_path / "a.mp4", (320, 180), 25)
    for size in ((320, 180), (400, 100)):
        with open_surface(size, headless=True) as opened:
            opened.framebuffer.clear(0, 1, 0)
            recorder.add(opened)
            recorder._frames.put(recorder._copies.take())
    assert recorder.close() == 2
    assert {frame.shape for frame in played(tmp_path / "a.mp4")[0]} == {(180, 320, 3)}


def test_buffers_are_reused(headless, tmp_path):
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    for _ in range(12):
        recorder.add(headless)
    assert len(recorder._copies._buffers) + len(recorder._copies._pending) <= 4
    assert recorder.close() == 12
    assert recorder.close() == 12


def test_a_path_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot be written"):
        Recorder(tmp_path / "file" / "out.mp4", (32, 32), 30)
    with pytest.raises(ConfigError, match=r"\.mp4"):
        Recorder(tmp_path / "out.gif", (32, 32), 30)
    with pytest.raises(ConfigError, match="above 0"):
        Recorder(tmp_path / "out.mp4", (32, 32), 0)


def test_adding_after_the_end_is_refused(headless, tmp_path):
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)
    recorder.close()
    with pytest.raises(ConfigError, match="closed"):
        recorder.add(headless)


def test_a_failing_encoder_is_reported_at_the_end_and_blocks_nobody(
    headless, tmp_path, monkeypatch
):
    recorder = Recorder(tmp_path / "a.mp4", (640, 360), 30)

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(recorder, "_write", fail)
    for _ in range(60):  # more than the queue holds
        recorder.add(headless)
    with pytest.raises(DeviceError, match="disk full"):
        recorder.close()
