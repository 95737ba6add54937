"""What editors and type checkers make of an app: no complaints about one that is right, results of
the right type, and one about each mistake."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from heimdall.cli.scaffold import new_app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *(ROOT / "docs" / "learn").glob("*.md")]
BLOCK = re.compile(r"^```python\b[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
NOT_OURS = ('backend="egl"', "--8<--")  # moderngl wants a dict; a file of examples/, which is here

RIGHT = """
from typing import Any

from typing_extensions import assert_type

from heimdall import DNN, App, Boxes, Detection, ImageInput, Marker, Mask, Scene, World
from heimdall.models import Picture, TextLine


class Typed(App):
    world = World(Marker("DICT_4X4_50", 0, 0.05))
    detect = DNN(model="nanodet", rate_hz=5, priority="high", precision="auto")
    people = DNN(model="selfie")
    style = DNN(model="multistyle", on_event=True)
    read = DNN("reading", "ocr")
    own = DNN(model="own.onnx", preprocess=ImageInput(), decode=Boxes("yolov8", ["cup"]))
    plugged = DNN(model="of-a-package")

    def draw(self, scene: Scene) -> None:
        assert_type(self.detect.tracked, list[Detection] | None)
        assert_type(self.people.latest, Mask | None)
        assert_type(self.style.latest, Picture | None)
        assert_type(self.read.latest, list[TextLine] | None)
        assert_type(self.own.tracked, list[Detection] | None)
        assert_type(self.plugged.latest, Any | None)
        assert_type(self.world.tracked, bool)
        scene.polygons([[(0, 0), (9, 0), (9, 9)]])
        self.detect.adjust(priority="low")


class Plain(App):
    def draw(self, scene: Scene) -> None:
        if scene.world is not None:
            scene.model("chair.glb", at=scene.world.origin)
"""
WRONG = """
from heimdall import DNN, App


class Mistaken(App):
    detect = DNN(model="nanodet", priority="urgent")
    people = DNN(model="selfie", rate_hz="5")
    read = DNN(model="ocr")

    def on_start(self) -> None:
        self.read.adjust(priority="urgent")
        self.read.adjusted(priority="low")
"""


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> list[Path]:
    """The apps that come along, a new one, and the files of README and tutorials: those of a page
    lie in one folder."""
    folder = tmp_path_factory.mktemp("typed")
    (folder / "right.py").write_text(RIGHT)
    new_app("fresh", folder)
    for page in PAGES:
        for count, code in enumerate(BLOCK.findall(page.read_text(encoding="utf-8"))):
            name = re.match(r"# (\w+\.py)\n", code)
            place = folder / page.stem.replace("-", "_") / (name[1] if name else f"block{count}.py")
            place.parent.mkdir(exist_ok=True)
            if not any(each in code for each in NOT_OURS):
                place.write_text(code)
    return [folder, ROOT / "apps", ROOT / "examples"]


def pyright(*paths: Path) -> list[str]:
    program = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which(
        "pyright"
    )
    if program is None:
        pytest.skip("no pyright here")
    done = subprocess.run(
        [program, "--outputjson", "--pythonpath", sys.executable, *map(str, paths)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert found["summary"]["filesAnalyzed"], done.stderr
    return [
        f"{Path(each['file']).name}:{each['range']['start']['line'] + 1}: {each['message']}"
        for each in found["generalDiagnostics"]
        if each["severity"] == "error"
    ]


def mypy(folder: Path, *paths: Path) -> list[str]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file=", "--explicit-package-bases"),
            *("--follow-imports=silent", "--cache-dir", str(folder)),
            *map(str, paths),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


@pytest.mark.slow
def test_pyright_has_nothing_to_say_of_apps_that_are_right(clean):
    assert pyright(*clean) == []


@pytest.mark.slow
def test_mypy_has_nothing_to_say_of_apps_that_are_right(clean, tmp_path):
    assert mypy(tmp_path, *clean) == []


@pytest.mark.slow
def test_both_find_what_is_wrong(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    for said in (pyright(file), mypy(tmp_path / "cache", file)):
        lines = {int(number) for each in said for number in re.findall(r"\.py:(\d+):", each)}
        assert lines == {6, 7, 11, 12}, said
