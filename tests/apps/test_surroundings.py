"""The surroundings app: a person who is near starts the pose network."""

from __future__ import annotations

import numpy as np

from heimdall.models.results import Body, Detection

NEAR_LEFT = Detection("person", 0.9, (50, 50, 200, 450))
NEAR_RIGHT = Detection("person", 0.8, (400, 60, 560, 460))
FAR = Detection("person", 0.7, (300, 200, 340, 300))
CHAIR = Detection("chair", 0.6, (10, 10, 300, 470))


def body(x: float) -> Body:
    joints = np.zeros((17, 3), np.float32)
    joints[:, 0], joints[:, 1] = x, np.linspace(100, 400, 17)
    joints[:, 2] = 0.9
    return Body(joints)


def test_nobody_near_asks_for_no_pose(play, grey):
    stage = play("surroundings")
    stage.show(grey, detect=[FAR, CHAIR], face=[])
    assert stage.requests() == []


def test_people_who_are_near_are_asked_about_in_turn(play, grey):
    stage = play("surroundings")
    regions = []
    for _ in range(2):
        stage.show(grey, detect=[NEAR_LEFT, NEAR_RIGHT, FAR])
        ((dnn, options),) = stage.requests()
        assert dnn == "pose"
        regions.append(options["region"])
    regions.sort()
    for region, person in zip(regions, (NEAR_LEFT, NEAR_RIGHT), strict=True):
        assert region[0] < person.box[0] < person.box[2] < region[2]


def test_each_near_person_has_one_posture(play, grey):
    stage = play("surroundings")
    for _ in range(4):
        stage.show(grey, detect=[NEAR_LEFT, NEAR_RIGHT])
        left = stage.app.asked.box[0] < 300
        stage.show(grey, pose=[body(120 if left else 480)])
    assert len(stage.app.postures) == 2
    picture = stage.show(grey)
    for column in (120, 480):
        assert (np.abs(picture[200:300, column - 4 : column + 4].astype(int) - 128) > 20).any()


def test_a_posture_goes_with_its_person(play, grey):
    stage = play("surroundings")
    stage.show(grey, detect=[NEAR_LEFT])
    stage.show(grey, pose=[body(120)])
    for _ in range(6):
        stage.show(grey, detect=[FAR])
    assert stage.app.postures == []


def test_the_summary_counts(play):
    app = play("surroundings").app
    app.near = [NEAR_LEFT]
    assert app.summary([NEAR_LEFT, FAR, CHAIR], 1) == "2 × person · 1 × chair · 1 × face · 1 near"
    app.near = []
    assert app.summary([], 0) == "nothing in sight"
