from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from heimdall.errors import ConfigError
from heimdall.graph.exits import as_whole
from heimdall.graph.graph import load_graph
from heimdall.models import open_pipeline
from heimdall.models.face import CenterFace


def test_a_hand_made_cell_gives_its_face() -> None:
    pipeline = CenterFace(size=(64, 96))
    shape = (16, 24)
    outputs = {
        "537": np.zeros((1, 1, *shape), np.float32),
        "538": np.zeros((1, 2, *shape), np.float32),
        "539": np.zeros((1, 2, *shape), np.float32),
        "540": np.zeros((1, 10, *shape), np.float32),
    }
    row, column = 5, 9
    outputs["537"][0, 0, row, column] = 0.8
    outputs["538"][0, :, row, column] = np.log((6, 4))  # 24 high, 16 wide
    outputs["539"][0, :, row, column] = (0.25, -0.25)
    outputs["540"][0, :2, row, column] = (0.5, 0.25)  # first mark: y, x over the box
    context = pipeline.prepare(0, np.zeros((128, 192, 3), np.uint8), [], {})[0].context
    (face,) = pipeline.decode(0, outputs, context)
    # centre (37, 23) in input pixels; the frame is twice as large
    assert face.box == pytest.approx((58, 22, 90, 70), abs=1e-3)
    assert face.points[0] == pytest.approx((58 + 8, 22 + 24), abs=1e-3)


def test_five_faces_are_found_with_their_landmarks(run, five_people) -> None:
    faces = run(open_pipeline("centerface"), five_people)
    assert len(faces) == 5
    for face in faces:
        left, top, right, bottom = face.box
        assert face.label == "face"
        assert face.points.shape == (5, 2)
        assert (face.points >= (left, top)).all()
        assert (face.points <= (right, bottom)).all()
        left_eye, right_eye, nose, left_mouth, right_mouth = face.points
        assert left_eye[0] < right_eye[0]
        assert left_mouth[0] < right_mouth[0]
        assert max(left_eye[1], right_eye[1]) < nose[1] < min(left_mouth[1], right_mouth[1])


def test_another_input_size_finds_the_same_face(run, clip_frame) -> None:
    image = clip_frame("single_face.mp4", 36)
    (large,) = run(open_pipeline("centerface"), image)
    (small,) = run(open_pipeline("centerface", size=(192, 320)), image)
    assert small.box == pytest.approx(large.box, abs=20)


def test_an_empty_room_holds_no_face(run) -> None:
    assert run(open_pipeline("centerface"), np.full((480, 640, 3), 90, np.uint8)) == []


def test_a_size_off_the_grid_is_refused() -> None:
    with pytest.raises(ConfigError, match="multiples of 32"):
        open_pipeline("centerface", size=(100, 100))


def test_every_early_exit_finds_the_five_people(five_people) -> None:
    """And the whole network computes what it does without exits."""
    pipeline = open_pipeline("centerface", size=(320, 320), exits=True)
    graph = load_graph(pipeline.networks[0].path, pipeline.networks[0].shapes)
    (task,) = pipeline.prepare(0, five_people, [], {})
    session = ort.InferenceSession(graph.serialized)
    names = [each.name for each in session.get_outputs()]
    made = dict(zip(names, session.run(names, dict(task.inputs)), strict=True))
    assert [each.name for each in graph.exits] == ["exit1", "exit2", "whole"]
    assert [each.accuracy for each in graph.exits] == sorted(each.accuracy for each in graph.exits)
    for exit in graph.exits:
        own = {name: made[name] for name in exit.outputs}
        assert len(pipeline.decode(0, as_whole(graph.exits, own), task.context)) == 5
    plain = open_pipeline("centerface", size=(320, 320)).networks[0]
    alone = ort.InferenceSession(load_graph(plain.path, plain.shapes).serialized)
    for output, array in zip(alone.get_outputs(), alone.run(None, dict(task.inputs)), strict=True):
        np.testing.assert_allclose(made[output.name], array, atol=1e-5)
