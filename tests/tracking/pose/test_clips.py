"""`heimdall pose` and `heimdall calibrate` open what runs open, at the times that sources state."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from heimdall.capture import Frame
from heimdall.capture.camera_files import file_of, write_camera
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.mcap_writer import McapWriter
from heimdall.errors import ConfigError
from heimdall.tracking.pose import Marker, PoseTracker
from heimdall.tracking.pose.clips import pictures, poses
from tests.media import make, scene

TIMES_MS = (0, 30, 200, 230, 260, 290, 320, 350)
EUROC_NS = 1403636579000000000
LENS = Camera(320, 240, 300.0, 300.0, 160.0, 120.0)


def marked(number: int) -> np.ndarray:
    """A marker that moves, BGR."""
    image = np.full((240, 320, 3), 255, np.uint8)
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    marker = cv2.aruco.generateImageMarker(dictionary, 7, 96)
    image[60:156, 80 + 4 * number : 176 + 4 * number] = marker[..., None]
    return image


def session(path: Path, camera: Camera = LENS) -> Path:
    with closing(McapWriter(path, lossless=True)) as writer:
        for number, at_ms in enumerate(TIMES_MS):
            seen = replace(camera, motion=Motion([0, 1, 0]))
            writer.frame(Frame(marked(number), number, 10**9 + at_ms * 10**6, seen))
    return path


def found(source: Path) -> list[dict]:
    result = poses(str(source), None, PoseTracker([Marker("DICT_4X4_50", 7, 0.08)]))
    return result["frames"]


def test_a_session_has_the_poses_of_its_pictures(tmp_path: Path):
    kept = found(session(tmp_path / "run.mcap"))
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, at_ms in enumerate(TIMES_MS):
        cv2.imwrite(str(folder / f"{EUROC_NS + at_ms * 10**6}.png"), marked(number))
    write_camera(file_of(str(folder)), LENS)
    assert kept[-1]["state"] == "tracked"
    assert kept == found(folder)


def test_a_session_has_its_times_and_camera(tmp_path: Path):
    seen = list(pictures(str(session(tmp_path / "run.mcap"))))
    assert [each.at_s for each in seen] == pytest.approx([at / 1e3 for at in TIMES_MS])
    assert seen[0].camera == replace(LENS, motion=seen[0].camera.motion)
    np.testing.assert_array_equal(seen[2].image, marked(2))


def test_a_session_that_was_calibrated_later_has_that_camera(tmp_path: Path):
    path = session(tmp_path / "run.mcap", Camera.guess(320, 240))
    assert next(pictures(str(path))).camera.guessed
    write_camera(file_of(str(path)), LENS)
    seen = next(pictures(str(path))).camera
    assert seen == replace(LENS, motion=seen.motion)
    np.testing.assert_allclose(seen.motion.down, [0, 1, 0])


@pytest.mark.parametrize("suffix", ["png", "pgm", "mp4", "jp2"])
def test_a_marker_in_a_picture_is_found_whatever_the_file_is(tmp_path: Path, suffix: str):
    path = tmp_path / f"a.{suffix}"
    if suffix == "mp4":
        make(path, [marked(0)])
    else:
        cv2.imwrite(str(path), marked(0)[..., 0])
    (only,) = found(path)
    assert only["state"] == "tracked"


def test_frames_of_a_clip_have_their_own_times(tmp_path: Path):
    path = make(tmp_path / "a.mkv", [scene()] * len(TIMES_MS), times_ms=TIMES_MS)
    seen = [each.at_s for each in pictures(str(path))]
    assert seen == pytest.approx([at / 1e3 for at in TIMES_MS], abs=1e-3)


def test_what_runs_refuse_is_refused_alike(tmp_path: Path):
    (tmp_path / "a.mp4").write_text("Pictures\n" * 600)
    with pytest.raises(ConfigError, match="is a text file"):
        next(pictures(str(tmp_path / "a.mp4")))
    with pytest.raises(ConfigError, match="cannot read source"):
        next(pictures(str(tmp_path / "gone.mp4")))
