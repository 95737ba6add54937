"""The pictures of the page."""

from __future__ import annotations

from PIL import Image

from benchmarks.paper import pictures
from benchmarks.paper.findings import Findings
from benchmarks.paper.values import read_values


def test_every_picture_that_a_figure_has_is_drawn(results, tmp_path):
    accuracy = {"face": {"max-total": {"held": {"mean": 0.5, "std": 0.1}}}, "segment": {}}
    simulated = {**results, "accuracy": accuracy}
    drawn = pictures.draw(Findings(simulated, simulated, {}, []), tmp_path / "images")
    asked = {figure.picture for figure in read_values().figure if figure.picture}
    assert asked <= drawn.keys()
    for path in drawn.values():
        with Image.open(path) as picture:
            assert picture.width > 300
        assert path.stat().st_size < 60_000


def test_what_has_no_results_has_no_picture(results, tmp_path):
    drawn = pictures.draw(Findings(results, None, {}, []), tmp_path / "images")
    assert "sweep" not in drawn
    assert "sensitivity" not in drawn
    assert "table-4" not in drawn
