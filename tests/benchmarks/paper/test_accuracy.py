"""Latencies for Table 4."""

from __future__ import annotations

import pytest

from benchmarks.paper.accuracy import WATCHED, evenly, scores
from heimdall.lab.bench.accuracy import Inference


def test_faces_and_masks_are_watched():
    assert [footage.dnn for footage in WATCHED] == ["face", "segment"]


def test_inferences_are_as_frequent_and_as_old_as_in_the_run():
    assert evenly(2.0, 300.0, 1.5) == [
        Inference(0, 300),
        Inference(500, 800),
        Inference(1000, 1300),
    ]


def test_only_what_has_run_is_scored():
    face = {"achieved_hz": {"mean": 2.0}, "end_to_end_ms": {"mean": {"mean": 300.04}}}
    runs = {"emoji max-total": {"dnns": {"face": face}}}
    (score,) = scores({"simulated": {"runs": runs}, "live": {"runs": {}}})
    assert (score.place, score.dnn, score.system) == ("simulated", "face", "max-total")
    assert score.task.about["pace"] == (2.0, 300.0)


@pytest.mark.parametrize("dnns", [{}, {"face": {"achieved_hz": {"mean": 0.0}}}])
def test_without_inferences_there_are_no_scores(dnns):
    runs = {"emoji multithread": {"dnns": dnns}}
    assert list(scores({"simulated": {"runs": runs}})) == []
