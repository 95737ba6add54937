"""Video files: H.264 in fragments, whole up to where writing ended, each picture at its time."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from heimdall.errors import DeviceError
from heimdall.render.video import VideoFile

FPS = 30
INTERVAL_NS = round(1e9 / FPS)
SIZE = (320, 180)


def grey(level: float, size: tuple[int, int] = SIZE) -> np.ndarray:
    picture = np.full((size[1], size[0], 4), 255, np.uint8)
    picture[..., :3] = round(level)
    return picture


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (SIZE[1], SIZE[0], 4), np.uint8)


def written(path: Path, pictures: list[np.ndarray], size: tuple[int, int] = SIZE) -> Path:
    video = VideoFile(path, size, FPS)
    for number, picture in enumerate(pictures):
        video.write(picture, number * INTERVAL_NS)
    video.close()
    return path


def boxes(path: Path) -> Iterator[str]:
    """The kinds of an MP4's boxes, in order."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        yield data[at + 4 : at + 8].decode("latin-1")
        at += int.from_bytes(data[at : at + 4], "big")


def seconds(path: Path) -> list[float]:
    """When each frame of a video is shown; fails where one cannot be decoded."""
    with av.open(str(path)) as container:
        return [frame.time for frame in container.decode(video=0)]


@contextlib.contextmanager
def no_file_beyond(limit_bytes: int) -> Iterator[None]:
    """As on a disk with that much room left: the system refuses to write more."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_it_is_h264_in_an_mp4_of_fragments_that_opencv_and_browsers_play(tmp_path):
    path = written(tmp_path / "a.mp4", [grey(8 * number) for number in range(30)])
    found = list(boxes(path))
    assert found[:2] == ["ftyp", "moov"]
    assert found.count("moof") >= 3
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt) == ("h264", "yuv420p")
        assert stream.average_rate == FPS
    capture = cv2.VideoCapture(str(path))
    assert capture.get(cv2.CAP_PROP_FPS) == pytest.approx(FPS)
    levels = []
    while (read := capture.read())[0]:
        assert read[1].shape == (SIZE[1], SIZE[0], 3)
        levels.append(read[1].mean())
    assert levels == pytest.approx([8 * number for number in range(30)], abs=3)


def test_colours_are_those_of_the_pictures(tmp_path):
    picture = grey(0)
    picture[:, :160, 0] = picture[:, 160:, 2] = 255
    path = written(tmp_path / "a.mp4", [picture] * 3)
    shown = cv2.VideoCapture(str(path)).read()[1]
    assert shown[90, 80] == pytest.approx((0, 0, 255), abs=6)  # blue, green, red
    assert shown[90, 240] == pytest.approx((255, 0, 0), abs=6)


@pytest.mark.parametrize(("size", "stored"), [((321, 181), (322, 182)), ((1, 1), (2, 2))])
def test_an_odd_side_gets_a_pixel_more(tmp_path, size, stored):
    path = written(tmp_path / "a.mp4", [grey(200, size)] * 3, size)
    frame = cv2.VideoCapture(str(path)).read()[1]
    assert frame.shape[1::-1] == stored
    assert frame.min() > 190


def test_a_picture_of_another_size_is_scaled(tmp_path):
    path = written(tmp_path / "a.mp4", [grey(90), grey(90, (400, 100))])
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert [frame.shape for frame in frames] == [(SIZE[1], SIZE[0], 3)] * 2
    assert frames[1].mean() == pytest.approx(90, abs=3)


def test_pictures_left_out_leave_the_others_at_their_time(tmp_path):
    shown = [0, 1, 2, 10, 11, 60, 61]
    video = VideoFile(tmp_path / "a.mp4", SIZE, FPS)
    for number in shown:
        video.write(grey(3 * number), 5_000_000_000 + number * INTERVAL_NS)
    video.close()
    assert seconds(tmp_path / "a.mp4") == pytest.approx([number / FPS for number in shown])


def test_times_that_stand_still_do_not_end_it(tmp_path):
    video = VideoFile(tmp_path / "a.mp4", SIZE, FPS)
    for at_ns in (0, 0, INTERVAL_NS, INTERVAL_NS - 5, 2 * INTERVAL_NS):
        video.write(grey(100), at_ns)
    video.close()
    found = seconds(tmp_path / "a.mp4")
    assert len(found) == 5
    assert found == sorted(found)


def test_a_copy_taken_in_mid_write_plays_up_to_the_last_half_second(tmp_path):
    video = VideoFile(tmp_path / "a.mp4", SIZE, FPS)
    for number in range(100):
        video.write(noise(number), number * INTERVAL_NS)
        if number in (50, 99):
            shutil.copy(tmp_path / "a.mp4", tmp_path / "copy.mp4")
            found = seconds(tmp_path / "copy.mp4")
            assert found == pytest.approx([index / FPS for index in range(len(found))], abs=1e-4)
            assert found[-1] >= number / FPS - 0.5
    video.close()
    assert len(seconds(tmp_path / "a.mp4")) == 100


def test_where_the_disk_is_full_it_ends_with_its_last_whole_fragment(tmp_path):
    limit = 1_000_000
    with no_file_beyond(limit):
        video = VideoFile(tmp_path / "a.mp4", SIZE, FPS)
        number = 0
        with pytest.raises(OSError, match="large") as caught:  # noqa: PT012  (a while later)
            for number in range(1000):
                video.write(noise(number), number * INTERVAL_NS)
        with pytest.raises(OSError, match="large"):
            video.close()
    assert caught.value.errno == errno.EFBIG
    assert limit / 2 < (tmp_path / "a.mp4").stat().st_size <= limit
    assert set(boxes(tmp_path / "a.mp4")) == {"ftyp", "moov", "moof", "mdat"}
    found = seconds(tmp_path / "a.mp4")
    assert number / FPS - 1 < found[-1] < number / FPS


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_a_disk_that_is_full_already_is_found_at_once(tmp_path):
    (tmp_path / "a.mp4").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        VideoFile(tmp_path / "a.mp4", SIZE, FPS)


def test_vp9_takes_the_place_of_a_missing_h264(tmp_path, monkeypatch):
    import av.codec

    monkeypatch.setattr(av.codec, "codecs_available", {"h264", "libvpx-vp9"})
    path = written(tmp_path / "a.mp4", [grey(5 * number) for number in range(30)])
    monkeypatch.undo()
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name in ("vp9", "libvpx-vp9")
    assert len(seconds(path)) == 30


def test_without_any_encoder_the_error_says_what_to_install(tmp_path, monkeypatch):
    import av.codec

    monkeypatch.setattr(av.codec, "codecs_available", {"mpeg4"})
    with pytest.raises(DeviceError, match="pip install"):
        VideoFile(tmp_path / "a.mp4", SIZE, FPS)
    assert not (tmp_path / "a.mp4").exists()
