from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.models import open_pipeline
from heimdall.models.style import STYLES, style_weights

SIZE = (96, 128)


def test_styles_differ_and_keep_the_pictures_structure(run, five_people) -> None:
    pipeline = open_pipeline("multistyle", size=SIZE)
    first, second = (run(pipeline, five_people, style=style).image for style in (0, 19))
    assert first.shape == (*SIZE, 3)
    assert first.dtype == np.uint8
    assert np.abs(first.astype(int) - second).mean() > 20
    content = cv2.cvtColor(cv2.resize(five_people, SIZE[::-1]), cv2.COLOR_BGR2GRAY)
    styled = cv2.cvtColor(first, cv2.COLOR_RGB2GRAY)
    assert np.corrcoef(content.ravel(), styled.ravel())[0, 1] > 0.5


def test_a_picture_of_ones_own_is_restyled_instead_of_the_frame(run, five_people) -> None:
    pipeline = open_pipeline("multistyle", size=SIZE, style=7)
    black = np.zeros((480, 640, 3), np.uint8)
    own = run(pipeline, black, picture=five_people).image
    assert (own == run(pipeline, five_people).image).all()
    assert (own != run(pipeline, black).image).any()


def test_weights_are_scaled_to_sum_one() -> None:
    weights = style_weights({"weights": [2] + [0] * 24 + [6]})
    assert weights.dtype == np.float32
    assert weights[[0, 25]].tolist() == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize(
    "options",
    [
        {"style": STYLES},
        {"style": -1},
        {"style": "mosaic"},
        {"weights": [1, 2]},
        {"weights": [0] * STYLES},
        {"weights": [-1] + [1] * 25},
        {"weights": [float("nan")] * STYLES},
        {"weights": "many"},
    ],
)
def test_styles_that_do_not_exist_are_refused(options) -> None:
    with pytest.raises(ConfigError, match="style"):
        style_weights(options)


@pytest.mark.parametrize("size", [(100, 100), (0, 0), (240,)])
def test_sizes_the_network_cannot_take_are_refused(size) -> None:
    with pytest.raises(ConfigError, match="multistyle size"):
        open_pipeline("multistyle", size=size)
