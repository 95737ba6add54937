"""Who is hidden is not taken along by who hides him."""

from __future__ import annotations

import numpy as np

from heimdall.tracking.motion import Motion
from heimdall.tracking.swarm import Swarm

STILL = np.array([[1.0, 0, 0], [0, 1.0, 0]])


def seen(scenery: np.ndarray, boxes: np.ndarray, speed: float, frames: int = 6) -> np.ndarray:
    """Where ``boxes`` (n, 4) are when they went at ``speed`` before, and from now on all that is
    seen inside them goes by 3 pixels a frame."""
    background = np.full((200, 320), 90, np.uint8)
    motion, swarm = Motion.of(boxes), Swarm(len(boxes))
    known = np.zeros((len(boxes), 4)), np.full((len(boxes), 4), 1e-4)
    known[0][:, 0] = speed
    for _ in range(8 if speed else 0):
        motion.step(1, *known)
        motion.mean[:, 0, 0] -= motion.mean[:, 0, 1]  # on the spot

    def picture(index: int) -> np.ndarray:
        image = background.copy()
        image[60:140, 130 + 3 * index : 180 + 3 * index] = scenery[:80, :50, 0]
        return image

    for index in range(frames):
        before, now = picture(index), picture(index + 1)
        velocity = motion.mean[:, :2, 1]
        if index == 0:
            swarm.seed(before, motion.boxes(), velocity)
        found = swarm.follow(before, now, 1, STILL, motion.boxes(), velocity)
        motion.step(1, *found[:2])
    return motion.boxes()


def test_who_is_hidden_goes_on_as_he_went_and_not_with_who_hides_him(scenery):
    hidden, front = [135, 55, 175, 135], [130, 60, 180, 140]
    alone = seen(scenery, np.array([hidden], float), -2.0)
    behind = seen(scenery, np.array([hidden, front], float), -2.0)
    assert behind[0, 0] < 135 < 135 + 8 < alone[0, 0]


def test_of_whom_nothing_is_known_the_points_of_the_one_in_front_are_followed(scenery):
    hidden, front = [135, 55, 175, 135], [130, 60, 180, 140]
    behind = seen(scenery, np.array([hidden, front], float), 0.0)
    assert behind[0, 0] > 135 + 9
