"""How well a camera's pose is known: ``python -m benchmarks.pose [--seeds 100-107] [--kinds ...]``.

Plays rendered clips with known truth (``benchmarks/rendered.py``) to the tracker and compares what
it would show with where the camera was, against the goals. Every frame counts from the first one
on, the time until the target is first found included. A row of the table is one kind of clip over
all seeds: the mean over clips, and the range from the best clip to the worst; times are of all
frames of that kind, CPU time of the tracker's one thread (its p50 and p99) beside wall time.
Results: docs/laboratory/pose.md. Seeds 0 to 9 are those it was developed with: report others.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.rendered import DICTIONARY, FPS, Course, Rendered, Shot
from heimdall.capture.pose import Pose
from heimdall.system.cpu import cpu_name
from heimdall.tracking.pose import ImageTarget, Marker, PoseTracker, Tracking, Views
from heimdall.tracking.pose.solve import apart

KINDS: Mapping[str, Course] = {
    "marker": Course(),
    "picture": Course(target="picture", width_m=0.2),
    "marker, hidden": Course(occluder=0.5),
    "picture, hidden": Course(target="picture", width_m=0.2, occluder=0.5),
    "marker, fast": Course(speed=2.5, exposure=0.6),
    "picture, fast": Course(target="picture", width_m=0.2, speed=2.5, exposure=0.6),
    "marker, leaves": Course(away=0.3),
    "picture, leaves": Course(target="picture", width_m=0.2, away=0.3),
    "marker, nothing around": Course(bare=True, away=0.3),
    "marker, dark and noisy": Course(noise=8.0, light=0.6),
    "marker, bent lens": Course(bent=True),
    "marker, still": Course(still=True),
    "picture, still": Course(target="picture", width_m=0.2, still=True),
}
GOALS = {
    "reprojection_px": 1.0, "turn_degrees": 0.5, "distance_percent": 1.0, "tracked": 0.95,
    "found_again_s": 0.5, "false": 0.005, "jitter_mm": 1.0, "ms_p50": 6.0, "ms_p99": 10.0,
}  # fmt: skip
LEAST_VISIBLE, MOST_BLUR_PX = 0.3, 15.0
GONE = 0.05  # visible share below which a target is out of view
FALSE_DEGREES, FALSE_SHARE = 5.0, 0.05
COLUMNS = {
    "reprojection_px": "reprojection, px", "turn_degrees": "rotation, degrees",
    "distance_percent": "distance, %", "tracked": "tracked", "found_after_s": "first found, s",
    "found_again_s": "found again, s", "false": "false poses", "unseen": "tracked unseen",
    "jitter_mm": "jitter, mm", "lag_ms": "lag, ms",
}  # fmt: skip
SHARES = {"tracked", "false", "unseen"}


@dataclass
class Record:
    """What a clip gave: a value each frame."""

    shots: list[Shot] = field(default_factory=list)
    trackings: list[Tracking] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    wall_ms: list[float] = field(default_factory=list)


def played(rendered: Rendered, course: Course) -> Record:
    """The clip, through a tracker."""
    target = (
        Marker(DICTIONARY, rendered.marker, course.width_m)
        if course.target == "marker"
        else ImageTarget(rendered.target, course.width_m)
    )
    tracker, record = PoseTracker([target], Views()), Record()
    for number, shot in enumerate(rendered.shots()):
        cpu_s, wall_s = time.thread_time(), time.perf_counter()
        tracking = tracker.advance(shot.image, shot.camera.at(None), number, number / FPS)
        record.cpu_ms.append((time.thread_time() - cpu_s) * 1e3)
        record.wall_ms.append((time.perf_counter() - wall_s) * 1e3)
        record.trackings.append(tracking)
        # the picture is not needed any more
        record.shots.append(replace(shot, image=np.empty(0)))
    return record


def measured(kind: str, seconds: float, seed: int) -> dict[str, Any]:
    """One clip's figures, by name; None where the clip says nothing of one."""
    cv2.setNumThreads(1)
    course = replace(KINDS[kind], seconds=seconds)
    rendered = Rendered(seed, course)
    record = played(rendered, course)
    corners = rendered.corners()
    pairs = [
        (shot, tracking.pose)
        for shot, tracking in zip(record.shots, record.trackings, strict=True)
        if tracking.tracked and tracking.pose is not None
    ]
    wanted = [_wanted(shot) for shot in record.shots]
    tracked = [each.tracked for each in record.trackings]
    in_view = [(shot, pose) for shot, pose in pairs if _wanted(shot)]
    off = [_off(shot, pose, corners) for shot, pose in pairs]
    near = [_off(shot, pose, corners) for shot, pose in in_view]
    false = [turn > FALSE_DEGREES or far > FALSE_SHARE for _, turn, far in off]
    pixels, degrees, share = np.median(near, axis=0) if near else (None, None, None)
    gone = sum(shot.visible < GONE for shot in record.shots)
    unseen = sum(
        each and shot.visible < GONE for each, shot in zip(tracked, record.shots, strict=True)
    )
    return {
        "kind": kind,
        "seed": seed,
        "reprojection_px": pixels,
        "turn_degrees": degrees,
        "distance_percent": None if share is None else share * 100,
        "tracked": sum(a and b for a, b in zip(tracked, wanted, strict=True)) / max(sum(wanted), 1),
        "found_after_s": _first(tracked, wanted),
        "found_again_s": _longest_return(tracked, record.shots),
        "false": sum(false) / len(record.shots),
        "unseen": unseen / gone if gone else None,
        "jitter_mm": _jitter(pairs) if course.still else None,
        "lag_ms": None if course.still else _lag(in_view, record.shots, corners),
        "cpu_ms": record.cpu_ms,
        "wall_ms": record.wall_ms,
    }


def _wanted(shot: Shot) -> bool:
    return shot.visible >= LEAST_VISIBLE and shot.blur_px <= MOST_BLUR_PX


def _off(shot: Shot, pose: Pose, corners: np.ndarray) -> tuple[float, float, float]:
    """Pixels (mean of the target's corners), degrees, and the distance's relative error."""
    truth = shot.camera.pose
    assert truth is not None
    turn, _ = apart(pose, truth)
    true_m, said_m = (float(np.linalg.norm(each.translation)) for each in (truth, pose))
    there, seen = truth.to_camera(corners), pose.to_camera(corners)
    pixels = math.inf
    if (there[:, 2] > 0.01).all() and (seen[:, 2] > 0.01).all():
        between = shot.camera.pixels(there) - shot.camera.pixels(seen)
        pixels = float(np.linalg.norm(between, axis=1).mean())
    return pixels, math.degrees(turn), abs(said_m - true_m) / true_m


def _first(tracked: Sequence[bool], wanted: Sequence[bool]) -> float | None:
    """Seconds from when the target could first be seen until it was tracked."""
    if True not in wanted:
        return None
    begin = wanted.index(True)
    return (tracked.index(True, begin) - begin) / FPS if True in tracked[begin:] else math.inf


def _longest_return(tracked: Sequence[bool], shots: Sequence[Shot]) -> float | None:
    """Of all times that the target came back after it had been lost and out of view: seconds until
    it was tracked."""
    longest, away, waiting = None, False, 0
    for is_tracked, shot in zip(tracked, shots, strict=True):
        if shot.visible < GONE and not is_tracked:
            away, waiting = True, 0
        elif away and is_tracked:
            longest = max(longest or 0.0, waiting / FPS)
            away = False
        elif away and _wanted(shot):
            waiting += 1
    return math.inf if away and waiting > FPS * GOALS["found_again_s"] else longest


def _jitter(pairs: Sequence[tuple[Shot, Pose]]) -> float | None:
    """Millimetres, standard deviation (root of the sum over axes) of where a point of the world 1 m
    before the camera is shown, half a second after the first pose and later."""
    later = pairs[round(FPS / 2) :]
    if len(later) < 10:
        return None
    truth = later[0][0].camera.pose
    assert truth is not None
    point = truth.to_world(np.array([[0.0, 0.0, 1.0]]))
    places = np.concatenate([pose.to_camera(point) for _, pose in later])
    return float(np.sqrt(places.var(axis=0).sum())) * 1e3


def _lag(
    pairs: Sequence[tuple[Shot, Pose]], shots: Sequence[Shot], corners: np.ndarray
) -> float | None:
    """Milliseconds that what is shown is behind: how far corners are off along their movement."""
    number = {id(shot): at for at, shot in enumerate(shots)}
    behind = along = 0.0
    for shot, pose in pairs:
        at = number[id(shot)]
        if not 0 < at < len(shots) - 1 or (pose.to_camera(corners)[:, 2] <= 0.01).any():
            continue
        before, now, after = (_seen(each, corners) for each in shots[at - 1 : at + 2])
        speed = (after - before) * FPS / 2
        behind += float(((now - shot.camera.pixels(pose.to_camera(corners))) * speed).sum())
        along += float((speed**2).sum())
    return behind / along * 1e3 if along else None


def _seen(shot: Shot, corners: np.ndarray) -> np.ndarray:
    assert shot.camera.pose is not None
    return shot.camera.pixels(shot.camera.pose.to_camera(corners))


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """As Markdown."""
    lines = ["| clips | " + " | ".join(COLUMNS.values()) + " | ms p50 | ms p99 | wall p50, p99 |"]
    lines.append("|---" * (len(COLUMNS) + 4) + "|")
    goals = [_said(name, GOALS[name]) if name in GOALS else "" for name in COLUMNS]
    lines.append(f"| *goal* | {' | '.join(goals)} | 6 | 10 | |")
    for kind in [*KINDS, "all"]:
        mine = [each for each in rows if kind in ("all", each["kind"])]
        if mine:
            cells = [_cell(name, [each[name] for each in mine]) for name in COLUMNS]
            lines.append(f"| {kind} | {' | '.join([*cells, *_times(mine)])} |")
    return lines


def _cell(name: str, values: Sequence[float | None]) -> str:
    known = [each for each in values if each is not None]
    if not known:
        return ""
    mean, low, high = float(np.mean(known)), min(known), max(known)
    return f"{_said(name, mean)} ({_said(name, low)}-{_said(name, high)})"


def _said(name: str, value: float) -> str:
    if name in SHARES:
        return f"{value * 100:.1f}%"
    return f"{value:.2f}"


def _times(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    cpu, wall = (np.concatenate([each[name] for each in rows]) for name in ("cpu_ms", "wall_ms"))
    p50, p99 = (float(np.percentile(cpu, share)) for share in (50, 99))
    walls = ", ".join(f"{np.percentile(wall, share):.1f}" for share in (50, 99))
    return [f"{p50:.1f}", f"{p99:.1f}", walls]


def parse_seeds(text: str) -> list[int]:
    """``"100-107"`` or ``"3"``."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main() -> None:
    """Play, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=parse_seeds, default=parse_seeds("100-107"))
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--workers", type=int, default=1, help="more disturb the times")
    parser.add_argument("--json", type=Path, help="write every clip's figures there")
    options = parser.parse_args()
    tasks = [(kind, seed) for seed in options.seeds for kind in options.kinds]
    one = partial(_one, seconds=options.seconds)
    if options.workers > 1:
        with ProcessPoolExecutor(options.workers) as pool:
            rows = list(pool.map(one, tasks))
    else:
        rows = [one(each) for each in tasks]
    if options.json:
        options.json.write_text(json.dumps(rows, default=float))
    print("\n".join(table(rows)))
    frames = sum(len(each["cpu_ms"]) for each in rows)
    print(f"\n{len(rows)} clips, {frames} frames of 1280x720, {cpu_name()}, one thread of OpenCV")


def _one(task: tuple[str, int], seconds: float) -> dict[str, Any]:
    return measured(task[0], seconds, task[1])


if __name__ == "__main__":
    main()
