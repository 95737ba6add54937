"""Table 4: what is on screen against what is there, at the rates and latencies of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cv2

from benchmarks.accuracy import FOOTAGE, FPS, compared
from benchmarks.paper.values import look_up
from heimdall.analyzer.profiler import Progress
from heimdall.bench.accuracy import Inference
from heimdall.bench.footage import frames, read_clip, results_of, with_moving_camera
from heimdall.engine import open_engine
from heimdall.models.catalog import open_pipeline
from heimdall.system import paths

SYSTEMS = ("multithread", "fixed-5", "max-total")
WATCHED = tuple(each for each in FOOTAGE if each.moving)  # one for faces, and one for masks


def table_4(
    places: Mapping[str, Mapping[str, Any]], seconds: float, progress: Progress
) -> dict[str, dict[str, Any]]:
    """By place, DNN and system: IoU (mean, std) of results as they came (``held``) and moved with
    the picture (``carried``). ``places``: the results of each."""
    cv2.setNumThreads(1)
    engine = open_engine("onnxruntime")
    found: dict[str, dict[str, Any]] = {place: {} for place in places}
    for index, footage in enumerate(WATCHED):
        progress("accuracy", index, len(WATCHED))
        clip = read_clip(paths.ASSETS / "media" / footage.clip, seconds)
        pictures = with_moving_camera(clip, FPS)
        truth = list(results_of(open_pipeline(footage.model), engine, pictures))
        watched = frames(pictures, FPS)
        for place, results in places.items():
            found[place][footage.dnn] = {
                system: compared(watched, truth, inferences)
                for system in SYSTEMS
                if (inferences := evenly(results, f"emoji {system}", footage.dnn, seconds))
            }
    progress("accuracy", len(WATCHED), len(WATCHED))
    return found


def evenly(results: Mapping[str, Any], run: str, dnn: str, seconds: float) -> list[Inference]:
    """As many inferences a second as the run had, each as old on screen as they were on average;
    empty where there was no run."""
    found = look_up(results, f"runs/{run}/dnns/{dnn}")
    if found is None or not found["inferences"]:
        return []
    step_ms, age_ms = 1000 / found["rate_hz"], found["end_to_end_ms"]["mean"]
    starts = (step_ms * index for index in range(int(1000 * seconds / step_ms)))
    return [Inference(start_ms, start_ms + age_ms) for start_ms in starts]
