"""The surroundings app: a person who is near starts the pose network, a crowd is looked at more
often."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from heimdall.coordinator.replay import replay
from heimdall.models.results import Body3D, Detection

NEAR_LEFT = Detection("person", 0.9, (50, 50, 200, 450))
NEAR_RIGHT = Detection("person", 0.8, (400, 60, 560, 460))
FAR = Detection("person", 0.7, (300, 200, 340, 300))
CHAIR = Detection("chair", 0.6, (10, 10, 300, 470))


def body(x: float) -> Body3D:
    joints = np.zeros((33, 4), np.float32)
    joints[:, 0], joints[:, 1] = x, np.linspace(100, 400, 33)
    joints[:, 3] = 0.9
    return Body3D(joints, np.zeros((33, 3), np.float32), 0.9)


def test_without_people_near_no_pose_is_asked_for(play, grey):
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


def face(index):
    return Detection("face", 0.9, (40.0 * index, 50, 40.0 * index + 30, 90))


def test_in_a_crowd_faces_are_wanted_more_than_objects(play, grey):
    stage = play("surroundings")
    wanted = []
    for count in (1, 4, 5, 2):
        stage.show(grey, face=[face(index) for index in range(count)])
        wanted.append(stage.adjustments())
    crowd = wanted[1]["face"]
    detect = stage.app.dnns[0]
    assert (crowd.priority, crowd.constraint_ms) == ("high", 200)
    assert crowd.rate_hz > detect.rate_hz
    assert crowd.max_rate_hz > detect.max_rate_hz
    assert wanted == [{}, {"face": crowd}, {}, {"face": stage.app.dnns[1]}]


@pytest.mark.slow
def test_a_crowd_in_a_picture_makes_a_run_look_for_faces_more_often(tmp_path, assets):
    """For real: the networks find five faces, and the coordinator is told once."""
    trace = tmp_path / "trace.json"
    command = [sys.executable, "-m", "heimdall", "run", "surroundings", "--headless", "--json"]
    command += ["--source", str(assets / "media" / "multi_face.jpg"), "--size", "640x360"]
    command += ["--frames", "90", "--build-first", "--trace", str(trace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["errors"] == []
    recorded = json.loads(trace.read_text())["heimdall"]
    told = [each["event"] for each in recorded["records"] if each["event"]]
    (adjusted,) = [event for event in told if event["type"] == "DnnAdjusted"]
    assert (adjusted["dnn"], adjusted["priority"]) == ("face", "high")
    assert adjusted["constraint_ns"] == 200_000_000
    assert list(replay(recorded["config"], recorded["records"])) == []
