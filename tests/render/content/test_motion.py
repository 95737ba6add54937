"""What animations do: steps, straight lines, cubic splines, and turns the short way."""

import numpy as np
import pytest

from heimdall.render.content.motion import Track

HALF = 0.5**0.5


def track(values, interpolation, path="translation", times=(0.0, 2.0)):
    return Track(path, np.array([0]), np.array(times), np.array(values, float), interpolation)


def test_a_cubic_spline_leaves_and_arrives_by_its_tangents():
    keys = [[0, 0, 0], [1, 0, 0], [3, 0, 0], [-2, 0, 0], [5, 0, 0], [0, 0, 0]]  # in, value, out
    found = track([[each] for each in keys], "CUBICSPLINE")
    for time_s in np.linspace(0, 2, 9):
        s = time_s / 2
        # appendix C of the specification, tangents by the second
        expected = (
            (2 * s**3 - 3 * s**2 + 1) * 1
            + 2 * (s**3 - 2 * s**2 + s) * 3
            + (3 * s**2 - 2 * s**3) * 5
            + 2 * (s**3 - s**2) * -2
        )
        assert found.at(time_s)[0, 0] == pytest.approx(expected)
    step = 1e-4
    assert (found.at(step) - found.at(0))[0, 0] / step == pytest.approx(3, rel=1e-3)
    assert (found.at(2) - found.at(2 - step))[0, 0] / step == pytest.approx(-2, rel=1e-3)


def test_a_spline_of_turns_stays_a_turn():
    turns = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]
    found = track([[each] for each in turns], "CUBICSPLINE", "rotation").at(0.9)
    assert np.linalg.norm(found) == pytest.approx(1)


def test_steps_stay_until_the_next_time():
    found = track([[[0, 0, 0]], [[4, 0, 0]]], "STEP")
    assert [found.at(time_s)[0, 0] for time_s in (-1, 0, 1.99, 2, 7)] == [0, 0, 0, 4, 4]


def test_turns_go_the_short_way_at_an_even_pace():
    found = track([[[0, 0, 0, 1]], [[0, 0, -HALF, -HALF]]], "LINEAR", "rotation").at(1.0)[0]
    angle = 2 * np.degrees(np.arctan2(found[2], found[3]))
    assert (angle + 180) % 360 - 180 == pytest.approx(45)


def test_a_track_of_one_key_stands_still():
    assert track([[[7, 0, 0]]], "LINEAR", times=(1.0,)).at(5)[0, 0] == 7
    spline = track([[[0, 0, 0]], [[7, 0, 0]], [[0, 0, 0]]], "CUBICSPLINE", times=(1.0,))
    assert spline.at(5)[0, 0] == 7
