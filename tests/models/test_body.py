from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.models import open_pipeline
from heimdall.models.body import BONES, JOINTS, LEAST_REACH, SIDE, Bodies, body_crop, follow_peaks
from heimdall.models.pose import JOINTS as SEVENTEEN
from heimdall.models.results import Body


def standing(**moved: tuple[float, float, float]) -> Body:
    """Somebody who stands before the camera, 300 pixels tall, the hips at (200, 250)."""
    places = {
        "nose": (200, 120), "eye": (8, 115), "ear": (15, 118), "shoulder": (35, 150),
        "elbow": (45, 200), "wrist": (48, 240), "hip": (20, 250), "knee": (22, 330),
        "ankle": (22, 400),
    }  # fmt: skip
    joints = np.zeros((17, 3), np.float32)
    for index, name in enumerate(SEVENTEEN):
        side, _, part = name.rpartition(" ")
        x, y = places[part]
        # their left is on the right of the picture
        joints[index] = (x if not side else 200 + x * (1 if side == "left" else -1), y, 0.9)
    for name, place in moved.items():
        joints[SEVENTEEN.index(name.replace("_", " "))] = place
    return Body(joints)


def apply(to_crop: np.ndarray, point: tuple[float, float]) -> np.ndarray:
    return to_crop[:, :2] @ np.array(point) + to_crop[:, 2]


def test_the_crop_has_the_hips_in_its_middle_and_the_shoulders_above() -> None:
    to_crop = body_crop(standing())
    assert apply(to_crop, (200, 250)) == pytest.approx((128, 128))
    x, y = apply(to_crop, (200, 150))
    assert (x, y) == pytest.approx((128, 128 - 128 / LEAST_REACH), abs=0.01)


def test_a_stretched_arm_is_still_in_the_crop() -> None:
    to_crop = body_crop(standing(left_wrist=(600, 250, 0.9)))
    x, y = apply(to_crop, (600, 250))
    assert SIDE / 2 + 100 < x < SIDE
    assert y == pytest.approx(128)


def test_a_wrist_that_is_a_guess_does_not_count() -> None:
    guessed = standing(left_wrist=(2000, 250, 0.1))
    assert body_crop(guessed) == pytest.approx(body_crop(standing()))


@pytest.mark.parametrize("angle", [0, 90, 200])
def test_who_lies_is_turned_upright(angle: float) -> None:
    turn = cv2.getRotationMatrix2D((200, 250), angle, 1)
    joints = standing().joints.copy()
    joints[:, :2] = joints[:, :2] @ turn[:, :2].T + turn[:, 2]
    shoulders = joints[[5, 6], :2].mean(axis=0)
    x, y = apply(body_crop(Body(joints)), tuple(shoulders))
    assert x == pytest.approx(128, abs=0.05)
    assert y < 90


def test_hips_under_a_desk_are_below_the_shoulders() -> None:
    hidden = {f"{side}_hip": (900.0, 20.0, 0.05) for side in ("left", "right")}
    middle = np.linalg.solve(*_equation(body_crop(standing(**hidden))))
    assert middle[0] == pytest.approx(200, abs=1)
    assert 220 < middle[1] < 270  # an average torso


def _equation(to_crop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return to_crop[:, :2], np.array([SIDE / 2, SIDE / 2]) - to_crop[:, 2]


def test_a_joint_goes_to_the_middle_of_its_clear_peak() -> None:
    heat = np.full((64, 64, 2), -10.0, np.float32)
    heat[20, 30:32, :] = 4.0  # two cells as likely: between them
    points = np.array([[118, 86, 7], [200, 200, 7]], np.float32)  # the second looks elsewhere
    found = follow_peaks(points, heat)
    assert found[0] == pytest.approx((30.5 * 4, 20 * 4, 7), abs=0.2)
    assert found[1] == pytest.approx(points[1])


def test_a_joint_stays_where_no_peak_is_clear_or_no_map_is() -> None:
    heat = np.full((64, 64, 3), -1.0, np.float32)  # 27%
    points = np.array([[100, 100, 0], [-30, 100, 0], [100, 300, 0]], np.float32)
    assert follow_peaks(points, heat) == pytest.approx(points)


def _outputs(presence: float) -> dict[str, np.ndarray]:
    raw = np.zeros((1, 39, 5), np.float32)
    raw[0, :, 0], raw[0, :, 1], raw[0, :, 2] = 128, 28, -64
    raw[0, 0, 3], raw[0, 1, 3] = 20, -20
    world = np.zeros((1, 39, 3), np.float32)
    world[0, :, 1] = -0.5
    return {
        "Identity": raw.reshape(1, 195),
        "Identity_1": np.array([[presence]], np.float32),
        "Identity_3": np.full((1, 64, 64, 39), -10, np.float32),
        "Identity_4": world.reshape(1, 117),
    }


def test_hand_made_outputs_become_joints_of_the_frame() -> None:
    to_crop = body_crop(standing())
    body = Bodies().decode(1, _outputs(0.9), to_crop)
    shrunk = 1 / to_crop[0, 0]  # frame pixels of one of the crop
    assert body.joints.shape == (33, 4)
    assert body.joints[:, 0] == pytest.approx(200, abs=0.01)
    assert body.joints[:, 1] == pytest.approx(250 - 100 * shrunk, abs=0.01)
    assert body.joints[:, 2] == pytest.approx(-64 * shrunk, abs=0.01)
    assert body.joints[:3, 3] == pytest.approx((1, 0, 0.5), abs=1e-6)
    assert body.world == pytest.approx(np.tile([0, -0.5, 0], (33, 1)), abs=1e-6)
    assert body.score == pytest.approx(0.9)


def test_a_crop_without_a_person_gives_no_body() -> None:
    pipeline = Bodies()
    assert pipeline.decode(1, _outputs(0.2), body_crop(standing())) is None
    image = np.zeros((480, 640, 3), np.uint8)
    assert pipeline.prepare(1, image, [[]], {}) == []
    assert pipeline.combine([[[]]], image) == []
    assert pipeline.combine([[[standing()]], [None]], image) == []


def test_who_stands_outside_of_the_region_is_not_seen() -> None:
    image = np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)
    crowd = image.copy()
    crowd[:, 300:] = 0
    pipeline = Bodies()
    for region, same in (((0, 0, 300, 480), True), (None, False)):
        one, other = (
            pipeline.prepare(1, each, [[standing()]], {"region": region})[0].inputs["input_1"]
            for each in (image, crowd)
        )
        assert (one == other).all() == same


def test_a_region_does_not_move_the_crop() -> None:
    image = np.random.default_rng(0).integers(0, 255, (480, 640, 3), np.uint8)
    pipeline = Bodies()
    (whole,) = pipeline.prepare(1, image, [[standing()]], {})
    (part,) = pipeline.prepare(1, image, [[standing()]], {"region": (100, 150, 300, 350)})
    assert part.context == pytest.approx(whole.context)
    inner = slice(SIDE // 2 - 40, SIDE // 2 + 40)
    there, expected = part.inputs["input_1"][0, inner, inner], whole.inputs["input_1"][0]
    assert there == pytest.approx(expected[inner, inner], abs=0.02)


def test_bones_join_what_belongs_together() -> None:
    names = {frozenset((JOINTS[a], JOINTS[b])) for a, b in BONES}
    assert len(JOINTS) == 33
    assert len(names) == len(BONES)
    assert frozenset(("left elbow", "left wrist")) in names
    across = {"mouth", "shoulder", "hip"}  # the only bones from one side to the other
    for a, b in (sorted(each) for each in names):
        if a.startswith("left") and b.startswith("right"):
            assert a.split()[1] in across
    assert {joint for bone in BONES for joint in bone} == set(range(33))


def test_the_mans_upper_body_is_where_movenet_sees_it(run, clip_frame) -> None:
    image = clip_frame("single_face.mp4", 36)
    (flat,) = run(open_pipeline("movenet"), image)
    (body,) = run(open_pipeline("body"), image)
    names = ("nose", "left shoulder", "right shoulder")
    there = body.joints[[JOINTS.index(name) for name in names]]
    expected = flat.joints[[SEVENTEEN.index(name) for name in names], :2]
    wide = np.linalg.norm(expected[1] - expected[2])
    assert np.linalg.norm(there[:, :2] - expected, axis=1).max() < 0.15 * wide
    assert there[:, 3].min() > 0.9
    knees = body.joints[[JOINTS.index("left knee"), JOINTS.index("right knee")], 3]
    assert knees.max() < 0.5  # below the picture's edge
    shoulders = body.world[[JOINTS.index("left shoulder"), JOINTS.index("right shoulder")]]
    assert 0.25 < np.linalg.norm(shoulders[0] - shoulders[1]) < 0.5  # metres


def test_an_empty_room_gives_no_person(run) -> None:
    assert run(open_pipeline("body"), np.full((480, 640, 3), 90, np.uint8)) == []
