from __future__ import annotations

import cv2
import numpy as np

from heimdall.models import open_pipeline


def test_the_mask_covers_the_person_and_not_the_wall(run, clip_frame) -> None:
    image = clip_frame("single_face.mp4", 0)
    mask = run(open_pipeline("selfie"), image).values
    assert mask.dtype == np.float32
    height, width = mask.shape
    assert mask[height // 2, int(0.46 * width)] > 0.9  # the face
    assert mask[-5, width // 2] > 0.9  # the shirt
    assert mask[: height // 3, : width // 5].max() < 0.1
    assert mask[: height // 3, -width // 5 :].max() < 0.1


def test_the_mask_has_the_frames_aspect(run) -> None:
    for width, height in ((640, 480), (480, 640), (1280, 720)):
        mask = run(open_pipeline("selfie"), np.zeros((height, width, 3), np.uint8)).values
        assert abs(mask.shape[1] / mask.shape[0] - width / height) < 0.02


def test_an_arm_is_masked_and_the_table_is_not(run, clip_frame) -> None:
    image = clip_frame("box.mp4", 180)
    mask = cv2.resize(run(open_pipeline("selfie"), image).values, (640, 480))
    assert mask[60:90, 60:120].mean() > 0.8
    assert mask[350:470, 300:600].mean() < 0.1
