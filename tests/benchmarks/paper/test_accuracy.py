"""Latencies for Table 4."""

from __future__ import annotations

import pytest

from benchmarks.paper.accuracy import WATCHED, evenly
from heimdall.bench.accuracy import Inference


def test_faces_and_masks_are_watched():
    assert [footage.dnn for footage in WATCHED] == ["face", "segment"]


def test_inferences_are_as_frequent_and_as_old_as_in_the_run():
    face = {"inferences": 20, "rate_hz": 2.0, "end_to_end_ms": {"mean": 300.0}}
    results = {"runs": {"emoji max-total": {"dnns": {"face": face}}}}
    inferences = evenly(results, "emoji max-total", "face", 1.5)
    assert inferences == [Inference(0, 300), Inference(500, 800), Inference(1000, 1300)]


@pytest.mark.parametrize("dnns", [{}, {"face": {"inferences": 0}}])
def test_without_inferences_there_are_none(dnns):
    assert evenly({"runs": {"a": {"dnns": dnns}}}, "a", "face", 1.0) == []
