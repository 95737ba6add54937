import numpy as np
import pytest

from heimdall.errors import AppError
from heimdall.render import shapes


@pytest.mark.parametrize(
    ("color", "expected"),
    [
        ("#ff0000", (1, 0, 0, 1)),
        ("00ff0080", (0, 1, 0, 128 / 255)),
        ((0.5, 0.25, 0), (0.5, 0.25, 0, 1)),
        ([0, 0, 1, 0.5], (0, 0, 1, 0.5)),
    ],
)
def test_colours_can_be_hex_or_numbers(color, expected):
    assert shapes.rgba(color) == pytest.approx(expected)


@pytest.mark.parametrize("color", ["red", "#12", (1, 2), (255, 0, 0), None, (0.1, "x", 0)])
def test_other_colours_are_refused_with_the_valid_forms(color):
    with pytest.raises(AppError, match="#rrggbb"):
        shapes.rgba(color)


def test_a_line_of_no_length_is_a_disc():
    row = shapes.lines(np.array([[5, 5]]), np.array([[5, 5]]), 4, "#ffffff")[0]
    assert tuple(row[:6]) == (5, 5, 2, 0, 2, 2)


def test_an_outline_returns_to_its_start():
    rows = shapes.outline(np.array([[0, 0], [10, 0], [10, 10]]), 2, "#ffffff")
    assert len(rows) == 3
    assert tuple(rows[2, :2]) == (5, 5)
