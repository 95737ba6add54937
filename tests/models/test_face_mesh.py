from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.models import open_pipeline
from heimdall.models.face_mesh import (
    CORNERS,
    EYE_REACH,
    EYE_SIDE,
    FACE_REACH,
    FACE_SIDE,
    FaceMeshes,
    eye_crop,
    face_crop,
)
from heimdall.models.results import Detection, FaceMesh

angles = st.floats(-3.1, 3.1)


def face(angle: float, side: float = 100.0) -> Detection:
    """A face at (300, 200) that is rolled clockwise, with landmarks."""
    marks = np.array([(-0.2, -0.1), (0.2, -0.1), (0, 0.1), (-0.15, 0.3), (0.15, 0.3)])
    c, s = np.cos(angle), np.sin(angle)
    turned = marks @ np.array([[c, s], [-s, c]]) * side + (300, 200)
    half = side / 2
    return Detection("face", 0.9, (300 - half, 200 - half, 300 + half, 200 + half), turned)


def mesh(angle: float = 0.0) -> np.ndarray:
    """Points of which only the corners of the eyes count, 20 pixels apart in each."""
    points = np.zeros((468, 3), np.float32)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    for eye, x in enumerate((-30.0, 30.0)):
        points[list(CORNERS[eye]), :2] = np.array([(x - 10, 0), (x + 10, 0)]) @ turn + (300, 200)
    return points


def apply(to_crop: np.ndarray, points: np.ndarray) -> np.ndarray:
    return points @ to_crop[:, :2].T + to_crop[:, 2]


@given(angles)
def test_a_face_is_cut_out_with_level_eyes(angle) -> None:
    found = face(angle)
    to_crop = face_crop(found)
    marks = apply(to_crop, found.points)
    assert marks[0, 1] == pytest.approx(marks[1, 1], abs=1e-3)
    assert marks[0, 0] < marks[1, 0]
    assert marks[3:, 1].min() > marks[:2, 1].max()  # the mouth below
    assert apply(to_crop, np.array([300.0, 200.0])) == pytest.approx((96, 96), abs=1e-3)
    assert np.hypot(*to_crop[0, :2]) == pytest.approx(FACE_SIDE / (100 * FACE_REACH))


def test_a_face_without_landmarks_is_cut_out_as_it_is() -> None:
    bare = Detection("face", 0.9, (250, 150, 350, 250))
    assert face_crop(bare) == pytest.approx(face_crop(face(0)))


@pytest.mark.parametrize("eye", [0, 1])
@given(angle=angles)
def test_an_eye_is_cut_out_level_and_one_of_them_mirrored(eye, angle) -> None:
    points = mesh(angle)
    to_crop = eye_crop(points, eye)
    outer, inner = apply(to_crop, points[list(CORNERS[eye])[:: 1 if eye == 0 else -1], :2])
    assert outer[1] == pytest.approx(inner[1], abs=1e-2)
    assert inner[0] - outer[0] == pytest.approx(EYE_SIDE / EYE_REACH, abs=1e-2)  # both alike
    assert (np.linalg.det(to_crop[:, :2]) < 0) == (eye == 1)


def _outputs(logit: float) -> dict[str, np.ndarray]:
    points = np.tile(np.array([96, 96, 19.2], np.float32), 468)
    return {
        "conv2d_21": points.reshape(1, 1, 1, 1404),
        "conv2d_31": np.full((1, 1, 1, 1), logit, np.float32),
    }


def test_hand_made_outputs_become_points_of_the_frame() -> None:
    points, score = FaceMeshes().decode(1, _outputs(2.0), face_crop(face(0.7)))
    assert points.shape == (468, 3)
    assert points == pytest.approx(np.tile([300, 200, 19.2 * 135 / 192], (468, 1)), abs=1e-3)
    assert score == pytest.approx(0.881, abs=1e-3)


def test_a_crop_that_shows_no_face_is_left_out_with_its_eyes() -> None:
    pipeline = FaceMeshes()
    assert pipeline.decode(1, _outputs(-3.0), face_crop(face(0))) is None
    image = np.zeros((400, 600, 3), np.uint8)
    there = (mesh(), 0.9)
    tasks = pipeline.prepare(2, image, [None, there, None], {})
    assert len(tasks) == 2
    irises = [np.full((5, 3), number, np.float32) for number in range(2)]
    (only,) = pipeline.combine([[[]], [None, there, None], irises], image)
    assert only.points is there[0]
    assert only.irises[:, 0, 0].tolist() == [0, 1]


def test_no_face_means_no_crops_and_no_meshes() -> None:
    pipeline, image = FaceMeshes(), np.zeros((400, 600, 3), np.uint8)
    assert pipeline.prepare(1, image, [[]], {}) == []
    assert pipeline.combine([[[]], []], image) == []
    assert pipeline.combine([[[face(0)]], [None], []], image) == []


def test_of_many_faces_the_surest_are_looked_at() -> None:
    found = [face(0, side) for side in (100, 120, 140)]
    tasks = FaceMeshes(most=2).prepare(1, np.zeros((400, 600, 3), np.uint8), [found], {})
    scales = [np.hypot(*task.context[0, :2]) for task in tasks]
    assert scales == pytest.approx([192 / 135, 192 / 162])


def test_lips_and_lids_are_measured_by_their_own_width() -> None:
    points = np.zeros((468, 3), np.float32)
    points[[78, 308], 0] = 0, 60
    points[[13, 14], 1] = -12, 12
    points[[33, 133], 0] = 0, 30
    points[[159, 145], 1] = -4.5, 4.5
    points[[362, 263], 0] = 0, 30
    still = FaceMesh(points, 1.0, np.zeros((2, 5, 3), np.float32))
    assert still.mouth_open == pytest.approx(0.4)
    assert still.eyes_open == pytest.approx((0.3, 0))
    bigger = FaceMesh(points * 3, 1.0, still.irises)
    assert bigger.mouth_open == pytest.approx(0.4)


def test_everybody_in_a_group_has_a_mesh_with_irises_in_the_eyes(run, five_people) -> None:
    meshes = run(open_pipeline("face-mesh", most=6), five_people)
    assert len(meshes) == 5
    for found in meshes:
        for eye, (start, end) in enumerate(CORNERS):
            corners = found.points[[start, end], :2]
            iris = found.irises[eye, 0, :2]
            assert np.linalg.norm(iris - corners.mean(axis=0)) < np.linalg.norm(np.ptp(corners, 0))


def test_who_opens_the_mouth_is_told_from_who_does_not(run, clip_frame) -> None:
    (shut,), (smiling,) = (
        run(open_pipeline("face-mesh"), clip_frame("single_face.mp4", frame)) for frame in (0, 36)
    )
    assert shut.mouth_open < 0.05
    assert smiling.mouth_open > 0.15
    assert min(*shut.eyes_open, *smiling.eyes_open) > 0.12


def test_a_mesh_turns_with_the_picture(run, clip_frame) -> None:
    image = clip_frame("single_face.mp4", 36)
    (upright,) = run(open_pipeline("face-mesh"), image)
    turn = cv2.getRotationMatrix2D((295, 190), 30, 1)
    turned_image = cv2.warpAffine(image, turn, (640, 360), borderMode=cv2.BORDER_REPLICATE)
    (turned,) = run(open_pipeline("face-mesh"), turned_image)
    expected = apply(turn, upright.points[:, :2])
    eyes = np.linalg.norm(upright.points[33, :2] - upright.points[263, :2])
    assert np.linalg.norm(turned.points[:, :2] - expected, axis=1).mean() < 0.04 * eyes
    assert turned.mouth_open == pytest.approx(upright.mouth_open, abs=0.06)


def test_an_empty_room_holds_no_face(run) -> None:
    assert run(open_pipeline("face-mesh"), np.full((480, 640, 3), 90, np.uint8)) == []
