from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import pytest

from heimdall.capture import Source, open_source, readers
from heimdall.capture import source as capture
from heimdall.errors import ConfigError, DeviceError

PATIENCE_S = 20.0  # for what must happen at last; nothing here measures speed


def _picture(level: int = 0) -> np.ndarray:
    return np.full((24, 32, 3), level % 256, np.uint8)


class FakeReader:
    """Hands out the pictures of ``script``; a callable in it is called and gives the picture."""

    def __init__(self, script: list, *, live: bool = True, fps: float = 0.0) -> None:
        self.live, self.fps = live, fps
        self.script, self.position, self.closed = script, 0, False

    def read(self) -> np.ndarray | None:
        if self.position >= len(self.script):
            return None
        item = self.script[self.position]
        self.position += 1
        return item() if callable(item) else item

    def skip(self) -> bool:
        return False

    def rewind(self) -> bool:
        self.position = 0
        return True

    def close(self) -> None:
        self.closed = True


def _until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def forever() -> Iterator[Callable[[], object]]:
    """A read that hangs until the test is over."""
    over = threading.Event()
    yield lambda: over.wait() and None
    over.set()


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "RETRY_S", (0.01, 0.02))


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 50.0, (32, 24))
    for level in range(0, 250, 50):
        writer.write(_picture(level))
    writer.release()
    return path


# --- the newest frame wins -------------------------------------------------------------------


def test_older_undelivered_frames_are_dropped_and_counted(forever) -> None:
    script = [_picture(level) for level in range(5)] + [forever]
    with closing(Source(lambda: FakeReader(script), "fake")) as source:
        _until(lambda: source.wait_first(0).sequence == 4 if source.wait_first(0) else False)
        frame = source.latest()
        assert frame is not None
        assert (frame.sequence, frame.image[0, 0, 0]) == (4, 4)
        assert source.dropped == 4


def test_the_last_frame_is_given_again_while_a_read_hangs(forever) -> None:
    with closing(Source(lambda: FakeReader([_picture(7), forever]), "fake")) as source:
        assert source.wait_first(PATIENCE_S) is not None
        first, again = source.latest(), source.latest()
        assert first is again
        assert source.dropped == 0


def test_before_the_first_frame_there_is_none(forever) -> None:
    with closing(Source(lambda: FakeReader([forever]), "fake")) as source:
        assert source.latest() is None
        assert source.wait_first(0.01) is None


def test_closing_does_not_wait_for_a_read_that_hangs(forever) -> None:
    source = Source(lambda: FakeReader([_picture(), forever]), "fake")
    source.wait_first(PATIENCE_S)
    source.close(timeout_s=0.05)
    assert source.latest() is not None


def test_frames_carry_growing_sequences_and_times(clip: Path) -> None:
    with closing(open_source(str(clip))) as source:
        seen: list[capture.Frame] = []

        def collect() -> bool:
            frame = source.latest()
            if frame is not None and (not seen or frame is not seen[-1]):
                seen.append(frame)
            return len(seen) >= 8

        _until(collect)
    assert [f.sequence for f in seen] == sorted({f.sequence for f in seen})
    assert [f.captured_ns for f in seen] == sorted({f.captured_ns for f in seen})


def test_grey_frames_become_bgr(forever) -> None:
    grey = np.full((24, 32), 9, np.uint8)
    with closing(Source(lambda: FakeReader([grey, forever]), "fake")) as source:
        frame = source.wait_first(PATIENCE_S)
        assert frame is not None
        assert frame.image.shape == (24, 32, 3)


# --- sources that die ------------------------------------------------------------------------


def test_a_dead_camera_shows_its_last_frame_and_comes_back(forever) -> None:
    plug = threading.Event()
    attempts: list[FakeReader] = []

    def open_reader() -> FakeReader:
        if attempts and not plug.is_set():
            raise DeviceError("cannot open camera 0; is it plugged in?")
        script = [_picture(len(attempts) + 1)] + ([forever] if attempts else [])
        attempts.append(FakeReader(script))
        return attempts[-1]

    with closing(Source(open_reader, "camera 0")) as source:
        _until(lambda: "plugged in" in (source.error or ""))
        assert source.latest().image[0, 0, 0] == 1
        assert attempts[0].closed
        plug.set()
        _until(lambda: source.latest().image[0, 0, 0] == 2)
        assert source.error is None
        assert not source.ended


@pytest.mark.parametrize(
    "odd",
    [np.zeros((24, 32, 3)), np.zeros((0, 0, 3), np.uint8), np.zeros((2, 24, 32, 3), np.uint8)],
)
def test_a_frame_that_is_no_picture_is_left_out_and_named(forever, odd) -> None:
    script = [_picture(1), odd, _picture(2), forever]
    with closing(Source(lambda: FakeReader(script), "camera 0")) as source:
        _until(lambda: (frame := source.latest()) and frame.image[0, 0, 0] == 2)
        assert source.latest().sequence == 2
        assert source.error is None  # it works again
        assert len(source.errors) == 1
        assert "camera 0: a picture is left out" in source.errors[0]


def test_a_driver_that_raises_is_retried_and_reported(forever) -> None:
    def broken() -> np.ndarray:
        raise cv2.error("cable\nat line 17")

    scripts = iter([[_picture(1), broken], [_picture(2), forever]])
    gate = threading.Event()

    def open_reader() -> FakeReader:
        script = next(scripts)
        if script[0][0, 0, 0] == 2:
            gate.wait()
        return FakeReader(script)

    with closing(Source(open_reader, "camera 3")) as source:
        _until(lambda: source.error)
        assert source.error == "camera 3: cable"
        gate.set()
        _until(lambda: source.latest().image[0, 0, 0] == 2)


def test_a_live_source_that_falls_silent_is_reported(forever, monkeypatch) -> None:
    monkeypatch.setattr(capture, "SILENCE_S", 0.0)
    with closing(Source(lambda: FakeReader([_picture(), forever]), "camera 0")) as source:
        source.wait_first(PATIENCE_S)
        _until(lambda: "no picture for" in (source.error or ""))


def test_a_source_that_never_opens_raises_its_reason() -> None:
    def open_reader() -> FakeReader:
        raise OSError("device busy")

    with pytest.raises(DeviceError, match="camera 0: device busy"):
        Source(open_reader, "camera 0").wait_open()


def test_a_source_that_hangs_while_opening_is_given_up(forever) -> None:
    with pytest.raises(DeviceError, match="camera 0 did not answer"):
        Source(forever, "camera 0").wait_open(timeout_s=0.05)


def test_a_source_whose_user_does_not_wait_for_it_is_closed(forever, monkeypatch) -> None:
    source = Source(forever, "camera 0")

    def interrupted(timeout_s: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(source._opened, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        source.wait_open()
    assert source._stop.is_set()


# --- clips and pictures ----------------------------------------------------------------------


def test_a_clip_waits_at_its_first_frame_until_somebody_looks() -> None:
    script = [_picture(level) for level in range(3)]
    reader = FakeReader(script, live=False, fps=200)
    with closing(Source(lambda: reader, "clip", loop=False)) as source:
        assert source.wait_first(PATIENCE_S).sequence == 0
        time.sleep(0.1)
        assert reader.position == 1
        source.latest()
        _until(lambda: source.ended)
        assert reader.position == 3


def test_a_clip_loops(clip: Path) -> None:
    with closing(open_source(str(clip))) as source:
        _until(lambda: source.latest() and source.latest().sequence > 12)
        assert not source.ended
        assert source.error is None
        assert source.describe() == "video clip.avi, 32x24 at 50 fps, looped"


def test_a_clip_played_once_ends_and_keeps_its_last_frame(clip: Path) -> None:
    with closing(open_source(str(clip), loop=False, fps=100)) as source:
        source.latest()
        _until(lambda: source.ended)
        frame = source.latest()
        assert frame.sequence == 4
        assert abs(int(frame.image[0, 0, 0]) - 200) < 8


@pytest.mark.parametrize(("fps", "expected"), [(0, [90, 10, 60]), (5, [200, 200, 200])])
def test_frames_are_due_as_far_apart_as_the_source_says(fps: float, expected: list[int]) -> None:
    """Or, if a rate is asked for, at that."""
    gaps = iter([5, 90, 10, 60, 1])

    class Varying(FakeReader):
        def gap_ns(self) -> int:
            return next(gaps) * 10**6

    reader = Varying([_picture(level) for level in range(5)], live=False, fps=1)
    seen: list[capture.Frame] = []
    source = Source(lambda: reader, "clip", loop=False, fps=fps)
    source.observe = seen.append
    with closing(source):
        assert source.wait_first(PATIENCE_S)
        source.latest()
        _until(lambda: source.ended)
    due = [each.captured_ns for each in seen[-4:]]
    apart = [(after - before) / 1e6 for before, after in itertools.pairwise(due)]
    assert apart == pytest.approx(expected, abs=1e-3)


def test_late_frames_of_a_clip_are_passed_over() -> None:
    skipped = []

    class Late(FakeReader):
        def skip(self) -> bool:
            skipped.append(self.position)
            return True

    def slow() -> np.ndarray:
        time.sleep(0.35)
        return _picture()

    reader = Late([_picture(), _picture(), slow, _picture(), _picture()], live=False, fps=10)
    with closing(Source(lambda: reader, "clip", loop=False)) as source:
        source.latest()
        _until(lambda: source.ended)
        assert skipped
        assert source.latest().sequence == 4 + len(skipped)
        assert source.dropped >= len(skipped)


def test_a_picture_is_one_frame_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "still.png"
    cv2.imwrite(str(path), _picture(80))
    with closing(open_source(str(path))) as source:
        assert source.wait_first(PATIENCE_S).image[0, 0, 0] == 80
        assert source.latest().sequence == 0
        assert not source.ended
        assert not source.flowing
        assert source.describe() == "image still.png, 32x24"


def test_a_file_url_is_a_file(clip: Path) -> None:
    with closing(open_source(clip.as_uri())) as source:
        assert source.wait_first(PATIENCE_S) is not None


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("notes.txt", b"no video at all\n" * 50, ConfigError),
        ("empty.mp4", b"", ConfigError),
        ("noise.mp4", bytes(range(256)) * 64, DeviceError),
        ("noise.png", b"\x89PNG\r\n\x1a\n" + bytes(200), DeviceError),
    ],
)
def test_files_that_are_no_video_are_named(tmp_path: Path, name, content, error) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(error, match=name.replace(".", r"\.")):
        open_source(str(path))


def test_a_truncated_video_is_named(assets: Path, tmp_path: Path) -> None:
    path = tmp_path / "half.mp4"
    path.write_bytes((assets / "media" / "single_face.mp4").read_bytes()[:3000])
    with pytest.raises(DeviceError, match=r"half\.mp4"):
        open_source(str(path))


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.mp4: No such file"):
        open_source(str(tmp_path / "nowhere.mp4"))
    with pytest.raises(ConfigError, match="holds no picture"):
        open_source(str(tmp_path))


def test_a_camera_that_is_not_there_is_named(monkeypatch) -> None:
    monkeypatch.setattr(readers, "camera_likely", lambda index: False)
    with pytest.raises(DeviceError, match="camera 7"):
        open_source(7)
    with pytest.raises(DeviceError, match="camera 7"):
        open_source("7")


def test_a_stream_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(DeviceError, match="stream rtsp://127") as raised:
        open_source("rtsp://me:secret@127.0.0.1:9/live")
    assert "secret" not in str(raised.value)


def test_without_a_camera_the_default_clip_plays(clip: Path, monkeypatch) -> None:
    monkeypatch.setattr(capture, "camera_likely", lambda index: False)
    with closing(open_source(None, default=clip)) as source:
        assert source.describe().startswith("video clip.avi")
    with pytest.raises(DeviceError, match="no camera"):
        open_source(None)


# --- hold, step, follow another source --------------------------------------------------------


@pytest.fixture
def numbers() -> FakeReader:
    """A clip whose frames are as bright as their number."""
    return FakeReader([_picture(number) for number in range(200)], live=False, fps=200.0)


@pytest.fixture
def counting(numbers: FakeReader) -> Iterator[Source]:
    with closing(Source(lambda: numbers, "clip")) as source:
        assert source.wait_first(PATIENCE_S)
        source.latest()
        yield source


def _level(source: Source) -> int:
    frame = source.latest()
    assert frame is not None
    return int(frame.image[0, 0, 0])


def _beyond(source: Source, level: int) -> bool:
    return _level(source) > level


def test_a_held_clip_waits_and_steps_frame_by_frame(counting, numbers):
    _until(lambda: _level(counting) > 3)
    counting.hold()
    held = _level(counting)
    _until(lambda: numbers.position > held + 1)  # one frame more is read, then it waits
    assert counting.held
    assert not counting.flowing
    assert _level(counting) == held
    for level in range(held, held + 3):
        counting.step()
        _until(partial(_beyond, counting, level))
        assert _level(counting) == level + 1
    counting.release()
    assert counting.flowing
    _until(partial(_beyond, counting, held + 4))


def test_a_held_camera_steps_to_its_newest_picture():
    def picture() -> np.ndarray:
        time.sleep(0.002)
        return _picture()

    reader = FakeReader([picture] * 9000)
    with closing(Source(lambda: reader, "camera")) as source:
        assert source.wait_first(PATIENCE_S)
        source.hold()
        held = source.latest()
        _until(lambda: reader.position > 11)  # the tenth can be had
        assert source.latest() is held
        source.step()
        assert source.latest().sequence >= 10


def test_frames_can_follow_those_of_another_source(counting):
    reader = FakeReader([_picture(7)] * 3, live=False, fps=200.0)
    with closing(Source(lambda: reader, "next")) as source:
        assert source.wait_first(PATIENCE_S)
        source.number_from(500)
        assert source.latest().sequence == 500
        _until(lambda: source.latest().sequence > 501)
