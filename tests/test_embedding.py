"""The examples of docs/learn/own-loop.md, run as they stand, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "learn" / "own-loop.md"
SECTION = re.compile(r"^## (.+?)\n.*?```python\n(.*?)```", re.DOTALL | re.MULTILINE)
EXAMPLES: dict[str, str] = dict(SECTION.findall(PAGE.read_text(encoding="utf-8")))


def run_example(title: str, folder: Path, clip: Path, **environment: str) -> str:
    """What the example prints; it plays ``clip``."""
    import os

    code = f"CLIP = {str(clip)!r}\n{EXAMPLES[title]}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def short(tmp_path, assets):
    """Six frames of a clip."""
    video = cv2.VideoCapture(str(assets / "media" / "box.mp4"))
    path = tmp_path / "short.mp4"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 30, (640, 480))
    for _ in range(6):
        writer.write(video.read()[1])
    writer.release()
    return path


def lines(title: str) -> int:
    return len([line for line in EXAMPLES[title].splitlines() if line.strip()])


def test_hosts_are_short():
    assert lines("A video in, a video out") <= 25
    assert lines("Networks alone") <= 15


@pytest.mark.slow
def test_clients_in_threads_ask_a_model(tmp_path, short):
    EXAMPLES["counted"] = EXAMPLES["Requests from many clients"] + "print(len(shapes), shapes[0])"
    assert run_example("counted", tmp_path, short).startswith("5 {")


@pytest.mark.slow
def test_a_video_becomes_another(tmp_path, assets):
    run_example("A video in, a video out", tmp_path, assets / "media" / "box.mp4")
    video = cv2.VideoCapture(str(tmp_path / "styled.mp4"))
    assert int(video.get(cv2.CAP_PROP_FRAME_COUNT)) == 60
    picture = cv2.imread(str(tmp_path / "frame60.png"))
    assert picture.shape == (360, 640, 3)
    assert picture.std() > 20


@pytest.mark.slow
def test_two_networks_look_at_every_frame_of_a_video(tmp_path, short):
    said = run_example("Networks alone", tmp_path, short).splitlines()
    assert len(said) == 6
    assert all(re.fullmatch(r"[0-9]+ things, [0-9]+% people", line) for line in said)
    assert not all(line.startswith("0 ") for line in said)


@pytest.mark.slow
def test_results_are_awaited(tmp_path, assets):
    EXAMPLES["asyncio"] += "print(counts)\n"
    said = run_example("asyncio", tmp_path, assets / "media" / "box.mp4")
    counts = [int(word) for word in re.findall(r"[0-9]+", said)]
    assert len(counts) == 5
    assert max(counts) > 0


@pytest.mark.slow
def test_a_qt_window_shows_pictures(tmp_path, assets):
    pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
    EXAMPLES["A Qt window"] += "print(label.pixmap().size().toTuple(), session.app.name)\n"
    said = run_example(
        "A Qt window", tmp_path, assets / "media" / "desk.mp4", QT_QPA_PLATFORM="offscreen"
    )
    assert "(640, 360) surroundings" in said


@pytest.mark.slow
def test_a_notebook_cell_shows_a_picture(tmp_path, assets):
    EXAMPLES["A notebook cell"] += "picture.save('cell.png')\n"
    run_example("A notebook cell", tmp_path, assets / "media" / "single_face.mp4")
    assert cv2.imread(str(tmp_path / "cell.png")).std() > 20


@pytest.mark.slow
def test_a_host_gets_the_picture_in_its_framebuffer(tmp_path):
    EXAMPLES["In an OpenGL context of yours"] += "print(len(pixels))\n"
    said = run_example("In an OpenGL context of yours", tmp_path, tmp_path)
    assert said.split()[-1] == str(640 * 360 * 3)
