"""How well the room tracker knows where the camera is: rendered rooms, and clips with known poses.

    python -m benchmarks.world --folder rooms --seeds 4          # every frame is looked at
    python -m benchmarks.world --folder rooms --seeds 4 --paced  # 30 frames a second, as in runs
    python -m benchmarks.world --vamr FOLDER --frames 370 --paced --repeat 5

Errors are those after alignment by a similarity (Umeyama, 1991). Times are the CPU time of the
tracking thread. Of VAMR's ex01 only the first 375 frames are of a scene that stands still.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.rooms import FPS, PLANES, VARIANTS, Room, rendered
from heimdall.capture.lens import Camera, Pose
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker

FALSE_SHARE, FALSE_DEGREES = 0.05, 5.0  # of the depth; beyond it a tracked pose is false


def aligned(own: np.ndarray, true: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Scale, rotation (3, 3) and move (3,) that lead from ``own`` places (n, 3) to ``true`` ones
    with the least squares of errors (Umeyama, 1991)."""
    a, b = own - own.mean(axis=0), true - true.mean(axis=0)
    u, sizes, v = np.linalg.svd(b.T @ a / len(a))
    flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))])
    turn = u @ flip @ v
    scale = float((sizes * np.diag(flip)).sum() / (a**2).sum(axis=1).mean())
    return scale, turn, true.mean(axis=0) - scale * turn @ own.mean(axis=0)


def judged(found: dict[int, Pose], truth: Sequence[Pose], depth: float) -> dict[str, Any]:
    """What poses are worth: ``depth`` is the scene's, in the tracker's units."""
    numbers = sorted(found)
    own = np.array([found[n].position for n in numbers])
    true = np.array([truth[n].position for n in numbers])
    scale, turn, move = aligned(own, true)
    off = np.linalg.norm(scale * own @ turn.T + move - true, axis=1)
    places = np.array([each.position for each in truth])
    path = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
    turns = np.array([_degrees(found[n].rotation @ turn.T @ truth[n].rotation.T) for n in numbers])
    third = len(numbers) // 3
    drift = aligned(own[:third], true[:third])[0] / aligned(own[-third:], true[-third:])[0]
    wrong = (off > FALSE_SHARE * depth * scale) | (turns > FALSE_DEGREES)
    return {
        "first": numbers[0],
        "tracked": len(numbers) / (len(truth) - numbers[0]),
        "path_m": path,
        "ate": float(np.sqrt((off**2).mean())) / path,
        "turn_degrees": [float(np.median(turns)), float(turns.max())],
        "drift": float(max(drift, 1 / drift)),
        "false": float(wrong.mean()),
        "alignment": (scale, turn, move),
    }


def _degrees(rotation: np.ndarray) -> float:
    return float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1, 1))))


def planes_off(
    tracker: RoomTracker, alignment: tuple[float, np.ndarray, np.ndarray], eye: Pose
) -> Any:
    """Of the table as it was found: degrees between normals, and its offset as a share of its
    distance; None where it was not."""
    scale, turn, move = alignment
    table = PLANES[0]
    best: tuple[float, float] | None = None
    for each in tracker.map.planes.planes:
        normal = turn @ each.pose.rotation[:, 1]
        point = scale * turn @ each.pose.translation + move
        degrees = float(np.degrees(np.arccos(np.clip(abs(normal @ table.normal), 0, 1))))
        height = abs(float((point - table.point) @ table.normal))
        share = height / float(np.linalg.norm(eye.position - table.point))
        inside = (np.abs(point - table.point)[[0, 2]] < 0.9).all()
        if degrees < 10 and share < 0.1 and inside and (best is None or share < best[1]):
            best = degrees, share
    return best


def tried(
    pictures: Sequence[np.ndarray], truth: Sequence[Pose], camera: Camera, paced: bool
) -> tuple[dict[str, Any], RoomTracker]:
    """One clip."""
    tracker = RoomTracker(None if paced else Mapper())
    found: dict[int, Pose] = {}
    costs, began_s = [], time.perf_counter()
    for number, picture in enumerate(pictures):
        if paced:
            time.sleep(max(0.0, began_s + number / FPS - time.perf_counter()))
        before_s = time.thread_time()
        tracking = tracker.advance(picture, camera, number, number / FPS)
        costs.append((time.thread_time() - before_s) * 1e3)
        if tracking.tracked and tracking.pose is not None:
            found[number] = tracking.pose
    tracker.close()
    if len(found) < 30:
        return {"tracked": 0.0, "why": tracker.reason}, tracker
    depth = float(np.median([each.depth for each in tracker.map.keyframes.values()]))
    result = judged(found, truth, depth)
    result["keyframes"] = len(tracker.map.keyframes)
    if paced:  # else the mapper's time is in it
        result["ms"] = np.percentile(costs[result["first"] + 1 :], [50, 99]).tolist()
    return result, tracker


def clips(
    options: argparse.Namespace,
) -> Iterator[tuple[str, list[np.ndarray], list[Pose], Camera]]:
    """Name, pictures, poses and camera of each clip asked for."""
    if options.vamr is not None:
        yield "vamr", *vamr(options.vamr, options.frames)
        return
    for seed in range(options.seeds):
        for variant in options.variants.split(","):
            room = Room(seed, variant)
            files = sorted(rendered(options.folder, room).glob("*.jpg"))
            pictures = [cv2.imread(str(each), cv2.IMREAD_GRAYSCALE) for each in files]
            yield (
                f"{variant}-{seed}",
                [p for p in pictures if p is not None],
                room.poses,
                room.camera,
            )


def vamr(folder: Path, most: int) -> tuple[list[np.ndarray], list[Pose], Camera]:
    """The University of Zurich's exercise 1 (yosoufe/VAMR, data/ex01): to measure with."""
    files = sorted((folder / "images").glob("*.jpg"))[:most]
    rows = np.loadtxt(folder / "poses.txt")[: len(files)]
    k, (k1, k2) = np.loadtxt(folder / "K.txt"), np.loadtxt(folder / "D.txt").ravel()
    square = float(k[0, 0] ** 2)  # its radii are in pixels
    distortion = (float(k1) * square, float(k2) * square**2, 0.0, 0.0, 0.0)
    pictures = [cv2.imread(str(each), cv2.IMREAD_GRAYSCALE) for each in files]
    height, width = pictures[0].shape[:2]  # type: ignore[union-attr]
    lens = (float(k[0, 0]), float(k[1, 1]), float(k[0, 2]), float(k[1, 2]))
    poses = [Pose.of(row[:3], row[3:]) for row in rows]
    return [p for p in pictures if p is not None], poses, Camera(width, height, *lens, distortion)


def main() -> None:
    """Print a row a clip."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where rendered rooms are kept")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--vamr", type=Path)
    parser.add_argument("--frames", type=int, default=370)
    parser.add_argument("--paced", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.vamr is None and options.folder is None:
        parser.error("--folder is needed for rendered rooms")
    cv2.setNumThreads(1)
    found = []
    for name, pictures, truth, camera in clips(options):
        for _ in range(options.repeat):
            result, tracker = tried(pictures, truth, camera, options.paced)
            alignment = result.pop("alignment", None)
            if alignment is not None and options.vamr is None:
                result["table"] = planes_off(tracker, alignment, truth[-1])
            found.append({"clip": name, **result})
            if not options.json:
                print(_row(found[-1]), flush=True)
    if options.json:
        print(json.dumps(found))
    elif len(found) > 1:
        ates = [100 * each["ate"] for each in found if "ate" in each]
        print(f"ATE median {np.median(ates):.3f}%, worst {max(ates):.3f}% of {len(found)}")


def _row(one: dict[str, Any]) -> str:
    if "ate" not in one:
        return f"{one['clip']}: not tracked ({one['why']})"
    turns, table, ms = one["turn_degrees"], one.get("table"), one.get("ms")
    row = f"{one['clip']}: first {one['first']}, tracked {one['tracked']:.1%}, "
    row += f"ATE {one['ate']:.3%} of {one['path_m']:.2f} m, turns {turns[0]:.2f} / {turns[1]:.2f}, "
    row += f"drift {one['drift']:.3f}, false {one['false']:.2%}, {one['keyframes']} keyframes"
    row += f", table {table[0]:.2f} degrees {table[1]:.2%}" if table else ""
    return row + (f", {ms[0]:.1f} / {ms[1]:.1f} ms" if ms else "")


if __name__ == "__main__":
    main()
