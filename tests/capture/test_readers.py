"""What reads pictures: files of several kinds, and how what cannot be opened is said."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.capture.readers import (
    open_clip,
    open_file,
    open_stream,
    read_picture,
    without_password,
)
from heimdall.errors import DeviceError
from heimdall.system.paths import ASSETS

CLIP = ASSETS / "media" / "cup.mp4"


def test_a_clip_gives_its_frames_and_begins_again():
    reader = open_clip(CLIP)
    assert not reader.live
    assert 20 <= reader.fps <= 31
    first, second = reader.read(), reader.read()
    assert first.dtype == np.uint8
    assert first.shape == (480, 640, 3)
    assert (first != second).any()
    assert reader.rewind()
    np.testing.assert_array_equal(reader.read(), first)
    reader.close()


def test_a_frame_that_is_passed_over_is_not_seen():
    straight, skipping = open_clip(CLIP), open_clip(CLIP)
    frames = [straight.read() for _ in range(3)]
    np.testing.assert_array_equal(skipping.read(), frames[0])
    assert skipping.skip()
    np.testing.assert_array_equal(skipping.read(), frames[2])
    for reader in (straight, skipping):
        reader.close()


def test_a_clip_ends():
    reader = open_clip(CLIP)
    reader.read()
    count = 0
    while reader.skip():
        count += 1
        assert count < 10_000
    assert reader.read() is None
    reader.close()


def test_a_still_picture_lasts_for_ever(tmp_path):
    picture = np.random.default_rng(0).integers(0, 255, (5, 7, 3), np.uint8)
    cv2.imwrite(str(tmp_path / "a.png"), picture)
    reader = open_file(tmp_path / "a.png")
    for _ in range(3):
        np.testing.assert_array_equal(reader.read(), picture)
        assert reader.rewind()
    assert (reader.live, reader.fps) == (False, 0)


@pytest.mark.parametrize("opener", [open_clip, open_file, read_picture])
def test_a_file_that_is_no_picture_is_refused_by_its_name(tmp_path, opener):
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)) * 8)
    with pytest.raises(DeviceError, match=r"noise\.bin.*(damaged|no video)"):
        opener(tmp_path / "noise.bin")


def test_a_stream_without_a_sender_is_refused_without_its_password():
    with pytest.raises(DeviceError) as caught:
        open_stream("rtsp://me:secret@127.0.0.1:1/x")
    assert "is it reachable?" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rtsp://me:secret@host/x", "rtsp://host/x"),
        ("http://host:80/a@b", "http://host:80/a@b"),
        ("clip.mp4", "clip.mp4"),
        ("rtspsrc location=rtsp://me:secret@host/x ! a", "rtspsrc location=rtsp://host/x ! a"),
        ("rtspsrc user-id=me user-pw=secret ! a", "rtspsrc user-id=me user-pw=... ! a"),
    ],
)
def test_a_password_is_never_shown(url, shown):
    assert without_password(url) == shown
