"""How much the scene changes from picture to picture."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Frame
from heimdall.models.luminance import PIXELS
from heimdall.runtime.loop.scene_watch import SceneWatch


def grey(level, number, size=(90, 160)):
    return Frame(np.full((*size, 3), level, np.uint8), number, number)


def test_changes_add_up_until_they_are_taken():
    watch = SceneWatch()
    for number, level in enumerate((10, 30, 20)):
        watch.advance(grey(level, number))
    assert watch.take() == pytest.approx(30 * PIXELS, rel=0.01)
    assert watch.take() == 0.0
    watch.advance(grey(25, 3))
    assert watch.take() == pytest.approx(5 * PIXELS, rel=0.01)


def test_another_source_of_another_size_is_another_scene():
    watch = SceneWatch()
    watch.advance(grey(10, 0))
    watch.advance(grey(110, 1, (48, 64)))
    assert watch.take() == pytest.approx(100 * PIXELS, rel=0.01)
