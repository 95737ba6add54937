"""How well the room tracker knows where the camera is: rendered rooms, and clips with known poses.

    python -m benchmarks.world --seeds 3              # every frame is looked at, as fast as it can
    python -m benchmarks.world --seeds 3 --paced      # 30 frames a second, as in runs
    python -m benchmarks.world --seeds 8 --variants hand,fast --sensors  # metres by accelerations
    python -m benchmarks.world --variants away,rotation,white,dark,still
    python -m benchmarks.world --clip vamr:FOLDER --frames 370 --paced --repeat 5
    python -m benchmarks.world --clip desk.mp4 --reference colmap

``--clip`` takes a file, ``vamr:FOLDER`` (the University of Zurich's exercise 1, yosoufe/VAMR,
data/ex01: of it only the first 375 frames are of a scene that stands still) or ``tsukuba:FOLDER``
(the first 150 frames of New Tsukuba's rendered office, in
felixchenfy/Monocular-Visual-Odometry-Data), ``hololens:FOLDER`` (ardaduz/deep-video-mvs,
sample-data/hololens-dataset/000: 8 cm and 5 degrees between frames) or ``euroc:FOLDER``
(MIT-SPARK/Kimera-VIO, tests/data/MicroEurocDataset: nothing may begin). ``--reference colmap``
gives a file's camera and poses.

Not paced, the mapper works between frames, so that the same frames give the same poses. Errors are
those of `benchmarks.trajectory`. Times are the CPU time of the tracking thread.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.clips import FOLDERS, Clip, film, room
from benchmarks.rooms import FPS, FRAMES, MORE, PLANES, VARIANTS
from benchmarks.trajectory import Flat, PlaneOff, Quality, judged, planes_judged
from heimdall.capture.pose import Pose
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker
from heimdall.tracking.world.lengths import Length
from heimdall.tracking.world.locator import Locator

MOVED = 0.05  # of the scene's depth: so far from where it began a camera is to have a pose
COLUMNS = ("clip", "first", "tracked", "ATE", "worst", "mm", "turn", "worst", "drift", "false",
           "back", "keyframes", "planes", "table", "metres", "ms")  # fmt: skip


def clips(options: argparse.Namespace) -> Iterator[Clip]:
    """Those that were asked for: clips, or rooms if there are none."""
    for each in options.clip:
        kind, _, folder = each.partition(":")
        if kind in FOLDERS:
            yield FOLDERS[kind](Path(folder), options.frames)
        else:
            yield film(Path(each), options.frames, options.reference)
    if options.clip:
        return
    for variant in options.variants.split(","):
        for seed in range(options.first, options.first + options.seeds):
            frames = options.frames or FRAMES
            place = options.folder, seed, variant, options.size, frames
            yield room(*place, sensors=options.sensors)


# --- the tracker on them ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tried:
    """How it went with a ``clip`` (less its pictures) of so many ``frames``: the ``share`` of them
    with a pose, and how many frames after the camera had ``moved`` enough the first one came; the
    ``quality`` of these, None if there is no saying; ``why`` others have none, how often;
    ``keyframes``, milliseconds a frame (``ms``); true ``planes`` that were found, degrees and
    offset as a share of their distance, and how many were found where none is (``wrong_planes``);
    the mapper's ``problem``; by how much metres by sensors are off and are said to be."""

    clip: Clip
    frames: int
    share: float
    moved: int | None
    quality: Quality | None
    why: Counter[str]
    keyframes: int
    ms: list[float]
    planes: dict[str, PlaneOff]
    wrong_planes: int
    problem: str
    metres: tuple[float, float] | None


def tried(clip: Clip, paced: bool) -> Tried:
    """The tracker on one clip."""
    tracker = RoomTracker(None if paced else Mapper())
    locator, length = Locator(tracker), None
    found: dict[int, Pose] = {}
    costs: list[float] = []
    why: Counter[str] = Counter()
    began_s = time.perf_counter()
    for number, picture in enumerate(clip.pictures):
        if paced:
            time.sleep(max(0.0, began_s + number / FPS - time.perf_counter()))
        camera = clip.camera.sensing(clip.motions[number]) if clip.motions else clip.camera
        before_s = time.thread_time()
        tracking = locator.advance(picture, camera, number, number / FPS)
        costs.append((time.thread_time() - before_s) * 1e3)
        if tracking.tracked and tracking.pose is not None:
            found[number] = tracking.pose
        else:
            why[tracker.reason] += 1
        length = tracking.length or length
    tracker.close()
    keyframes = tracker.map.keyframes.values()
    depth = float(np.median([each.depth for each in keyframes])) if keyframes else math.inf
    quality = judged(
        found,
        clip.truth,
        clip.depths,
        frames=len(clip.pictures),
        gaps=clip.gaps,
        own_depth=depth,
    )
    best: dict[str, PlaneOff] = {}
    wrong: list[str] = []
    if quality is not None and clip.faces:
        eyes = np.array([clip.truth[n].position for n in quality.errors])
        own = [
            Flat(f"{each.kind} {each.id}", each.pose.translation, each.normal)
            for each in tracker.map.planes.planes
        ]
        best, wrong = planes_judged(own, clip.faces, quality.alignment, eyes)
    return Tried(
        replace(clip, pictures=()),
        len(clip.pictures),
        len(found) / len(clip.pictures),
        _since_moved(clip, found),
        quality,
        why,
        len(keyframes),
        costs[min(found, default=0) + 1 :],
        {name: off for name, off in best.items() if name != "side"},
        len(wrong),
        tracker.problem,
        _off(length, quality),
    )


def _since_moved(clip: Clip, found: dict[int, Pose]) -> int | None:
    """Frames from where the camera had moved by MOVED to the first pose; None: unknown."""
    if 0 not in clip.truth or 0 not in clip.depths or not found:
        return None
    start, least = clip.truth[0].position, MOVED * clip.depths[0]
    far = (n for n, pose in sorted(clip.truth.items())
           if np.linalg.norm(pose.position - start) > least)  # fmt: skip
    moved = next(far, None)
    return None if moved is None else min(found) - moved


def _off(length: Length | None, quality: Quality | None) -> tuple[float, float] | None:
    """By how much sensors have the metres wrong, as a share, and what they say of that."""
    if length is None or quality is None:
        return None
    return length.metres / quality.alignment.scale - 1, length.spread


# --- what is printed --------------------------------------------------------------------------


def row(one: Tried, paced: bool) -> str:
    """A line of the table."""
    q, cells = one.quality, [one.clip.name]
    if q is None:
        why = ", ".join(f"{word} {count}" for word, count in one.why.most_common())
        return (
            f"| {one.clip.name} | poses in {one.share:.1%} of frames{'; ' + why if why else ''} |"
        )
    cells += [f"{q.first}" + (f" ({one.moved:+})" if one.moved is not None else "")]
    cells += [f"{q.tracked:.1%}", f"{q.ate:.3%}", f"{q.worst:.3%}"]
    cells += [f"{1e3 * q.ate * q.path:.1f}" if one.clip.metric else "-"]
    cells += [f"{q.turn:.2f}", f"{q.worst_turn:.2f}", f"{q.drift:.3f}", f"{q.false:.2%}"]
    cells += ["/".join("never" if each is None else str(each) for each in q.back) or "-"]
    cells += [f"{one.keyframes}"]
    known = one.planes.keys() & {each.name for each in PLANES}
    cells += [f"{len(known)} + {one.wrong_planes} wrong" if one.clip.faces else "-"]
    table = one.planes.get("table")
    cells += [f"{table[0]:.2f}°, {table[1]:.2%}" if table else "-"]
    cells += [f"{one.metres[0]:+.1%} ± {one.metres[1]:.1%}" if one.metres else "-"]
    # else the mapper's time is in it
    cells += ["{:.1f} / {:.1f}".format(*np.percentile(one.ms, [50, 99])) if paced else "-"]
    return "| " + " | ".join(cells) + " |"


def summary(rows: Sequence[Tried]) -> list[str]:
    """A line a kind of clip, and one of all: medians, and the worst ones."""
    kinds: dict[str, list[Tried]] = {}
    for each in rows:
        kinds.setdefault(each.clip.name.rsplit("-", 1)[0], []).append(each)
    if len(kinds) > 1:
        kinds["all"] = list(rows)
    return [_summed(kind, ones) for kind, ones in kinds.items() if len(ones) > 1]


def _summed(kind: str, ones: Sequence[Tried]) -> str:
    known = [each.quality for each in ones if each.quality is not None]
    line = f"{kind}: {len(known)} of {len(ones)} tracked"
    if not known:
        return line
    tracked, ate, turn = (
        [getattr(each, name) for each in known] for name in ("tracked", "ate", "turn")
    )
    line += (
        f" ({np.median(tracked):.1%}, least {min(tracked):.1%}); ATE median {np.median(ate):.3%}"
    )
    line += f", worst {max(ate):.3%}; turns median {np.median(turn):.2f}"
    line += f", worst {max(each.worst_turn for each in known):.2f} degrees"
    line += f"; drift at most {max(each.drift for each in known):.3f}"
    line += f", false {np.mean([each.false for each in known]):.2%}"
    line += f", at most {max(each.false for each in known):.2%}"
    moved = [each.moved for each in ones if each.moved is not None]
    if moved:
        line += f"; first pose {max(moved)} frames after {MOVED:.0%} of the depth at most"
    back = [each for one in known for each in one.back]
    if back:
        late = max(math.inf if each is None else each for each in back)
        line += f"; back after at most {late} frames"
    metres = [each.metres for each in ones if each.metres is not None]
    if metres:
        line += f"; metres by sensors in {len(metres)}, off by {max(abs(m[0]) for m in metres):.1%}"
        line += f" at most, by {max(abs(m[0]) / m[1] for m in metres):.1f} of what they say"
    tables = [each.planes["table"] for each in ones if "table" in each.planes]
    if any(each.clip.faces for each in ones):
        line += f"; table found in {len(tables)}"
        line += f", at most {max(t[0] for t in tables):.2f}°" if tables else ""
        line += f", {max(t[1] for t in tables):.2%}" if tables else ""
    return line


def plain(one: Tried) -> dict[str, Any]:
    """For JSON."""
    q = one.quality
    said: dict[str, Any] = {"clip": one.clip.name, "frames": one.frames}
    said |= {"share": one.share, "why": dict(one.why), "keyframes": one.keyframes}
    said |= {"ms": np.percentile(one.ms or [0], [50, 99]).tolist(), "planes": one.planes}
    said |= {
        "moved": one.moved,
        "wrong_planes": one.wrong_planes,
        "problem": one.problem,
        "metres": one.metres,
    }
    if q is not None:
        names = ("first", "tracked", "path", "ate", "worst", "turn", "worst_turn", "drift", "false")
        said |= {name: getattr(q, name) for name in names} | {"back": list(q.back)}
    return said


def arguments() -> argparse.ArgumentParser:
    """The command's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=int, default=3, help="how many rooms of each variant")
    add("--first", type=int, default=0, help="the first seed")
    add("--variants", default=",".join(VARIANTS), help=f"of {', '.join((*VARIANTS, *MORE))}")
    add("--size", type=_size, default=(640, 480), help="of rooms' pictures, WIDTHxHEIGHT")
    add("--folder", type=Path, default=Path(tempfile.gettempdir()) / "heimdall-rooms",
        help="where rendered rooms are kept")  # fmt: skip
    add("--clip", action="append", default=[], help=f"FILE, or {':, '.join(FOLDERS)}:FOLDER")
    add("--reference", choices=["colmap"], help="where a file's true poses are from")
    add("--frames", type=int, help="of each clip, at most")
    add("--sensors", action="store_true", help="rooms: frames come with what a phone's sensors say")
    add("--paced", action="store_true", help="30 frames a second, the map in its process")
    add("--repeat", type=int, default=1, help="how often each clip is tried")
    add("--json", action="store_true")
    return parser


def _size(text: str) -> tuple[int, int]:
    width, height = text.lower().split("x")
    return int(width), int(height)


def main() -> None:
    """Print a row a clip, and what is typical and worst."""
    options = arguments().parse_args()
    cv2.setNumThreads(1)
    done = []
    if not options.json:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for clip in clips(options):
        for _ in range(options.repeat):
            done.append(tried(clip, options.paced))
            if not options.json:
                print(row(done[-1], options.paced), flush=True)
                if done[-1].problem:
                    print(f"  {clip.name}: {done[-1].problem}", flush=True)
    print(json.dumps([plain(each) for each in done]) if options.json else "")
    if not options.json:
        print("\n".join(summary(done)))


if __name__ == "__main__":
    main()
