"""Things that move by themselves: ``python -m benchmarks.movers [--seeds N] [CLIP ...]``.

Boxes come ``--late`` ms after their pictures, one result after the other, and are shown as they
came and carried along by ``heimdall.tracking``. Truth is drawn (``benchmarks/street.py``), or what
the network finds in the very picture of a clip. The figure is the intersection over union with it,
picture by picture; of drawn persons who pass one another, also how many are still themselves
afterwards. docs/laboratory/movers.md has what came of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2

from benchmarks.street import FPS, Seen, Street, visible
from heimdall.engine import open_engine
from heimdall.lab.bench.accuracy import back_to_back, on_screen, score
from heimdall.lab.bench.footage import frames, results_of
from heimdall.lab.likeness import box_iou
from heimdall.models.catalog import open_pipeline
from heimdall.models.results import Detection
from heimdall.runtime.telemetry.statistics import interval
from heimdall.system.cpu import cpu_name

TOGETHER = 0.15  # IoU of two persons who pass one another
APART = 0.02
IT = 0.3  # IoU of a box on screen with whom it shows
ROW = "| {} | {} | {} | {} | {} | {} |"


def street(seed: int, late_ms: float, camera: bool, seconds: float = 8.0) -> dict[str, float]:
    """IoU as it came and carried, persons who passed one another, and how many kept their id."""
    scene = Street(seed, seconds=seconds, camera=camera)
    pictures, truth = zip(*(scene.shot(index) for index in range(scene.count)), strict=True)
    watched = frames(list(pictures), FPS)
    found = [scene.found(each) for each in truth]
    there = [[Detection(each.label, 1.0, each.box) for each in visible(every)] for every in truth]
    plan = back_to_back(late_ms, scene.count / FPS)
    began_s = time.thread_time()
    shown = on_screen(watched, found, plan, carry=True)
    carry_ms = (time.thread_time() - began_s) * 1e3 / scene.count
    kept, passed = passings(truth, shown)
    return {
        "held": score(on_screen(watched, found, plan, carry=False), there).mean,
        "carried": score(shown, there).mean,
        "ms": carry_ms,
        "kept": kept,
        "passed": passed,
    }


def passings(truth: Sequence[list[Seen]], shown: Sequence[Any]) -> tuple[int, int]:
    """Of the persons who were on screen before and after they passed another: how many have the
    same id, and how many they are."""
    kept = passed = 0
    for one, other in combinations(sorted({each.who for every in truth for each in every}), 2):
        for first, last in _meetings(truth, one, other):
            for who in (one, other):
                before = _known(who, truth, shown, range(first, max(-1, first - 30), -1))
                after = _known(
                    who, truth, shown, range(last, min(len(truth), last + 40)), final=True
                )
                if before is not None and after is not None:
                    passed += 1
                    kept += before == after
    return kept, passed


def _meetings(truth: Sequence[list[Seen]], one: int, other: int) -> list[tuple[int, int]]:
    """(last picture before, first after) of each time that two persons overlap."""
    found, apart, met = [], -1, False
    for index, every in enumerate(truth):
        boxes = {each.who: each.box for each in every if each.label == "person"}
        if one not in boxes or other not in boxes:
            apart, met = -1, False
            continue
        iou = box_iou(boxes[one], boxes[other])
        met |= iou > TOGETHER and apart >= 0
        if iou < APART:
            if met:
                found.append((apart, index))
            apart, met = index, False
    return found


def _known(
    who: int,
    truth: Sequence[list[Seen]],
    shown: Sequence[Any],
    pictures: range,
    final: bool = False,
) -> int | None:
    """The id under which somebody is on screen in the first of ``pictures`` (the ``final``) in
    which a box is theirs alone."""
    found = None
    for index in pictures:
        places = {each.who: each.box for each in truth[index] if each.label == "person"}
        for each in shown[index] or () if who in places else ():
            fits = {person: box_iou(box, each.box) for person, box in places.items()}
            if each.label == "person" and fits[who] > IT and fits[who] == max(fits.values()):
                found = each.id
        if found is not None and not final:
            break
    return found


def clip(path: Path, model: str, fps: float, late_ms: float, width: int) -> dict[str, float]:
    """The same of a clip, played at ``fps``; and how well the network agrees with its own next
    picture."""
    pictures, capture = [], cv2.VideoCapture(str(path))
    fps = fps or capture.get(cv2.CAP_PROP_FPS)
    while (read := capture.read())[0]:
        high = round(read[1].shape[0] * width / read[1].shape[1]) if width else 0
        size = (width, high)
        pictures.append(
            cv2.resize(read[1], size, interpolation=cv2.INTER_AREA) if width else read[1]
        )
    truth = list(results_of(open_pipeline(model), open_engine("onnxruntime"), pictures))
    watched, plan = frames(pictures, fps), back_to_back(late_ms, len(pictures) / fps)
    began_s = time.thread_time()
    shown = on_screen(watched, truth, plan, carry=True)
    return {
        "held": score(on_screen(watched, truth, plan, carry=False), truth).mean,
        "carried": score(shown, truth).mean,
        "next": score([None, *truth[:-1]], truth).mean,
        "ms": (time.thread_time() - began_s) * 1e3 / len(pictures),
    }


def drawn(arguments: argparse.Namespace, camera: bool) -> str:
    """The row of all seeds."""
    found = [
        street(seed, arguments.late, camera)
        for seed in range(arguments.first, arguments.first + arguments.seeds)
    ]
    held, carried, ms = (
        interval([each[name] for each in found]) for name in ("held", "carried", "ms")
    )
    worst = min(each["carried"] / each["held"] for each in found)
    kept, passed = (int(sum(each[name] for each in found)) for name in ("kept", "passed"))
    return ROW.format(
        f"street, {'moving' if camera else 'still'} camera, {arguments.seeds} seeds",
        f"{held.mean:.3f} ({held.low:.3f} to {held.high:.3f})",
        f"{carried.mean:.3f} ({carried.low:.3f} to {carried.high:.3f})",
        f"{carried.mean / held.mean:.2f} (least {worst:.2f})",
        f"{kept} of {passed}: {kept / max(passed, 1):.0%}",
        f"{ms.mean:.1f}",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "clips",
        nargs="*",
        help="PATH[:MODEL[:FPS[:WIDTH]]]; nanodet, and as it is, where not given",
    )
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--first", type=int, default=100, help="seed; 0 to 11 were tuned on")
    parser.add_argument("--late", type=float, default=540.0, help="ms until a result is there")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    print(f"{cpu_name()}, OpenCV {cv2.__version__}; results {arguments.late:g} ms late")
    print(ROW.format("footage", "as it came", "carried", "ratio", "kept their id", "ms a frame"))
    print("|---" * 6 + "|")
    for camera in (False, True) if arguments.seeds else ():
        print(drawn(arguments, camera), flush=True)
    for each in arguments.clips:
        path, model, fps, width = (*each.split(":"), "", "", "")[:4]
        found = clip(
            Path(path), model or "nanodet", float(fps or 0), arguments.late, int(width or 0)
        )
        cells = [f"{found[name]:.3f}" for name in ("held", "carried")]
        ratio = f"{found['carried'] / found['held']:.2f}"
        name = f"{Path(path).name}, {model or 'nanodet'} (next picture {found['next']:.2f})"
        print(ROW.format(name, *cells, ratio, "", f"{found['ms']:.1f}"), flush=True)


if __name__ == "__main__":
    main()
