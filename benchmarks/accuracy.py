"""What is on screen against what is there: ``python benchmarks/accuracy.py [--write] [--json]``.

Section 9.6 of the Heimdall paper: the networks, run on every frame, give the truth. The latencies
are those of the AR emoji scenario simulated on a phone, one system after the other; each result is
shown when it would have been ready there, as it came and carried along by ``heimdall.tracking``.
``--write`` renews these parts of docs/laboratory/accuracy.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2

from heimdall.capture import Frame
from heimdall.engine import open_engine
from heimdall.lab.bench.accuracy import Inference, Score, back_to_back, in_turn, on_screen, score
from heimdall.lab.bench.footage import frames, read_clip, results_of, with_moving_camera
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.simulate import open_machine, simulated_run
from heimdall.models.catalog import open_pipeline
from heimdall.system import paths
from heimdall.system.cpu import cpu_name

FPS = 30.0
SYSTEMS = ("multithread", "fixed-5", "max-total")
PAPER = {"face": ("0.52", "0.57", "0.63"), "segment": ("0.93", "0.92", "0.90")}  # Table 4
LATENCIES_MS = (100.0, 333.0, 1000.0)
PAGE = paths.ROOT / "docs" / "laboratory" / "accuracy.md"
OTHERS = "\n## Networks against their references"  # from there on the page is of other commands


@dataclass(frozen=True)
class Footage:
    """A DNN of the scenario, the network that stands for it, and the clip that it watches."""

    dnn: str
    model: str
    clip: str
    moving: bool = False

    @property
    def name(self) -> str:
        return f"{self.model} on {self.clip}" + (", moving camera" if self.moving else "")


FOOTAGE = (
    Footage("face", "centerface", "single_face.mp4"),
    Footage("face", "centerface", "single_face.mp4", moving=True),
    Footage("segment", "selfie", "single_face.mp4"),
    Footage("segment", "selfie", "single_face.mp4", moving=True),
    Footage("segment", "selfie", "box.mp4"),
    Footage("segment", "selfie", "cup.mp4"),
)


def simulated_ms(scenario: str, device: str, system: str, seconds: float) -> dict[str, list[float]]:
    """End-to-end latencies of each DNN, one after the other, in ms."""
    loaded = load_scenario(scenario)
    machine, dnns = open_machine(loaded, device)
    run = simulated_run(dnns, machine, parse_system(system), fps=loaded.fps)
    run.run(seconds)
    return {
        name: [ns / 1e6 for ns in figures.end_to_end_ns]
        for name, figures in run.figures.dnns.items()
    }


def compared(
    watched: Sequence[Frame], truth: Sequence[Any], inferences: Sequence[Inference]
) -> dict[str, Any]:
    """IoU of results as they came, and carried; and what carrying takes a frame."""
    held = score(on_screen(watched, truth, inferences, carry=False), truth)
    began_s = time.perf_counter()
    shown = on_screen(watched, truth, inferences, carry=True)
    carry_ms = 1e3 * (time.perf_counter() - began_s) / len(watched)
    latency_ms = sum(each.shown_ms - each.requested_ms for each in inferences) / len(inferences)
    return {
        "latency_ms": round(latency_ms, 1),
        "held": _rounded(held),
        "carried": _rounded(score(shown, truth)),
        "carry_ms": round(carry_ms, 2),
    }


def _rounded(found: Score) -> dict[str, float]:
    return {"mean": round(found.mean, 3), "std": round(found.std, 3)}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """All footage under all systems and latencies."""
    latencies = {
        system: simulated_ms(arguments.scenario, arguments.device, system, arguments.seconds)
        for system in arguments.systems
    }
    engine, found = open_engine("onnxruntime"), []
    for footage in FOOTAGE:
        print(f"{footage.name} ...", file=sys.stderr, flush=True)
        pictures = read_clip(paths.ASSETS / "media" / footage.clip, arguments.seconds)
        if footage.moving:
            pictures = with_moving_camera(pictures, FPS)
        truth = list(results_of(open_pipeline(footage.model), engine, pictures))
        watched = frames(pictures, FPS)
        plans = {
            **{name: in_turn(each[footage.dnn]) for name, each in latencies.items()},
            **{f"{ms:g} ms": back_to_back(ms, arguments.seconds) for ms in LATENCIES_MS},
        }
        next_frame = score([None, *truth[:-1]], truth)
        found.append(
            {
                "footage": footage.name,
                "dnn": footage.dnn,
                "one_frame_old": _rounded(next_frame),
                "results": {name: compared(watched, truth, plan) for name, plan in plans.items()},
            }
        )
    return {"device": arguments.device, "scenario": arguments.scenario, "footage": found}


def page(measured: dict[str, Any], systems: Sequence[str]) -> str:
    """docs/laboratory/accuracy.md."""
    phone = ["| | IoU in the paper | footage | latency ms | as it came | carried |"]
    phone.append("|---|---|---|---|---|---|")
    fixed = [
        "| footage | one frame old | " + " | ".join(f"{ms:g} ms" for ms in LATENCIES_MS) + " |"
    ]
    fixed.append("|---" * (2 + len(LATENCIES_MS)) + "|")
    for index, system in enumerate(systems):
        for each in measured["footage"]:
            result = each["results"][system]
            paper = PAPER[each["dnn"]][index] if tuple(systems) == SYSTEMS else ""
            cells = [system, paper, each["footage"], f"{result['latency_ms']:.0f}"]
            phone.append("| " + " | ".join([*cells, *map(_cell, _pair(result))]) + " |")
    for each in measured["footage"]:
        cells = [each["footage"], f"{each['one_frame_old']['mean']:.3f}"]
        for ms in LATENCIES_MS:
            held, carried = _pair(each["results"][f"{ms:g} ms"])
            cells.append(f"{held['mean']:.3f} → {carried['mean']:.3f}")
        fixed.append("| " + " | ".join(cells) + " |")
    when = f"{datetime.date.today():%d %B %Y}, {cpu_name()}"
    tables = {"phone": "\n".join(phone), "fixed": "\n".join(fixed)}
    return TEXT.format(when=when, **tables, **measured)


def _pair(result: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    return result["held"], result["carried"]


def _cell(found: dict[str, float]) -> str:
    return f"{found['mean']:.2f} ± {found['std']:.2f}"


TEXT = """# Accuracy of what is on screen

For whoever asks how far what is on screen lags behind the picture, and what carrying results
along gains.

Written by `python benchmarks/accuracy.py --write` ({when}), down to the networks' references.
Latencies are simulated, and networks give the same everywhere but for rounding, so another machine
gives nearly the same.

A network's result is about a frame of the past. As in section 9.6 of the Heimdall paper, the
network run on every frame is the truth, and the figure is the intersection over union (IoU) of
what is on screen with it, frame by frame, from the first result on: of boxes, or of mask cells
above 0.5. A face that is missed, and a box too many, count as 0.

*As it came*: the latest result stays where it was found. *Carried*: `App.tracked` moves it with
the picture. Clips play to and fro, so that they have no cut. *Moving camera*: the same clip
through a view of three quarters of each side that sways, rolls by 4 degrees and zooms by 6%, as a
phone in a hand does; the networks ran on these pictures too.

## The paper's conditions

Latencies are those of scenario {scenario} simulated on {device} (`heimdall simulate`), end to end
and one after the other. The paper's videos (300-VW, a person who talks) are not redistributable,
so its figures (Table 4) are of other footage: compare systems, not single figures.

{phone}

## By latency

IoU as it came → carried, for results of a constant latency, each requested when the one before is
shown. In the paper, faces ran about once a second under the baseline and three times a second
under Heimdall. *One frame old*: how well the network agrees with itself from one frame to the
next. Where that is low, on hands with things in them, it changes its mind between frames, and no
compensation can make up for that.

{fixed}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="emoji", help="with DNNs named face and segment")
    parser.add_argument("--device", default="lg-v50", help="whose latencies")
    parser.add_argument("--systems", default=",".join(SYSTEMS), type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=12.0, help="of footage and latencies")
    parser.add_argument("--json", action="store_true", help="one object instead of the page")
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    measured = measure(arguments)
    text = page(measured, arguments.systems)
    if arguments.write:
        before = PAGE.read_text(encoding="utf-8")
        paths.replace_file(PAGE, (text + before[before.index(OTHERS) :]).encode())
    print(json.dumps(measured, indent=1) if arguments.json else text)


if __name__ == "__main__":
    main()
