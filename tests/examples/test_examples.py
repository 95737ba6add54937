"""Every file of examples/ is short and runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
QUICK = ["--headless", "--frames", "8", "--size", "320x240", "--json"]


def is_app(path: Path) -> bool:
    return "(App)" in path.read_text(encoding="utf-8")


def test_there_are_ten():
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_short_and_says_what_it_does(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 30
    assert lines[0].startswith('"""')


def run(*words: str) -> str:
    """What a program prints, in a process of its own: in one whose OpenCL was opened before, with
    other cores, networks are not those that children build."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [each for each in EXAMPLES if is_app(each)], ids=lambda path: path.stem
)
def test_the_app_runs(path):
    summary = json.loads(run("-m", "heimdall", "run", str(path), *QUICK))
    assert summary["errors"] == []
    assert summary["frames"] >= 8


@pytest.mark.slow
def test_the_networks_alone_run():
    (path,) = (each for each in EXAMPLES if not is_app(each))
    assert len(run(str(path)).splitlines()) == 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_site_shows_it_with_its_picture(path):
    docs = path.parents[1] / "docs"
    page = (docs / "learn" / "examples.md").read_text(encoding="utf-8")
    assert f'--8<-- "examples/{path.name}"' in page
    if is_app(path):
        assert f"](../images/example-{path.stem}.webp)" in page
        assert (docs / "images" / f"example-{path.stem}.webp").is_file()
