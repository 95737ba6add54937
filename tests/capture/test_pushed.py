"""Frames that are handed in: the newest counts, and what is no frame is refused."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Camera, Frame, Motion
from heimdall.capture.pushed import PushedSource
from heimdall.errors import ConfigError

GREY = np.full((4, 6, 3), 128, np.uint8)


def test_before_the_first_frame_the_picture_is_black():
    source = PushedSource((6, 4))
    assert source.empty
    assert source.latest().image.shape == (4, 6, 3)
    assert not source.latest().image.any()


def test_the_newest_frame_counts_and_whoever_watches_hears_of_each():
    source = PushedSource((6, 4))
    seen: list[Frame] = []
    source.observe = seen.append
    first, second = source.push(GREY, 10), source.push(GREY, 20)
    assert source.latest() is second
    assert seen == [first, second]
    assert [frame.sequence for frame in seen] == [1, 2]


def test_pictures_flow_from_the_first_one_on_unless_one_is_held():
    source = PushedSource((6, 4))
    assert not source.flowing
    source.push(GREY, 10)
    assert source.flowing
    source.hold()
    assert not source.flowing


def test_a_held_frame_stays_until_it_is_released():
    source = PushedSource((6, 4))
    first = source.push(GREY, 10)
    source.hold()
    second = source.push(GREY, 20)
    assert (source.held, source.latest()) == (True, first)
    source.step()
    assert source.latest() is second
    source.push(GREY, 30)
    source.release()
    assert source.latest().captured_ns == 30


@pytest.mark.parametrize("captured_ns", [-1, 1.5, "now", True, 2**62, None])
def test_a_time_is_a_number_of_nanoseconds(captured_ns):
    source = PushedSource((6, 4))
    if captured_ns is None:
        assert source.push(GREY).captured_ns > 0
        return
    with pytest.raises(ConfigError, match="captured_ns must be a time in ns"):
        source.push(GREY, captured_ns)


def test_time_does_not_go_back():
    source = PushedSource((6, 4))
    source.push(GREY, 10)
    with pytest.raises(ConfigError, match="goes back in time"):
        source.push(GREY, 10)


@pytest.mark.parametrize(
    "image",
    [None, [[0]], GREY[..., 0], GREY.astype(float), GREY[:0], np.zeros((4, 6, 4), np.uint8)],
)
def test_what_is_no_picture_is_refused(image):
    source = PushedSource((6, 4))
    with pytest.raises(ConfigError, match="BGR uint8"):
        source.push(image)
    assert source.empty


def test_a_frame_has_the_camera_and_the_sensors_that_were_pushed_with_it():
    source = PushedSource((64, 48))
    image = np.zeros((48, 64, 3), np.uint8)
    bare = source.push(image).camera
    assert (bare.guessed, bare.motion) == (True, None)
    sensed = source.push(image, motion=Motion((0, 2, 0))).camera
    assert sensed.guessed
    assert sensed.motion.down == pytest.approx([0, 1, 0])
    known = Camera(64, 48, 50.0, 50.0, 31.5, 23.5)
    both = source.push(image, camera=known, motion=Motion((0, 0, 1), (1, 2, 3))).camera
    assert (both.fx, both.guessed) == (50.0, False)
    assert both.motion.down == pytest.approx([0, 0, 1])
    assert both.motion.acceleration == pytest.approx([1, 2, 3])


@pytest.mark.parametrize(
    "wrong", [(0, 0), (1, 2, np.nan), "abc", (1, None, 2), 10**400, [10**400] * 3]
)
def test_what_no_sensor_can_say_is_refused(wrong):
    with pytest.raises(ConfigError, match="gravity"):
        Motion(wrong)
    with pytest.raises(ConfigError, match="acceleration"):
        Motion((0, 1, 0), wrong)
