"""Which content variation shows the truth better: ``python benchmarks/content.py [--write]``.

Plays the AR emoji scenario on a simulated phone, its coordinator told the luminance changes of
real clips, once with ``content="paper"`` (Eq. 4 taken literally) and once with ``"aging"``; then
looks at what would be on screen, as benchmarks/accuracy.py does. Decides ``App.content``.
``--write`` renews docs/content.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import cv2
import numpy as np
from accuracy import FPS, Footage, compared  # its neighbour: scripts see their own folder

from heimdall.bench.accuracy import Inference, in_turn
from heimdall.bench.footage import frames, read_clip, results_of, with_moving_camera
from heimdall.bench.scenario import load_scenario
from heimdall.bench.systems import parse_system
from heimdall.coordinator.coordinator import Coordinator
from heimdall.engine import open_engine
from heimdall.models.catalog import open_pipeline
from heimdall.models.luminance import luminance_difference, luminance_grid
from heimdall.schedulers import SCHEDULERS
from heimdall.simulator.coordinated import CoordinatedRun
from heimdall.simulator.simulate import open_machine
from heimdall.system import paths
from heimdall.vocabulary.enums import Content
from heimdall.vocabulary.events import Event, InputReady

CLIP = "single_face.mp4"
PAGE = paths.ROOT / "docs" / "content.md"
TEXT = """# Content variation

Written by `python benchmarks/content.py --write`.

The Heimdall paper lets the luminance change since a DNN's last inference into its utility (Eq. 4).
Taken literally (`content = "paper"`) that has no influence under max-total and delays a DNN of a
changing scene under max-min, as `heimdall/schedulers/utility.py` explains. `content = "aging"` lets
results of a changing scene lose utility faster. Which shows the truth better? The AR emoji scenario
on a simulated {device}, its coordinator told the luminance changes of the clip; IoU of what is
on screen as in [accuracy.md](accuracy.md), as it came and carried.

| footage | policy | content | latency ms | as it came | carried |
|---|---|---|---|---|---|
{table}

Latencies of different DNNs belong together: what one wins, another may lose. `App.content` is
"aging" by default: under max-total, the default policy, a moving camera then shows both networks'
results better, and a still one costs less than 0.01.
"""

MODELS = {"face": "centerface", "segment": "selfie"}


class WatchingRun(CoordinatedRun):
    """A simulated run whose DNNs watch ``grids``, the luminance of every frame of a clip."""

    def __init__(self, grids: Sequence[np.ndarray], content: str, *given: Any, **options: Any):
        super().__init__(*given, **options)
        self._grids, self._seen = grids, dict.fromkeys(self.dnns, grids[0])
        self._job_dnn: dict[int, str] = {}
        self.coordinator = Coordinator(
            [dnn.plan for dnn in self.dnns.values()],
            scheduler=self.coordinator.config()["scheduler"],
            frame_interval_ns=self.interval_ns,
            content=content,
        )
        self._before = self.coordinator.snapshot(0)

    def _prepare(self, action: Any) -> None:
        self._job_dnn[action.job] = action.dnn
        super()._prepare(action)

    def _report(self, at_ns: int, message: Event | Any) -> None:
        if isinstance(message, InputReady):
            dnn = self._job_dnn.pop(message.job)
            grid = self._grids[int(self.now_ns * FPS / 1e9) % len(self._grids)]
            change = luminance_difference(grid, self._seen[dnn])
            self._seen[dnn] = grid
            message = InputReady(message.job, message.tasks, change)
        super()._report(at_ns, message)


def inferences(
    pictures: Sequence[np.ndarray], scheduler: str, content: str, device: str
) -> dict[str, list[Inference]]:
    """When each DNN would have looked and shown what it found."""
    scenario = load_scenario("emoji")
    machine, dnns = open_machine(scenario, device)
    grids = [luminance_grid(picture) for picture in pictures]
    run = WatchingRun(grids, content, dnns, machine, parse_system(scheduler), fps=FPS, seed=0)
    run.run(len(pictures) / FPS)
    return {
        name: in_turn(ns / 1e6 for ns in figures.end_to_end_ns)
        for name, figures in run.figures.dnns.items()
    }


def rows(device: str, seconds: float) -> Iterator[str]:
    """Lines of the table: both clips, networks, policies and kinds of content variation."""
    engine = open_engine("onnxruntime")
    for moving in (False, True):
        pictures = read_clip(paths.ASSETS / "media" / CLIP, seconds)
        if moving:
            pictures = with_moving_camera(pictures, FPS)
        watched = frames(pictures, FPS)
        for dnn, model in MODELS.items():
            truth = list(results_of(open_pipeline(model), engine, pictures))
            for scheduler, content in product(sorted(SCHEDULERS, reverse=True), Content):
                plan = inferences(pictures, scheduler, content, device)[dnn]
                found = compared(watched, truth, plan)
                cells = [Footage(dnn, model, CLIP, moving).name, scheduler, content]
                cells += [f"{found['latency_ms']:.0f}"]
                cells += [f"{found[how]['mean']:.3f}" for how in ("held", "carried")]
                yield "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="lg-v50", help="whose latencies")
    parser.add_argument("--seconds", type=float, default=12.0, help="of footage and latencies")
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    table = "\n".join(rows(arguments.device, arguments.seconds))
    text = TEXT.format(device=arguments.device, table=table)
    if arguments.write:
        paths.replace_file(PAGE, text.encode())
    print(text)


if __name__ == "__main__":
    main()
