"""Models of distortion by the names that other programs give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from heimdall.capture.lens import COUNTS, FISHEYE_COUNT, Camera
from heimdall.errors import ConfigError

PLUMB_BOB, RATIONAL, FISHEYE = "plumb_bob", "rational_polynomial", "kannala_brandt"
_SAME = {
    # OpenCV's order of coefficients, however many. As librealsense 2.59 projects, "inverse"
    # Brown-Conrady is that too, within 0.02 pixels.
    PLUMB_BOB: ("", "none", "pinhole", "plumb bob", "radtan", "radial tangential", "opencv",
                "brown conrady", "modified brown conrady", "inverse brown conrady"),
    RATIONAL: ("rational", "rational polynomial", "full opencv"),
    FISHEYE: ("fisheye", "equidistant", "equi", "kannala brandt", "kannala brandt4",
              "opencv fisheye"),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _SAME.items() for name in names}


def kind_of(model: str) -> str:
    """Which of the three models a name means. Raises ConfigError for one that is not known."""
    name = re.sub(r"[^a-z0-9]+", " ", model.lower().rpartition(".")[2]).strip()
    if (kind := _KINDS.get(name)) is None:
        raise ConfigError(
            f"the lens model {model!r} is not known: known are {PLUMB_BOB} (radtan), {RATIONAL} "
            f"and {FISHEYE} (equidistant, fisheye)"
        )
    return kind


def lens_of(model: str, coefficients: Sequence[float]) -> dict[str, Any]:
    """``distortion`` and ``fisheye`` of a camera whose model of distortion has that name, such as
    ``plumb_bob``, ``radtan``, ``rational_polynomial`` or ``equidistant``. Raises ConfigError for a
    model that is not known, and for coefficients that it does not have."""
    kind = kind_of(model)
    fisheye, numbers = kind == FISHEYE, tuple(coefficients)
    if fisheye and len(numbers) == FISHEYE_COUNT + 1 and not numbers[-1]:
        numbers = numbers[:-1]  # RealSense has five, the last unused
    counts = (FISHEYE_COUNT,) if fisheye else COUNTS
    if len(numbers) not in counts:
        raise ConfigError(
            f"the lens model {model or PLUMB_BOB!r} has {' or '.join(map(str, counts))} "
            f"coefficients, not {len(numbers)}"
        )
    padded = numbers if fisheye or len(numbers) > 4 else (*numbers, *(0.0,) * 5)[:5]
    return {"distortion": padded, "fisheye": fisheye}


def model_of(camera: Camera) -> str:
    """The name of a camera's model, as ROS and Foxglove have it."""
    if camera.fisheye:
        return FISHEYE
    return RATIONAL if len(camera.distortion) > 5 else PLUMB_BOB
