"""What carrying results along takes: ``python benchmarks/tracking.py [--warm] [--app NAME]``.

Plays clips at a camera's size through a Tracker, with results of real networks that come late,
and prints milliseconds of one core per frame: first with nothing carried, with each kind of
result, and with all; then where the time goes with all. Other work runs between the frames and
takes the caches, as in an app (not with ``--warm``).

``--app`` runs an app on the clips instead, without a window, and prints what tracking took there,
while networks and drawing keep every core and the caches busy.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cv2

from benchmarks.decision import other_work
from heimdall import cli as heimdall
from heimdall.capture import Frame
from heimdall.engine import open_engine
from heimdall.engine.base import Engine
from heimdall.lab.bench.footage import frames, read_clip, results_of
from heimdall.models.catalog import open_pipeline
from heimdall.system import paths
from heimdall.system.cpu import cpu_name
from heimdall.tracking import Tracker
from heimdall.tracking.carry import Cover, Things
from heimdall.tracking.flow import Flow

FPS = 30.0
CAMERA = (1280, 720)
CLIPS = ("box.mp4", "cup.mp4", "single_face.mp4")
KINDS = {"boxes": "nanodet", "mask": "selfie", "hands": "hand"}  # of result, and who finds it
PARTS: dict[str, tuple[Any, str]] = {
    "reduced picture": (Flow, "_reduced"),
    "points": (Flow, "_follow"),
    "new points": (Flow, "_refill"),
    "dense flow": (Flow, "_back"),
    "things": (Things, "follow"),
    "masks": (Cover, "follow"),
    "what to draw": (Tracker, "_value"),
    "new results": (Tracker, "_renew"),
}

WHOLE = {"frames": (Tracker, "advance"), "new results": (Tracker, "renew")}

Results = dict[str, list[Any]]  # of each kind, one every so many frames


def played(watched: Sequence[Frame], results: Results, late: int, warm: bool) -> float:
    """Milliseconds of one core a frame, when each result comes ``late`` frames after its own."""
    tracker, taken_ns = Tracker(), 0
    between = (lambda: None) if warm else other_work()
    tracker.carried("anything")  # it follows from the first question on
    for index, frame in enumerate(watched):
        between()
        frame = replace(frame, image=frame.image.copy())  # just read, as a camera's is
        began_ns = time.thread_time_ns()
        tracker.advance(frame)
        if index % late == 0 and index:
            for kind, found in results.items():
                tracker.renew(kind, found[index // late - 1], watched[index - late])
        taken_ns += time.thread_time_ns() - began_ns
    return taken_ns / 1e6 / len(watched)


@contextmanager
def timed(parts: dict[str, tuple[Any, str]]) -> Iterator[dict[str, list[float]]]:
    """Milliseconds of one core that each call of ``parts`` (owner and name) takes meanwhile."""
    taken: dict[str, list[float]] = {part: [] for part in parts}

    def measured(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timing(*args: Any, **kwargs: Any) -> Any:
            began_ns = time.thread_time_ns()
            try:
                return call(*args, **kwargs)
            finally:
                taken[part].append((time.thread_time_ns() - began_ns) / 1e6)

        return timing

    with ExitStack() as stack:
        for part, (owner, name) in parts.items():
            stack.enter_context(patch.object(owner, name, measured(part, getattr(owner, name))))
        yield taken


def seen(clip: str, seconds: float) -> list[Frame]:
    """The clip as a camera of 720p would give it: cut to its aspect, and as large."""
    pictures = read_clip(paths.ASSETS / "media" / clip, seconds)
    rows = pictures[0].shape[1] * CAMERA[1] // CAMERA[0]
    above = (pictures[0].shape[0] - rows) // 2
    return frames([cv2.resize(each[above : above + rows], CAMERA) for each in pictures], FPS)


def found(engine: Engine, watched: Sequence[Frame], late: int) -> Results:
    """What the networks find in every frame whose result comes."""
    pictures = [frame.image for frame in watched[::late]]
    return {
        kind: list(results_of(open_pipeline(name), engine, pictures))
        for kind, name in KINDS.items()
    }


def clips(arguments: argparse.Namespace) -> None:
    """Print both tables of all clips."""
    engine = open_engine("onnxruntime")
    cases: dict[str, dict[str, float]] = {}
    parts: dict[str, dict[str, float]] = {}
    for clip in arguments.clips:
        watched = seen(clip, arguments.seconds)
        results, name = found(engine, watched, arguments.late), Path(clip).stem
        kinds = {"nothing": {}, **{kind: {kind: results[kind]} for kind in KINDS}, "all": results}
        cases[name] = {
            case: played(watched, each, arguments.late, arguments.warm)
            for case, each in kinds.items()
        }
        with timed(PARTS) as taken:
            played(watched, results, arguments.late, arguments.warm)
        parts[name] = {part: sum(ms) / len(watched) for part, ms in taken.items()}
    show("carried", cases)
    show("part, all carried", parts)


def beside(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """What tracking takes a frame in a run of the app, on each clip; its start is in the mean."""
    figures: dict[str, dict[str, float]] = {}
    for clip in arguments.clips:
        source = str(paths.ASSETS / "media" / clip)
        options = ["--headless", "--source", source, "--seconds", str(arguments.seconds), "--json"]
        with timed(WHOLE) as taken, redirect_stdout(io.StringIO()):
            heimdall.main(["run", arguments.app, *options], standalone_mode=False)
        count = len(taken["frames"])
        figures[Path(clip).stem] = {part: sum(ms) / count for part, ms in taken.items()}
    return figures


def show(title: str, figures: dict[str, dict[str, float]]) -> None:
    """A column for each clip, and their mean."""
    print(f"{title:<20}" + "".join(f"{name:>13}" for name in (*figures, "mean")))
    for row in next(iter(figures.values())):
        cells = [each[row] for each in figures.values()]
        print(f"{row:<20}" + "".join(f"{ms:>13.2f}" for ms in (*cells, sum(cells) / len(cells))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", default=",".join(CLIPS), type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=8.0, help="of each clip")
    parser.add_argument("--late", type=int, default=10, help="frames until a result comes")
    parser.add_argument("--app", help="a bundled app's name, or path/to/file.py")
    parser.add_argument("--warm", action="store_true", help="nothing runs between the frames")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    print(f"ms of one core a frame; {cpu_name()}, OpenCV {cv2.__version__}")
    if arguments.app:
        show(f"beside {arguments.app}", beside(arguments))
    else:
        clips(arguments)


if __name__ == "__main__":
    main()
