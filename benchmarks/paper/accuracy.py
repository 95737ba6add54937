"""Table 4: what is on screen against what is there, at the rates and latencies of runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cv2

from benchmarks.accuracy import FOOTAGE, FPS, Footage, compared
from benchmarks.paper.kept import Task
from benchmarks.paper.values import look_up
from heimdall.engine import open_engine
from heimdall.lab.bench.accuracy import Inference
from heimdall.lab.bench.footage import frames, read_clip, results_of, with_moving_camera
from heimdall.models.catalog import open_pipeline
from heimdall.system import paths

SYSTEMS = ("multithread", "fixed-5", "max-total-static", "max-total")
WATCHED = tuple(each for each in FOOTAGE if each.moving)  # one for faces, and one for masks
SECONDS = 10.0


@dataclass(frozen=True)
class Score:
    """One entry of the table, and what computes it."""

    place: str
    dnn: str
    system: str
    task: Task


def scores(places: Mapping[str, Mapping[str, Any]]) -> Iterator[Score]:
    """All entries that the results of each place have a run for."""
    for place, results in places.items():
        for footage in WATCHED:
            for system in SYSTEMS:
                pace = _pace(results, f"emoji {system}", footage.dnn)
                if pace is not None:
                    about = {"footage": footage.name, "seconds": SECONDS, "pace": pace}
                    task = Task(scored, (footage, *pace), about)
                    yield Score(place, footage.dnn, system, task)


def scored(footage: Footage, rate_hz: float, age_ms: float) -> dict[str, Any]:
    """IoU (mean, std) of results as they came (``held``) and moved with the picture
    (``carried``)."""
    cv2.setNumThreads(1)
    watched, truth = _watched(footage)
    return compared(watched, truth, evenly(rate_hz, age_ms, SECONDS))


@lru_cache(maxsize=1)  # the tasks of a footage follow each other
def _watched(footage: Footage) -> tuple[Any, Any]:
    clip = read_clip(paths.ASSETS / "media" / footage.clip, SECONDS)
    pictures = with_moving_camera(clip, FPS)
    engine = open_engine("onnxruntime")
    truth = list(results_of(open_pipeline(footage.model), engine, pictures))
    return frames(pictures, FPS), truth


def _pace(results: Mapping[str, Any], run: str, dnn: str) -> tuple[float, float] | None:
    """(inferences a second, how old each is on screen in ms), means over runs; None where there
    was no run, or no inference."""
    rate_hz = look_up(results, f"runs/{run}/dnns/{dnn}/achieved_hz/mean")
    age_ms = look_up(results, f"runs/{run}/dnns/{dnn}/end_to_end_ms/mean/mean")
    return (round(rate_hz, 3), round(age_ms, 1)) if rate_hz and age_ms else None


def evenly(rate_hz: float, age_ms: float, seconds: float) -> list[Inference]:
    """So many inferences a second, each that old when it is on screen."""
    step_ms = 1000 / rate_hz
    starts = (step_ms * index for index in range(int(1000 * seconds / step_ms)))
    return [Inference(start_ms, start_ms + age_ms) for start_ms in starts]
