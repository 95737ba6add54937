"""What is no picture is refused; what nearly is one becomes one."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture.pictures import as_picture, check_picture
from heimdall.errors import ConfigError

PLAIN = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)


def test_a_picture_stays_what_it_is():
    assert as_picture(PLAIN) is PLAIN
    check_picture(PLAIN)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (np.dstack([PLAIN, PLAIN[..., 0]]), PLAIN),
        (PLAIN.astype(np.uint16) << 8, PLAIN),
        (PLAIN[..., 0], PLAIN[..., :1].repeat(3, 2)),
        (PLAIN[..., :1], PLAIN[..., :1].repeat(3, 2)),
    ],
)
def test_what_cameras_give_becomes_a_picture(given, made):
    np.testing.assert_array_equal(as_picture(given), made)


@pytest.mark.parametrize(
    "given",
    [
        PLAIN.astype(np.float32),
        PLAIN[:0],
        PLAIN[:, :0],
        np.zeros((0, 0), np.uint8),
        PLAIN[None],
        PLAIN[..., :2],
        "picture",
        None,
    ],
)
def test_anything_else_is_refused_with_what_it_was(given):
    with pytest.raises(ConfigError, match=r"BGR uint8"):
        as_picture(given)
