"""The face: everything an app needs comes from ``heimdall``, with its types."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import heimdall

ROOT = Path(heimdall.__file__).parents[1]


def declared() -> dict[str, str]:
    """Name -> module, as a type checker reads ``heimdall/__init__.py``."""
    tree = ast.parse(Path(heimdall.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    found = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {each.name: str(node.module) for node in found for each in node.names}


def test_the_three_lists_of_names_are_one():
    assert declared() == heimdall._HOME_OF
    assert set(heimdall.__all__) == set(declared())
    assert set(heimdall.__all__) <= set(dir(heimdall))


@pytest.mark.parametrize("name", heimdall.__all__)
def test_a_name_is_what_its_module_says(name):
    assert getattr(heimdall, name) is getattr(importlib.import_module(declared()[name]), name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'heimdall' has no attribute 'Apq'"):
        heimdall.Apq  # noqa: B018


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "heimdall" / "py.typed").is_file()


PROGRAM = """
from heimdall import DNN, App, Boxes, Frame, ImageInput, Scene, run

class Mine(App):
    detect = DNN(model="nanodet", rate_hz=2)
    people = DNN(model="selfie")
    hands = DNN(model="hand")
    style = DNN(model="multistyle", on_event=True)
    own = DNN(model="my.onnx", preprocess=ImageInput(), decode=Boxes("yolov8", ["cat"]))
    dnns = (DNN("text", model="ppocr"),)

    def on_result(self, dnn: str, result: object, frame: Frame) -> None:
        reveal_type(self.detect.latest)
        reveal_type(self.people.tracked)
        reveal_type(self.hands.latest)
        reveal_type(self.style.latest)
        reveal_type(self.own.latest)
        reveal_type(self.in_background(len, "text").result())

    def draw(self, scene: Scene) -> None:
        scene.boxes(self.detect.tracked or [])

summary = run(Mine(), headless=True, seconds=1)
reveal_type(summary.dnns["detect"].latency_ms.p50)
run(Mine, second=1)
DNN("x", model="nanodet", rate=3)
"""
REVEALED = [
    "list[heimdall.models.results.Detection] | None",
    "heimdall.models.results.Mask | None",
    "list[heimdall.models.results.Hand] | None",
    "heimdall.models.results.Picture | None",
    "list[heimdall.models.results.Detection] | None",
    "int",
    "float | None",
]


@pytest.mark.slow
def test_a_program_is_checked_against_the_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\nfollow_imports = silent\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--ignore-missing-imports", "program.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        timeout=280,
    )
    shown = [
        line.replace("Union[", "").strip('"')
        for line in re.findall(r'Revealed type is ("[^\n]*")', done.stdout)
    ]
    assert shown == REVEALED, done.stdout + done.stderr
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert 'Unexpected keyword argument "second" for "run"' in errors[0]
    assert all('"rate"' in line or "No overload variant" in line for line in errors[1:])
    assert len(errors) >= 2
