"""Replay of latencies over footage, and the figures."""

from __future__ import annotations

import json
from itertools import pairwise

import cv2
import numpy as np
import pytest

from heimdall.engine import open_engine
from heimdall.errors import ConfigError
from heimdall.lab.bench.accuracy import (
    Inference,
    back_to_back,
    in_turn,
    on_screen,
    read_inferences,
    score,
)
from heimdall.lab.bench.footage import frames, read_clip, results_of, with_moving_camera
from heimdall.models.catalog import open_pipeline
from heimdall.models.results import Detection, Mask


def face(left: float = 0.0, top: float = 0.0, size: float = 10.0) -> Detection:
    return Detection("face", 1.0, (left, top, left + size, top + size))


def mask(*cells: int) -> Mask:
    return Mask(np.array([cells], np.float32))


def test_latencies_in_turn_become_requests_and_arrivals():
    assert in_turn([10, 30]) == [Inference(0, 10), Inference(10, 40)]
    assert back_to_back(250, 1) == in_turn([250] * 4)


@pytest.fixture(scope="module")
def still():
    return frames([np.zeros((48, 64, 3), np.uint8)] * 10, 10)  # one frame every 100 ms


@pytest.mark.parametrize("carry", [False, True])
def test_a_result_of_an_old_frame_shows_from_its_arrival_on(still, carry):
    truth = [[face(n)] for n in range(10)]
    shown = on_screen(still, truth, [Inference(0, 250), Inference(250, 600)], carry)
    lefts = [each and each[0].box[0] for each in shown]
    assert lefts[:3] == [None] * 3
    assert lefts[3:6] == [0, 0, 0]  # on the frame at 300 ms first
    if not carry:
        assert lefts[6:] == [2, 2, 2, 2]  # at 250 ms, the newest frame was that of 200 ms


def test_the_score_counts_from_the_first_result_on():
    found = score([None, [face()], [face(100)]], [[face()]] * 3)
    assert (found.mean, found.std, found.frames) == (0.5, 0.5, 2)
    with pytest.raises(ConfigError, match="take more seconds"):
        score([None], [[face()]])


def test_inferences_are_read_from_a_runs_trace(tmp_path):
    spans = [
        ("hand preprocess", 1000, 100), ("other decode", 1200, 10),
        ("hand preprocess", 5000, 100), ("hand decode", 9000, 1000),  # two stages, one inference
        ("hand preprocess", 20_000, 100), ("hand decode", 30_000, 500),
        ("hand preprocess", 40_000, 100),
    ]  # fmt: skip
    events = [{"ph": "X", "name": n, "ts": t, "dur": d} for n, t, d in spans]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": events}))
    assert read_inferences(file, "hand") == [Inference(0, 9), Inference(19, 29.5)]
    with pytest.raises(ConfigError, match="no finished inference of DNN 'eye'"):
        read_inferences(file, "eye")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"traceEvents": [{"ph": "X"}]}'])
def test_a_file_that_is_no_trace_is_refused(tmp_path, content):
    file = tmp_path / "trace.json"
    file.write_text(content)
    with pytest.raises(ConfigError, match="is no trace of"):
        read_inferences(file, "hand")
    with pytest.raises(ConfigError, match="cannot read trace"):
        read_inferences(tmp_path / "none.json", "hand")


def test_a_clip_plays_to_and_fro_without_a_cut(assets):
    pictures = read_clip(assets / "media" / "single_face.mp4", seconds=5)
    assert len(pictures) == 150
    steps = [cv2.absdiff(one, other).mean() for one, other in pairwise(pictures)]
    assert max(steps) < 12
    assert min(steps) > 0  # at the turn too
    with pytest.raises(ConfigError, match="no clip that can be read"):
        read_clip(assets / "media" / "none.mp4", 1)


def test_carried_results_beat_held_ones_where_the_camera_moves(assets):
    pictures = read_clip(assets / "media" / "single_face.mp4", seconds=1.5)
    pictures = with_moving_camera(pictures, 30)
    watched, engine = frames(pictures, 30), open_engine("onnxruntime")
    for model, least in (("centerface", 0.85), ("selfie", 0.95)):
        truth = list(results_of(open_pipeline(model), engine, pictures))
        plan = back_to_back(300, 1.5)
        held, carried = (score(on_screen(watched, truth, plan, c), truth) for c in (False, True))
        assert carried.mean > held.mean + 0.1
        assert carried.mean > least
