"""Where is up, by what a camera's sensors say: on the bundled room, held upright and sideways."""

from __future__ import annotations

import io

import cv2
import numpy as np
import pytest

from benchmarks.home import CAMERA, CLIP, FPS, Home
from heimdall.capture import Camera, Motion, Pose
from heimdall.errors import ConfigError
from heimdall.tracking.slam import wire
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.picture import Picture
from heimdall.tracking.slam.tracker import RoomTracker

COUNT = 75
ASIDE = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])  # clockwise, as the pictures are turned
SIDEWAYS = Camera(480, 640, CAMERA.fx, CAMERA.fy, CAMERA.cy, CAMERA.cx)
LEVEL = np.array([0.0, -1, 0])  # down, in the room


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    video = cv2.VideoCapture(str(CLIP))
    seen = [video.read()[1] for _ in range(COUNT)]
    return [cv2.rotate(each, cv2.ROTATE_90_CLOCKWISE) for each in seen]


def down(number: int, off_degrees: float = 0.0) -> np.ndarray:
    """As a sensor has it in that frame of the clip."""
    turn = cv2.Rodrigues(np.radians([0.0, off_degrees, 0.0]))[0]
    return turn @ ASIDE @ Home().pose(number / FPS).rotation @ LEVEL


def followed(pictures, gravity=None, sensors=None) -> RoomTracker:
    tracker = RoomTracker(Mapper(), gravity=gravity)
    for number, each in enumerate(pictures):
        motion = sensors(number) if sensors is not None else None
        tracker.advance(each, SIDEWAYS.sensing(motion), number, number / FPS)
    assert tracker.reason == ""
    return tracker


def levels(tracker: RoomTracker) -> list[float]:
    """How far the level planes that were found are off, in degrees."""
    true = up(tracker)
    found = [each for each in tracker.map.planes.planes if each.kind == "horizontal"]
    return [float(np.degrees(np.arccos(min(1.0, each.normal @ true)))) for each in found]


def up(tracker: RoomTracker) -> np.ndarray:
    """The true one, in the axes of the map."""
    return np.asarray(tracker.map.keyframes[0].pose.rotation.T @ -down(0))


def off(tracker: RoomTracker) -> float:
    told = tracker.map.planes.up
    return float(np.degrees(np.arccos(min(1.0, told @ up(tracker)))))


def test_a_camera_that_is_held_sideways_finds_the_table_by_its_sensors(pictures):
    tracker = followed(pictures, sensors=lambda number: Motion(9.81 * down(number)))
    assert off(tracker) < 0.5
    assert levels(tracker)
    assert max(levels(tracker)) < 2


def test_gravity_at_the_beginning_is_enough(pictures):
    tracker = followed(pictures, gravity=Motion(down(0, off_degrees=2.0)))
    assert off(tracker) == pytest.approx(2.0, abs=0.5)
    assert levels(tracker)


def test_without_either_what_lies_below_cannot_be_told(pictures):
    tracker = followed(pictures)
    assert tracker.map.planes.up is None or off(tracker) > 45


def test_sensors_that_contradict_each_other_say_nothing():
    def known(*downs) -> Map:
        made = Map()
        for number, each in enumerate(downs):
            picture = Picture(np.zeros((480, 640), np.uint8), CAMERA.sensing(Motion(each)))
            still = Pose(np.eye(3), np.zeros(3))
            none = np.empty(0, int), np.empty((0, 2)), np.empty((0, 2))
            made.add(Keyframe(number, picture, still, *none))
        return made

    assert known((0, 1, 0), (0, -1, 0.1)).up is None
    assert known((0.1, 1, 0), (-0.1, 1, 0)).up == pytest.approx([0, -1, 0])


def test_it_reaches_the_mapper_in_its_process():
    tracker = RoomTracker(Mapper())
    video = cv2.VideoCapture(str(CLIP))
    for number in range(40):
        motion = Motion((0.1, 1, 0.2))
        tracker.advance(video.read()[1], CAMERA.sensing(motion), number, number / FPS)
    stream = io.BytesIO()
    wire.write(stream, wire.of_map(tracker.map))
    stream.seek(0)
    again = wire.to_map(wire.read(stream))
    assert again.up == pytest.approx(tracker.map.up)


@pytest.mark.parametrize("wrong", [(0, 0, 0), (1, 2), (np.nan, 1, 0), "down", None])
def test_what_is_no_direction_is_refused(wrong):
    with pytest.raises(ConfigError, match="gravity"):
        Motion(wrong)
