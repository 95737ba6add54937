"""The start page, the tutorials and the recipes for Qt and notebooks work as they stand: the files
of each page are written and its commands run, in order, in a folder of the page's own."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import cv2
import pytest
from click.testing import CliRunner

from heimdall.cli import COMMANDS, main

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECIPES = [DOCS / "do" / "qt.md", DOCS / "do" / "notebooks.md"]  # their files are not commands
LEARN = sorted(set((DOCS / "learn").glob("*.md")) - {DOCS / "learn" / "examples.md"})
PAGES = [DOCS / "index.md", *LEARN, *RECIPES]  # examples.md shows files that tests/examples runs
BLOCK = re.compile(r"^```(python|sh)\b[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
QUICK = ["--headless", "--frames", "8", "--size", "320x240", "--json"]
# What IPython has, for files that are a notebook's cells.
IPYTHON = """
import sys
from types import SimpleNamespace
shown = []
events = SimpleNamespace(register=lambda *_: None, unregister=lambda *_: None)
def get_ipython(): return SimpleNamespace(execution_count=1, events=events)
def Image(data, format): return data
def display(picture, display_id): return SimpleNamespace(update=shown.append)
display.shown = shown
sys.modules["IPython.display"] = sys.modules[__name__]
"""
CLIP = "clip.mp4"  # of whoever reads
FRAMES = 6
WORDS = {"index.md": 500, "learn": 5500}

# What a file prints, where the page promises something.
PRINTS = {
    "count.py": rf"([0-9]+ things, [0-9]+% people\n){{{FRAMES}}}",
    "watch.py": r"(?=.*person)(\[.*\]\n){5}",
    "asked.py": r"(\{'.*': \(.*\)\}\n){5}",
    "hosted.py": rf"{640 * 360 * 3} bytes\n",
    "results_cell.py": r"\[\('.*\)\]\n",
}
# What is looked at when a file has run: code that goes behind it.
AFTER = {
    "restyle.py": f"assert cv2.VideoCapture('out.mp4').get(cv2.CAP_PROP_FRAME_COUNT) == {FRAMES}\n"
    "assert picture.shape == (360, 640, 3) and picture.std() > 20\n",
    "qt_window.py": "assert label.pixmap().size().toTuple() == (640, 360)\n"
    "assert session.app.name == 'surroundings'\n",
    "frames_cell.py": "from IPython import display\nassert summary.frames == 90\n"
    "assert len(display.shown) > 5\nassert all(len(each) > 9999 for each in display.shown)\n",
    "picture_cell.py": "import numpy\nassert numpy.asarray(picture).std() > 20\n",
}


def page_id(page: Path) -> str:
    return f"{page.parent.name}/{page.stem}"


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def write(code: str) -> str:
    name = re.match(r"# (\w+\.py)\n", code)
    assert name, f"a file without a name in its first line:\n{code}"
    Path(name[1]).write_text(code + AFTER.get(name[1], ""), encoding="utf-8")
    return name[1]


def run_file(name: str) -> None:
    done = subprocess.run(
        [sys.executable, name],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, f"{name}\n{done.stderr}"
    wanted = PRINTS.get(name)
    assert wanted is None or re.fullmatch(wanted, done.stdout, re.DOTALL), f"{name}\n{done.stdout}"


def run_line(line: str) -> None:
    program, *words = shlex.split(line)
    if program == "heimdall":
        arguments = [*words, *QUICK] if words[0] == "run" else words
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, f"{line}\n{result.output}"
        assert '"errors": []' in result.stdout or words[0] != "run", f"{line}\n{result.output}"
        for name in re.findall(r"--(?:record|screenshot|trace) (\S+)", line):
            assert Path(name).stat().st_size > 0, line
    elif words[:2] == ["-m", "pytest"]:
        tests = {n: t for n, t in runpy.run_path(words[2]).items() if n.startswith("test_")}
        assert tests
        for test in tests.values():
            test()
    else:
        assert program == "python", line
        run_file(*words)


@pytest.fixture
def folder(tmp_path, assets, monkeypatch, request):
    """An empty folder to be in, with six frames of a clip."""
    faces = request.node.callspec.params["page"].stem == "notebooks"
    video = cv2.VideoCapture(str(assets / "media" / ("single_face.mp4" if faces else "box.mp4")))
    monkeypatch.chdir(tmp_path)
    if faces:
        Path("IPython.py").write_text(IPYTHON, encoding="utf-8")
    found, frame = video.read()
    writer = cv2.VideoWriter(CLIP, cv2.VideoWriter.fourcc(*"mp4v"), 30, frame.shape[1::-1])
    for _ in range(FRAMES):
        assert found
        writer.write(frame)
        found, frame = video.read()
    writer.release()


@pytest.mark.slow
@pytest.mark.timeout(900)  # kernels may be compiled
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_file_and_command_of_a_page_works(page):
    if page.stem == "qt":
        pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)
    written: set[str] = set()
    used = ""
    for kind, text in blocks(page):
        if kind == "python":
            written.add(write(text))
        else:
            used += text
            for line in text.splitlines():
                run_line(line)
    assert written
    unused = {name for name in written if name not in used}
    if page in RECIPES:
        for name in sorted(unused):
            run_file(name)
    elif page.name == "index.md":
        run_line("heimdall run mine.py")
    else:
        assert not unused


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_code_is_as_long_and_marked_as_the_page_says(page):
    text = page.read_text(encoding="utf-8")
    for claimed, code in re.findall(r"\*\*(\d+) lines\*\*.*?```python\n(.*?)```", text, re.DOTALL):
        lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
        assert len(lines) == int(claimed)
    before: dict[str, list[str]] = {}
    for marked, code in re.findall(r"```python(.*?)\n(.*?)```", text, re.DOTALL):
        lines, (name, *_) = code.splitlines(), code.splitlines()
        if name in before:  # it grew: what is marked is what is new
            new = {n for n, line in enumerate(lines, 1) if line and line not in before[name]}
            shown = {n for each in re.findall(r"\d+(?:-\d+)?", marked) for n in numbers(each)}
            assert new <= shown, f"{name}: {new - shown} are new"
        before[name] = lines


def numbers(span: str) -> range:
    first, _, last = span.partition("-")
    return range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_option_on_a_page_exists(page):
    text = page.read_text(encoding="utf-8")
    named = {
        each
        for line in re.findall(r"`([^`\n]+)`", text) + re.findall(r"^heimdall .*", text, re.M)
        for each in re.findall(r"(?<!\S)--[a-z][a-z-]*", line)
    }
    params = [param for command in COMMANDS.values() for param in command.params]
    assert named <= {name for param in params for name in (*param.opts, *param.secondary_opts)}


def test_the_start_page_answers_at_least_twenty_questions():
    assert len(re.findall(r"^ *- \[[^]]+\?\]\(", PAGES[0].read_text(encoding="utf-8"), re.M)) >= 20


def test_pages_are_short():
    assert len(PAGES[0].read_text(encoding="utf-8").split()) <= WORDS["index.md"]
    learn = [page for page in PAGES if page.parent.name == "learn"]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in learn)
    assert words <= WORDS["learn"]


def test_a_host_is_a_short_program():
    code = {text.split()[1]: text for kind, text in blocks(DOCS / "learn" / "own-loop.md")}
    assert len([line for line in code["restyle.py"].splitlines() if line.strip()]) <= 15
    assert len([line for line in code["count.py"].splitlines() if line.strip()]) <= 10


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_world_of_each_app_is_found(tmp_path, monkeypatch):
    from heimdall import run

    monkeypatch.chdir(tmp_path)
    files = [text for kind, text in blocks(DOCS / "learn" / "world.md") if kind == "python"]
    assert files
    for code in files:
        summary = run(write(code), headless=True, size=(640, 480), frames=60, overlay="off")
        assert summary.errors == []
        assert summary.world is not None
        assert summary.world.tracked > 0, code
