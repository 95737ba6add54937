"""Luminance of real clips in virtual time."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.watched import SCENE_NS, open_watched
from heimdall.models.luminance import PIXELS, luminance_difference, luminance_grid
from heimdall.system import paths

SECOND = 1_000_000_000


def test_a_change_is_what_the_runtime_measures_between_two_pictures():
    capture = cv2.VideoCapture(str(paths.ASSETS / "media" / "desk.mp4"))  # 30 pictures a second
    pictures = [capture.read()[1] for _ in range(16)]
    expected = luminance_difference(luminance_grid(pictures[15]), luminance_grid(pictures[3]))
    clip = open_watched("desk")
    assert clip.difference(round(3.5 / 30 * SECOND), round(15.5 / 30 * SECOND)) == expected > 0
    assert clip.difference(None, SECOND) == 0.0


def test_a_clip_is_played_to_and_fro(tmp_path):
    path = tmp_path / "clip.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 36))
    for level in (50, 100, 200):
        writer.write(np.full((36, 64, 3), level, np.uint8))
    writer.release()
    clip = open_watched(str(path))
    seen = [clip.difference(0, round((step + 0.5) * SECOND / 10)) / PIXELS for step in range(6)]
    assert seen == pytest.approx([0, 50, 150, 50, 0, 50], abs=2)


def test_an_unknown_clip_lists_the_bundled_ones():
    with pytest.raises(ConfigError, match=r"unknown clip 'beach'.*box, cup, desk.*video file"):
        open_watched("beach")


def test_a_file_that_is_no_clip_is_refused(tmp_path):
    path = tmp_path / "no.mp4"
    path.write_bytes(b"no video")
    with pytest.raises(ConfigError, match=r"no\.mp4"):
        open_watched(str(path))


def test_a_reel_goes_from_clip_to_clip_with_a_cut_between():
    reel = open_watched("desk+box")
    frame = SECOND // 30
    within = reel.difference(SECOND, SECOND + frame)
    cut = reel.difference(SCENE_NS - frame, SCENE_NS + frame)
    assert cut > 5 * within
    clips = [reel.place(at * SCENE_NS // 2)[0].stem for at in (0, 1, 2, 3, 4)]
    assert clips == ["desk", "desk", "box", "box", "desk"]
    assert reel.place(SCENE_NS) == open_watched("box").place(SCENE_NS)
