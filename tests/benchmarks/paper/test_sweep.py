"""Past the paper: the sweep's points and its picture."""

from __future__ import annotations

import pytest

from benchmarks.paper import sweep
from benchmarks.paper.kept import Kept, perform


def quiet(what, done, total):
    """No progress."""


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    kept = Kept(tmp_path_factory.mktemp("results") / "simulated.jsonl", "now")
    perform([point.task for point in sweep.points(1, 1.0)], kept, 0, "", quiet)
    return sweep.collected(kept, 1, 1.0)


def test_every_rate_size_number_and_system_is_a_point(points):
    assert len(points) == 2 * 4 * 8 * 2
    assert {point["dnns"] for point in points} == set(range(1, 9))


def test_coordinated_the_frame_rate_of_the_paper_holds_beside_all_networks(points):
    assert sweep.held(points, 30, (1920, 1080), "max-total") == 8
    assert sweep.held(points, 30, (1920, 1080), "multithread") < 3


def test_what_falls_below_the_target_ends_the_count():
    point = {"fps": 30, "size": [1, 1], "system": "s"}
    rates = (30.0, 29.8, 20.0, 30.0)
    points = [
        {**point, "dnns": n, "rate": {"mean": {"mean": rate}}} for n, rate in enumerate(rates, 1)
    ]
    assert sweep.held(points, 30, (1, 1), "s") == 2


def test_the_picture_has_a_panel_for_each_rate_and_size(points):
    figure = sweep.draw(points)
    assert figure is not None
    titles = [axes.get_title() for axes in figure.axes]
    assert "60 fps at 2160p" in titles
    assert sweep.draw([]) is None
