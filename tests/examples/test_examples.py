"""Every file of examples/ is short and runs."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner

from heimdall.cli import main

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


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [each for each in EXAMPLES if is_app(each)], ids=lambda path: path.stem
)
def test_the_app_runs(path):
    done = CliRunner().invoke(main, ["run", str(path), *QUICK])
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["errors"] == []
    assert summary["frames"] >= 8


@pytest.mark.slow
def test_the_networks_alone_run(capsys):
    (path,) = (each for each in EXAMPLES if not is_app(each))
    runpy.run_path(str(path))
    assert len(capsys.readouterr().out.splitlines()) == 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_site_shows_it_with_its_picture(path):
    docs = path.parents[1] / "docs"
    page = (docs / "learn" / "examples.md").read_text(encoding="utf-8")
    assert f'--8<-- "examples/{path.name}"' in page
    if is_app(path):
        assert f"](../images/example-{path.stem}.webp)" in page
        assert (docs / "images" / f"example-{path.stem}.webp").is_file()
