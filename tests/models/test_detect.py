from __future__ import annotations

import numpy as np
import pytest

from heimdall.models import open_pipeline
from heimdall.models.detect import COCO, LEVELS, NanoDet


def _empty_outputs() -> dict[str, np.ndarray]:
    outputs = {}
    for stride, scores, bins in LEVELS:
        cells = (416 // stride) ** 2
        outputs[scores] = np.zeros((1, cells, 80), np.float32)
        outputs[bins] = np.zeros((1, cells, 44), np.float32)
    return outputs


def _context(width: int, height: int):
    return NanoDet().prepare(0, np.zeros((height, width, 3), np.uint8), [], {})[0].context


def test_a_hand_made_cell_gives_the_box_around_its_centre() -> None:
    outputs = _empty_outputs()
    cell = 5 * 26 + 7  # row 5, column 7 of stride 16: centre (120, 88)
    outputs["Identity_1:0"][0, cell, COCO.index("cup")] = 0.9
    bins = np.full((4, 11), -30, np.float32)
    for edge, distance in enumerate((1, 2, 3, 4)):  # left, top, right, bottom in strides
        bins[edge, distance] = 30
    outputs["Identity_4:0"][0, cell] = bins.reshape(-1)
    found = NanoDet().decode(0, outputs, _context(832, 832))
    assert len(found) == 1
    assert (found[0].label, found[0].score) == ("cup", pytest.approx(0.9))
    # input pixels (104, 56, 168, 152), and the frame is twice as large
    assert found[0].box == pytest.approx((208, 112, 336, 304), abs=1e-3)


def test_nothing_above_the_threshold_gives_no_detection() -> None:
    assert NanoDet().decode(0, _empty_outputs(), _context(640, 480)) == []


def test_there_are_80_classes() -> None:
    assert len(COCO) == len(set(COCO)) == 80


def test_five_people_are_found(run, five_people) -> None:
    found = run(open_pipeline("nanodet", labels=["person"]), five_people)
    assert len(found) >= 4
    assert {detection.label for detection in found} == {"person"}
    assert found[0].score > 0.7
    height, width = five_people.shape[:2]
    for left, top, right, bottom in (detection.box for detection in found):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height


def test_the_arm_and_the_table_of_the_default_clip_are_found(run, clip_frame) -> None:
    found = run(open_pipeline("nanodet"), clip_frame("box.mp4", 420))
    boxes = {detection.label: detection.box for detection in found}
    assert {"person", "dining table"} <= set(boxes)
    assert boxes["dining table"][1] == pytest.approx(187, abs=40)  # the table's far edge
