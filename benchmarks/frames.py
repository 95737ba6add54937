"""What a frame costs of the GPU, part by part, with the app's networks at rest:

    python -m benchmarks.frames                    # 1280x720, without a window
    python -m benchmarks.frames --size 1920x1080
    xvfb-run -a -s "-screen 0 1920x1080x24" python -m benchmarks.frames --window
    python -m benchmarks.frames --write            # docs/laboratory/frames.md, with runs of apps

Each row adds one part to the frame of the row above, as the shopping app draws it. The frames take
turns. *render* is what the loop of a run counts: from the frame's start, when all of it has been
submitted, until the GPU has drawn it and it could be presented; *GPU core* is the processor time
of the threads that play the GPU; *submit* is the main thread's work before. Medians.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np

from benchmarks.simulated import filled, table
from heimdall.models.results import Detection, Hand, Mask
from heimdall.render import DnnStatus, Overlay, Scene, Status, open_surface
from heimdall.render.surface import Surface
from heimdall.system import paths
from heimdall.system.cpu import cpu_name
from heimdall.system.softgpu import gpu_thread_ids, plan

PAGE = paths.ROOT / "docs" / "laboratory" / "frames.md"
TEXT = paths.ROOT / "benchmarks" / "frames.md"  # the page's words
PICTURE = (640, 480)
DNNS = ("detect", "segment", "hand", "style")

Paint = Callable[[Scene, int], None]


def noise(*shape: int) -> np.ndarray:
    """A picture of grain, the same each time."""
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def person() -> list[Mask]:
    """Somebody in front of the couch's right half; a carried mask is another one each frame."""
    y, x = np.mgrid[0:256, 0:256] / 256
    inside = np.hypot((x - 0.62) / 0.2, (y - 0.75) / 0.45)
    values = np.clip(6 - 6 * inside, 0, 1).astype(np.float32)
    return [Mask(np.roll(values, shift, axis=1)) for shift in range(16)]


def hands() -> list[Hand]:
    """A hand like a fan."""
    finger, joint = np.divmod(np.arange(20), 4)
    angle = np.radians(-150 + 30 * finger)
    reach = 40 + 22 * joint
    points = np.zeros((21, 3), np.float32)
    points[0, :2] = 200, 380
    points[1:, 0] = 200 + reach * np.cos(angle)
    points[1:, 1] = 380 + reach * np.sin(angle)
    return [Hand(points, 0.9, "right")]


def status() -> Status:
    dnns = tuple(DnnStatus(name, 120.0, 500.0, "gpu", 4.0, 80.0, 0, False) for name in DNNS)
    return Status(
        app="Online shopping",
        fps=29.9,
        fps_target=30,
        frame_ms=[33.3 + 0.7 * (number % 3) for number in range(120)],
        late_frames=0,
        scheduler="max-total",
        mode="elastic",
        device="software GPU",
        dnns=dnns,
        gap_utilization=0.93,
        reason="detect: lowest utility",
    )


def couch(scene: Scene, x: float, cloth: np.ndarray) -> None:
    scene.model("couch.glb", at=(x, 384), width=269, yaw=-20, texture=cloth)


def paints(moving: bool) -> dict[str, Paint]:
    """What is drawn over the picture, in the order of shopping's draw."""
    cloth, card = noise(192, 192, 3), noise(120, 300, 4)
    masks, fan = person(), hands()
    box = [Detection("chair", 0.8, (380, 200, 600, 460))]
    corners = np.array([(440, 250), (606, 250), (606, 316), (440, 316)])
    return {
        "picture": lambda scene, number: None,
        "couch": lambda scene, number: couch(scene, 294 + moving * number % 2, cloth),
        "person in front": lambda scene, number: scene.occlude(masks[number % len(masks)]),
        "box": lambda scene, number: scene.boxes(box),
        "hand": lambda scene, number: scene.hands(fan),
        "card": lambda scene, number: scene.picture(card, corners),
    }


@dataclass
class Times:
    """Milliseconds of each frame."""

    render: list[float] = field(default_factory=list)
    gpu: list[float] = field(default_factory=list)
    submit: list[float] = field(default_factory=list)


def gpu_ms() -> float:
    """Processor time of the threads that play the GPU, so far."""
    total = 0
    for tid in gpu_thread_ids():
        try:
            total += int(Path(f"/proc/self/task/{tid}/schedstat").read_text().split()[0])
        except OSError:  # it has ended, or the system does not tell
            continue
    return total / 1e6


class Painter:
    """Draws frames with the first few parts."""

    def __init__(self, surface: Surface, moving: bool):
        self._surface, self._scene = surface, Scene(surface)
        self._overlay, self._status = Overlay(surface), status()
        surface.wait()  # as in a run, whose words are printed when nothing else is drawn
        self._overlay.lay_out(self._status)
        self._overlay.print()
        self._paints = paints(moving)
        self.parts = [*self._paints, "overlay"]
        self._frames = [cv2.GaussianBlur(noise(*PICTURE[::-1], 3), (0, 0), s) for s in (3, 4)]
        self._number = 0
        self._scene.begin(self._frames[0], 0)
        for paint in self._paints.values():
            paint(self._scene, 0)
        self._scene.settle()  # models are loaded beside the frames

    def frame(self, count: int, times: Times) -> None:
        """One frame with ``count`` parts."""
        self._number += 1
        image = self._frames[self._number % 2]
        self._scene.load(image, self._number)
        began = time.perf_counter()
        self._scene.begin(image, self._number)
        for part in self.parts[:count]:
            if part in self._paints:
                self._paints[part](self._scene, self._number)
        self._scene.render()
        if count == len(self.parts):
            self._overlay.show(self._status)
        submitted, worked = time.perf_counter(), gpu_ms()
        self._surface.finish()
        drawn = time.perf_counter()
        times.submit.append(1e3 * (submitted - began))
        times.render.append(1e3 * (drawn - submitted))
        times.gpu.append(gpu_ms() - worked)
        self._surface.present()
        self._surface.poll()

    def read(self) -> np.ndarray:
        return self._surface.read()


@dataclass(frozen=True)
class Way:
    """How frames are drawn."""

    size: tuple[int, int] = (1280, 720)
    moving: bool = False
    window: bool = False

    def __str__(self) -> str:
        where = " in a window" if self.window else ""
        return f"{self.size[0]}x{self.size[1]}{', the couch moves' * self.moving}{where}"


def measured(way: Way, rounds: int, save: str | None = None) -> tuple[str, dict[str, Times]]:
    """The renderer and the frames of each part. ``save``: a file for a picture of the last one."""
    with plan().confined():
        surface = open_surface(way.size, headless=not way.window, title="frames")
        painter = Painter(surface, way.moving)
        for count in range(1, len(painter.parts) + 1):
            painter.frame(count, Times())
            painter.frame(count, Times())
    found = [Times() for _ in painter.parts]
    for _ in range(rounds):
        for count, times in enumerate(found, 1):
            painter.frame(count, times)
            time.sleep(0.002)
    if save:
        cv2.imwrite(save, painter.read()[..., ::-1])
    renderer = surface.renderer
    surface.close()
    return renderer, dict(zip(painter.parts, found, strict=True))


def told(found: Mapping[str, Times]) -> str:
    """A line for each part."""
    lines, before = [f"{'with':18}{'render':>9}{'more':>8}{'GPU core':>10}{'submit':>9}   ms"], 0.0
    for part, times in found.items():
        row = median(times.render)
        lines.append(
            f"{part:18}{row:9.2f}{row - before:8.2f}{median(times.gpu):10.2f}"
            f"{median(times.submit):9.2f}   best {min(times.render):.2f}"
        )
        before = row
    return "\n".join(lines)


# --- the page -------------------------------------------------------------------------------------

WAYS = (Way(), Way(moving=True), Way((1920, 1080)))
APPS = ("shopping", "emoji", "workspace", "surroundings", "marker")
RUNS = 3


def write(rounds: int) -> None:
    """Renew the page: parts of a frame, then whole runs of apps."""
    by_way = {str(way): measured(way, rounds) for way in WAYS}
    renderer = next(iter(by_way.values()))[0]
    parts = {
        "machine": f"{datetime.date.today():%d %B %Y}, {cpu_name()}, {os.cpu_count()} cores, "
        f"{renderer}; {plan().describe()}",
        "parts": _parts({way: found for way, (_, found) in by_way.items()}),
        "apps": _apps(),
    }
    paths.replace_file(PAGE, filled(TEXT, parts).encode())


def _parts(by_way: Mapping[str, Mapping[str, Times]]) -> str:
    """What each part adds to a frame, in ms, and all of it. Where something moves, a frame depends
    on the one before, which has other parts: only all of it counts."""
    rows: dict[str, list[str]] = {}
    for way, found in by_way.items():
        before = 0.0
        for part, times in found.items():
            row = median(times.render)
            rows.setdefault(part, []).append("" if "moves" in way else f"{row - before:.2f}")
            before = row
        rows.setdefault("**all**", []).append(f"**{before:.2f}**")
        whole = list(found.values())[-1]
        rows.setdefault("best of the rounds", []).append(f"{min(whole.render):.2f}")
        submit = median(whole.submit)
        rows.setdefault("main thread, before", []).append(f"{submit:.2f}")
    return table(["ms", *by_way], [[part, *cells] for part, cells in rows.items()])


def _apps() -> str:
    """Runs of apps as a user starts them, least and most of each figure."""
    runs: dict[str, list[Mapping[str, Any]]] = {app: [] for app in APPS}
    for _ in range(RUNS):
        for app, found in runs.items():
            command = ["run", app, "--headless", "--size", "1280x720", "--seconds", "12", "--json"]
            done = subprocess.run(
                [sys.executable, "-m", "heimdall", *command],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            found.append(json.loads(done.stdout))
    figures: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
        "fps": lambda run: run["fps"]["mean"],
        "interval p99, ms": lambda run: run["frame_interval_ms"]["p99"],
        "longest, the start's too": lambda run: run["longest_interval_ms"],
        "late frames": lambda run: run["late_frames"],
        "render p50": lambda run: run["render_ms"]["p50"],
        "render p99": lambda run: run["render_ms"]["p99"],
        "picture's age p50": lambda run: run["picture_age_ms"]["p50"],
        "age p99": lambda run: run["picture_age_ms"]["p99"],
    }
    rows = [
        [app, *(_spread([figure(run) for run in found]) for figure in figures.values())]
        for app, found in runs.items()
    ]
    return table(["app", *figures], rows)


def _spread(values: Sequence[float]) -> str:
    least, most = (f"{each:.4g}" for each in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", default="1280x720", help="of the frames, WxH")
    parser.add_argument("--window", action="store_true", help="in a window")
    parser.add_argument("--moving", action="store_true", help="the couch moves in each frame")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--save", help="a picture of the last frame, as a PNG file")
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    options = parser.parse_args()
    if options.write:
        write(options.rounds)
        return
    width, height = map(int, options.size.split("x"))
    way = Way((width, height), options.moving, options.window)
    renderer, found = measured(way, options.rounds, options.save)
    print(f"{cpu_name()}, {os.cpu_count()} cores; {renderer}; {plan().describe()}")
    print(told(found))


if __name__ == "__main__":
    main()
