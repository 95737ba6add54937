from __future__ import annotations

import numpy as np
import pytest

from heimdall.models import open_pipeline
from heimdall.models.pose import JOINTS, MoveNet

HEAD = "StatefulPartitionedCall/"


def _outputs() -> dict[str, np.ndarray]:
    return {
        HEAD + "Sigmoid": np.zeros((1, 48, 48, 17), np.float32),
        HEAD + "Sigmoid_1": np.zeros((1, 48, 48, 1), np.float32),
        HEAD + "kpt_regress_0/conv2d_6/BiasAdd": np.zeros((1, 48, 48, 34), np.float32),
        HEAD + "kpt_offset_0/conv2d_7/BiasAdd": np.zeros((1, 48, 48, 34), np.float32),
    }


def test_hand_made_peaks_near_the_regression_become_joints() -> None:
    outputs = _outputs()
    outputs[HEAD + "Sigmoid_1"][0, 20, 24] = 0.9
    outputs[HEAD + "kpt_regress_0/conv2d_6/BiasAdd"][0, 20, 24, 0::2] = 5  # all joints 5 down
    outputs[HEAD + "Sigmoid"][0, 26, 24] = 0.6
    outputs[HEAD + "Sigmoid"][0, 2, 2] = 0.7  # another body's joints: stronger but far away
    outputs[HEAD + "kpt_offset_0/conv2d_7/BiasAdd"][0, 26, 24, 0::2] = 0.5
    context = MoveNet().prepare(0, np.zeros((384, 384, 3), np.uint8), [], {})[0].context
    (body,) = MoveNet().decode(0, outputs, context)
    assert body.joints.shape == (17, 3)
    assert body.joints[:, 0] == pytest.approx(24 * 8)
    assert body.joints[:, 1] == pytest.approx(26.5 * 8)
    assert body.joints[:, 2] == pytest.approx(0.6)


def test_weak_joints_are_no_body(run) -> None:
    assert run(open_pipeline("movenet"), np.full((480, 640, 3), 90, np.uint8)) == []


def test_the_input_is_whole_numbers() -> None:
    (task,) = MoveNet().prepare(0, np.full((20, 20, 3), 255, np.uint8), [], {})
    assert task.inputs["input:0"].dtype == np.int32
    assert task.inputs["input:0"].max() == 255


def test_a_region_is_looked_at_alone_and_led_back_to_the_frame() -> None:
    outputs = _outputs()
    outputs[HEAD + "Sigmoid_1"][0, 24, 24] = 0.9
    outputs[HEAD + "Sigmoid"][0, 24, 24] = 0.6
    image = np.zeros((400, 600, 3), np.uint8)
    (task,) = MoveNet().prepare(0, image, [], {"region": (300.4, 100, 492, 292)})
    (body,) = MoveNet().decode(0, outputs, task.context)
    assert body.joints[0, :2] == pytest.approx((300 + 96, 100 + 96))


@pytest.mark.parametrize("region", [(-50, -50, 1000, 1000), (90, 0, 90, 50), (700, 0, 800, 50)])
def test_a_region_beyond_the_frame_is_cut_or_forgotten(region) -> None:
    image = np.full((400, 600, 3), 200, np.uint8)
    (task,) = MoveNet().prepare(0, image, [], {"region": region})
    assert task.inputs["input:0"].shape == (1, 192, 192, 3)


def test_the_mans_head_and_shoulders_are_found(run, clip_frame) -> None:
    image = clip_frame("single_face.mp4", 36)
    (body,) = run(open_pipeline("movenet"), image)
    joints = {name: body.joints[index] for index, name in enumerate(JOINTS)}
    assert 200 < joints["nose"][0] < 380
    # his left is on the right of the picture
    assert joints["left shoulder"][0] > joints["nose"][0] > joints["right shoulder"][0]
    assert joints["left shoulder"][1] > joints["nose"][1]
    assert joints["nose"][2] > 0.3
