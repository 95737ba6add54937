"""Pictures and videos taken at the press of a key."""

import cv2
import pytest

from heimdall.render import Takes

INTERVAL_NS = round(1e9 / 30)


@pytest.fixture
def takes(headless, tmp_path, said):
    made = Takes(headless, "app", tmp_path, said.append)
    yield made
    made.close()


@pytest.fixture
def said() -> list[str]:
    return []


def draw(surface, takes, count, red=0.0):
    for number in range(count):
        surface.framebuffer.clear(red, number / 20, 0)
        takes.frame(number * INTERVAL_NS)


def test_a_picture_is_of_the_frame_drawn_next(headless, takes, tmp_path, said):
    draw(headless, takes, 2)
    takes.picture()
    draw(headless, takes, 2, red=1.0)
    takes.close()
    (path,) = tmp_path.iterdir()
    assert path.match("app-*.png")
    assert tuple(cv2.imread(str(path))[0, 0]) == (0, 0, 255)
    assert said == [f"saved {path}"]


def test_two_pictures_in_one_second_have_names_of_their_own(headless, takes, tmp_path):
    takes.picture()
    takes.picture()
    draw(headless, takes, 2)
    takes.close()
    assert len(list(tmp_path.glob("*.png"))) == 2


def test_a_video_holds_every_frame_between_two_presses(headless, takes, tmp_path, said):
    takes.video(30)
    assert takes.recording
    draw(headless, takes, 7)
    takes.video(30)
    assert not takes.recording
    draw(headless, takes, 3)
    takes.close()
    (path,) = tmp_path.glob("*.mp4")
    assert int(cv2.VideoCapture(str(path)).get(cv2.CAP_PROP_FRAME_COUNT)) == 7
    assert said == [f"7 frames saved in {path}"]


def test_a_video_that_cannot_go_on_ends_and_says_so(headless, takes, tmp_path, said, monkeypatch):
    def fail(*_):
        raise OSError(28, "disk full")

    monkeypatch.setattr("heimdall.render.video.VideoFile.write", fail)
    takes.video(30)
    while takes.recording:
        draw(headless, takes, 1)
    takes.close()
    (line,) = said
    assert "stopped after 0 frames: disk full" in line


def test_where_nothing_can_be_written_the_user_is_told(headless, tmp_path, said):
    (tmp_path / "file").write_text("x")
    takes = Takes(headless, "app", tmp_path / "file", said.append)
    takes.video(30)
    assert not takes.recording
    takes.picture()
    draw(headless, takes, 2)
    takes.close()
    assert len(said) == 2
    assert all("cannot" in line for line in said)
