"""How far content moves against the table it stands on, led back from where it was drawn."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.home import CAMERA, FPS, TABLE_M, Home
from benchmarks.placed import off_px

SPOT = np.array([0.1, TABLE_M, 0.1])


def seen(number: int, at: np.ndarray = SPOT) -> tuple[float, float]:
    x, y = CAMERA.pixels(Home().pose(number / FPS).to_camera(at[None]))[0]
    return float(x), float(y)


def test_what_stands_still_is_off_by_nothing():
    places = [(number, seen(number)) for number in range(0, 360, 20)]
    assert off_px(places).max() < 1e-6


def test_what_is_drawn_elsewhere_is_off_by_that():
    places = [(number, seen(number)) for number in range(0, 360, 20)]
    x, y = places[3][1]
    places[3] = places[3][0], (x + 4.0, y)
    found = off_px(places)
    assert found[3] == pytest.approx(4.0)
    assert np.delete(found, 3).max() < 1e-6


def test_what_stands_above_the_table_slides_over_it():
    places = [(number, seen(number, SPOT + (0, 0.01, 0))) for number in range(0, 360, 20)]  # noqa: RUF005
    assert np.median(off_px(places)) > 0.5
