"""The pictures of the front page: what is kept of a run's video and last frame."""

import importlib
import io
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from heimdall.errors import DeviceError

pictures = importlib.import_module("scripts.pictures")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """Five seconds in which a bar moves by four pixels a frame, 30 frames a second."""
    path = tmp_path_factory.mktemp("video") / "take.mp4"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 30, (640, 480))
    for number in range(150):
        frame = np.zeros((480, 640, 3), np.uint8)
        frame[:, 4 * number : 4 * number + 20] = 255
        writer.write(frame)
    writer.release()
    return path


def bar(picture):
    """Where the bar's middle is."""
    bright = np.asarray(picture.convert("L")).mean(axis=0) > 128
    return np.flatnonzero(bright).mean()


def test_a_clip_is_the_last_seconds_at_a_lower_rate(video):
    with Image.open(io.BytesIO(pictures.clip(video, 30))) as clip:
        assert clip.size == (480, 360)
        assert clip.n_frames == 48  # type: ignore[attr-defined]
        assert bar(clip) == pytest.approx(0.75 * (4 * 30 + 10), abs=4)
        clip.seek(47)
        assert bar(clip) == pytest.approx(0.75 * (4 * 148 + 10), abs=4)
        assert clip.info["duration"] == pytest.approx(1000 / 12, abs=1)


def test_a_clip_that_cannot_be_small_enough_is_refused(video, monkeypatch):
    monkeypatch.setattr(pictures, "CLIP_BYTES", 100)
    with pytest.raises(DeviceError, match="100 at most"):
        pictures.clip(video, 30)


def test_a_video_without_frames_is_refused(tmp_path):
    with pytest.raises(DeviceError, match="no frame"):
        pictures.clip(tmp_path / "none.mp4", 30)


def test_a_picture_becomes_a_small_webp(tmp_path):
    path = tmp_path / "take.png"
    Image.new("RGBA", (640, 480), "red").save(path)
    with Image.open(io.BytesIO(pictures.still(path, 480))) as picture:
        assert (picture.format, picture.size) == ("WEBP", (480, 360))


@pytest.fixture(scope="module")
def of_pages():
    return {take.learn.name: take for take in pictures.TAKES if take.learn is not None}


def test_the_app_of_a_page_is_one_of_its_states_with_its_network(of_pages, tmp_path):
    def written(name):
        return pictures.written(of_pages[name].app, of_pages[name].learn, tmp_path)

    first, last = written("boxes").read_text("utf-8"), written("couch").read_text("utf-8")
    assert "scene.boxes" in first
    assert "style.request" not in first
    assert "style.request" in last
    assert written("red").with_name("red.onnx").is_file()


def test_a_page_shows_each_picture_that_is_taken_for_it(of_pages):
    for take in of_pages.values():
        text = (pictures.LEARN / take.learn.page).read_text("utf-8")
        assert f"](../images/{take.image})" in text


def test_every_app_has_a_clip_of_a_source_that_is_there():
    apps = {path.stem for path in (ROOT / "apps").glob("[a-z]*.py")}
    assert {take.app for take in pictures.TAKES if take.moving} == apps
    assert all((pictures.MEDIA / take.source).is_file() for take in pictures.TAKES)


def test_an_unknown_app_is_said_to_be_one(capsys):
    assert pictures.main(["shoping"]) == 2
    said = capsys.readouterr().err
    assert "choose of assistant, emoji, examples, learn, marker, shopping" in said
