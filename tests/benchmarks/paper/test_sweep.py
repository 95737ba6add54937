"""Past the paper: the sweep's points and its picture."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.paper import sweep


def quiet(what, done, total):
    """No progress."""


@pytest.fixture(scope="module")
def points():
    return sweep.sweep(1.0, quiet)


def test_every_rate_size_number_and_system_is_a_point(points):
    assert len(points) == 2 * 3 * 8 * 2
    assert {point["dnns"] for point in points} == set(range(1, 9))


def test_coordinated_the_frame_rate_of_the_paper_holds_beside_all_networks(points):
    assert sweep.held(points, 30, (1920, 1080), "max-total") == 8
    assert sweep.held(points, 30, (1920, 1080), "multithread") < 3


def test_what_falls_below_the_target_ends_the_count():
    point = {"fps": 30, "size": [1, 1], "system": "s"}
    rates = (30.0, 29.8, 20.0, 30.0)
    points = [{**point, "dnns": n, "rate": {"mean": r}} for n, r in enumerate(rates, 1)]
    assert sweep.held(points, 30, (1, 1), "s") == 2


def test_the_picture_is_one_that_text_can_be_read_in(points, tmp_path):
    sweep.draw(points, tmp_path / "images" / "sweep.svg")
    text = (tmp_path / "images" / "sweep.svg").read_text()
    ElementTree.fromstring(text)
    assert "60 fps at 1440p" in text
    assert len(text) < 200_000
