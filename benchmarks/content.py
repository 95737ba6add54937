"""Which content variation shows the truth better: ``python benchmarks/content.py [--write]``.

Plays the AR emoji scenario on a simulated phone, its coordinator told the luminance changes of
real clips, by cells and by pixels, with ``content="paper"`` (Eq. 2 taken literally) and with
``"aging"``; then looks at what would be on screen, as benchmarks/accuracy.py does. Decides
``App.content`` and ``App.luminance``.
``--write`` renews docs/laboratory/content.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import cv2
import numpy as np
from luminance import FPS, costs, named, pictures_of  # its neighbour: scripts see their own folder
from luminance import rows as measures

from heimdall.capture import Frame
from heimdall.coordinator.coordinator import Coordinator
from heimdall.engine import open_engine
from heimdall.lab.bench.accuracy import Inference, in_turn, on_screen, score
from heimdall.lab.bench.footage import frames, results_of
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.coordinated import CoordinatedRun
from heimdall.lab.simulator.parallel import results
from heimdall.lab.simulator.simulate import open_machine
from heimdall.models.catalog import open_pipeline
from heimdall.models.luminance import MEASURES, luminance_difference
from heimdall.system import paths
from heimdall.system.cpu import cpu_name
from heimdall.vocabulary.enums import Content, Luminance

CLIP = "single_face.mp4"
PAGE = paths.ROOT / "docs" / "laboratory" / "content.md"
POLICIES = ("max-total", "max-min")
SEEDS = 16
CARRIED_SEEDS = 1  # following a picture takes longer than all the rest
TEXT = """# Content variation

For whoever asks whether a changing scene should count in scheduling, and how to measure the change.

Written by `python benchmarks/content.py --write`.

The Heimdall paper lets the luminance change since a DNN's last inference into its utility (Eqs. 2
and 4). Taken literally (`content = "paper"`) that has no influence under max-total and delays a DNN
of a changing scene under max-min, as `heimdall/schedulers/utility.py` explains. `content = "aging"`
lets results of a changing scene lose utility faster. Eq. 4 sums over all pixels of a frame
(`luminance = "pixels"`), ours over means of 96 x 54 cells (`luminance = "cells"`).

## What C says of real clips

Of the bundled clips, {clip_seconds:g} s each, to and fro: the median of C between frames so far
apart (5th to 95th percentile), and how well its order agrees (Spearman's rank correlation, over all
pairs) with that of 1 - SSIM, which the paper says it follows, and of the IoU that a result so old
has lost: `python benchmarks/luminance.py`.

{measures}

What it costs an inference on one core of {machine}, in the pool:

{costs}

So Eq. 4 does follow SSIM, and the loss of accuracy, by either sum alike. Pixels add the sensor's
noise, a constant of one to seven millions here (half a grey level to three); cells average it out.
Cells take the same time at every size,
pixels that of reading each one: less up to 720p, more above.

## What they do to scheduling

The AR emoji scenario on a simulated {device}, its coordinator told the luminance changes of the
clip; means over {seeds} seeds (least to most), IoU of what is on screen as in
[accuracy.md](accuracy.md), as it came, and carried (one seed).

| footage | policy | content | sum of | latency ms | as it came | carried |
|---|---|---|---|---|---|---|
{table}

Latencies of different DNNs belong together: what one wins, another may lose. {finding}
"""

FINDING = """Under max-total,
the default policy, "paper" changes nothing, by cells or by pixels: the same chunks run. Everything
else lies within the spread of the seeds, under either policy: on these clips it hardly matters how
a changing scene counts, or of what its change is summed (a single seed seemed to say otherwise).
`App.content` stays "aging", which costs nothing here, and `App.luminance` "cells"."""
CLIP_SECONDS = 8.0
MODELS = {"face": "centerface", "segment": "selfie"}


@dataclass(frozen=True)
class Pictures:
    """What DNNs look at: the luminance of every frame of a clip."""

    luminance: Sequence[np.ndarray]

    def difference(self, before_ns: int | None, now_ns: int) -> float:
        """C of Eq. 4 between two times."""
        if before_ns is None:
            return 0.0
        count = len(self.luminance)
        now, before = (int(ns * FPS / 1e9) % count for ns in (now_ns, before_ns))
        return luminance_difference(self.luminance[now], self.luminance[before])


class ContentRun(CoordinatedRun):
    """A simulated run with another content variation than the apps'."""

    def __init__(self, content: str, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.coordinator = Coordinator(
            [dnn.plan for dnn in self.dnns.values()],
            scheduler=self.coordinator.config()["scheduler"],
            frame_interval_ns=self.interval_ns,
            content=content,
        )
        self._loop = self.frame_loop(self.coordinator)
        self._before = self.coordinator.snapshot(0)


def inferences(
    watched: Pictures, scheduler: str, content: str, device: str, seed: int
) -> dict[str, list[Inference]]:
    """When each DNN would have looked and shown what it found."""
    machine, dnns = open_machine(load_scenario("emoji"), device)
    looking = [replace(dnn, watched=watched) for dnn in dnns]
    run = ContentRun(content, looking, machine, parse_system(scheduler), fps=FPS, seed=seed)
    run.run(len(watched.luminance) / FPS)
    return {
        name: in_turn(ns / 1e6 for ns in figures.end_to_end_ns)
        for name, figures in run.figures.dnns.items()
    }


def rows(device: str, seconds: float, seeds: int) -> Iterator[str]:
    """Lines of the table: both clips, networks, policies, kinds of content variation and sums."""
    lines = dict(results(rows_of, [(moving, device, seconds, seeds) for moving in (False, True)]))
    for index in range(len(lines)):
        yield from lines[index]


def rows_of(moving: bool, device: str, seconds: float, seeds: int) -> list[str]:
    """Those of the clip, or of what a moving camera sees of it."""
    cv2.setNumThreads(1)
    engine, lines = open_engine("onnxruntime"), []
    pictures = pictures_of(CLIP, moving, seconds)
    watched = frames(pictures, FPS)
    seen = {name: Pictures([of(each) for each in pictures]) for name, of in MEASURES.items()}
    truths = {
        dnn: list(results_of(open_pipeline(model), engine, pictures))
        for dnn, model in MODELS.items()
    }
    for scheduler, content, luminance in product(POLICIES, Content, Luminance):
        plans = [
            inferences(seen[luminance], scheduler, content, device, seed) for seed in range(seeds)
        ]
        for dnn, truth in truths.items():
            cells = [f"{MODELS[dnn]} on {named(CLIP, moving)}", scheduler, content, luminance]
            lines.append("| " + " | ".join([*cells, *figures(watched, truth, plans, dnn)]) + " |")
    return lines


def figures(
    watched: Sequence[Frame],
    truth: Sequence[Any],
    plans: Sequence[dict[str, list[Inference]]],
    dnn: str,
) -> list[str]:
    """Latency, and IoU as it came and carried, of one DNN over the runs of all seeds."""
    latencies, held, carried = [], [], []
    for seed, plan in enumerate(plans):
        latencies += [float(np.mean([each.shown_ms - each.requested_ms for each in plan[dnn]]))]
        held.append(score(on_screen(watched, truth, plan[dnn], carry=False), truth).mean)
        if seed < CARRIED_SEEDS:
            carried.append(score(on_screen(watched, truth, plan[dnn], carry=True), truth).mean)
    return [_cell(latencies, 0), _cell(held, 3), f"{np.mean(carried):.3f}"]


def _cell(values: Sequence[float], digits: int) -> str:
    return f"{np.mean(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="lg-v50", help="whose latencies")
    parser.add_argument("--seconds", type=float, default=8.0, help="of footage and latencies")
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--table", action="store_true", help="only what they do to scheduling")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    if arguments.table:
        for row in rows(arguments.device, arguments.seconds, arguments.seeds):
            print(row, flush=True)
        return
    text = TEXT.format(
        clip_seconds=CLIP_SECONDS,
        measures="\n".join(measures(CLIP_SECONDS)),
        costs="\n".join(costs()),
        machine=cpu_name(),
        device=arguments.device,
        seeds=arguments.seeds,
        table="\n".join(rows(arguments.device, arguments.seconds, arguments.seeds)),
        finding=FINDING,
    )
    if arguments.write:
        paths.replace_file(PAGE, text.encode())
    print(text)


if __name__ == "__main__":
    main()
