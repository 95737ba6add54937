"""What beginning anew is worth: ``python -m benchmarks.freshness [--live WAY] [SCENARIO ...]``.

Plays scenarios on a simulated phone, looking at bundled clips, with inferences that begin anew on
newer frames (``-replace``) and without, and looks at what would be on screen: how old it is, and
its intersection over union with what the network finds on the very frame (section 9.6 of the
Heimdall paper). A reel changes from clip to clip every 2.3 s, which no clip does. Decides
``App.admission``; docs/laboratory/freshness.md has what came of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from heimdall import Session
from heimdall.app.options import RunArguments
from heimdall.capture import Frame
from heimdall.engine import open_engine
from heimdall.lab.bench.accuracy import Inference, on_screen, score
from heimdall.lab.bench.footage import results_of
from heimdall.lab.likeness import boxes_iou, mask_iou
from heimdall.lab.simulator.run import WARM_UP_NS
from heimdall.lab.simulator.simulate import prepare
from heimdall.lab.simulator.watched import open_watched
from heimdall.models.catalog import open_pipeline
from heimdall.models.results import Detection, Hand
from heimdall.runtime.telemetry.jobs import ModelFigures
from heimdall.runtime.telemetry.statistics import interval
from heimdall.vocabulary.enums import Admission

FPS = 30
SIZE = (640, 360)
WARM_FRAMES = 150
FOOTAGE = ("single_face", "box", "cup", "single_face+box+cup")
SYSTEMS = ("max-total", "max-total-replace")
# The network that stands for a DNN whose results can be compared.
MODELS = {
    "emoji": {"face": "centerface", "segment": "selfie"},
    "shopping": {"detect": "nanodet", "segment": "selfie", "hand": "hand"},
    "surroundings": {"detect": "nanodet", "face": "centerface"},
    "workspace": {"hand": "hand"},
    "criminal": {"faces": "centerface"},
}


@dataclass
class Shown(ModelFigures):
    """Figures that remember each result: when its frame was taken, and when it was there."""

    results_ns: list[tuple[int, int]] = field(default_factory=list)

    def shown(self, taken_ns: int, ready_ns: int) -> None:
        super().shown(taken_ns, ready_ns)
        self.results_ns.append((taken_ns, ready_ns))


@cache
def pictures_of(path: Path) -> list[np.ndarray]:
    """All pictures of a clip, of one size whatever the clip's."""
    capture, found = cv2.VideoCapture(str(path)), []
    while (read := capture.read())[0]:
        found.append(cv2.resize(read[1], SIZE, interpolation=cv2.INTER_AREA))
    return found


@cache
def truth_of(model: str, path: Path) -> list[Any]:
    """What the network finds in each of them."""
    engine = open_engine("onnxruntime")
    return [_boxed(each) for each in results_of(open_pipeline(model), engine, pictures_of(path))]


def _boxed(result: Any) -> Any:
    """Hands as the boxes around their points; all else as it is."""
    if isinstance(result, list) and result and isinstance(result[0], Hand):
        spans = [
            (hand.points[:, :2].min(axis=0), hand.points[:, :2].max(axis=0)) for hand in result
        ]
        return [Detection("hand", 1.0, (*low.tolist(), *high.tolist())) for low, high in spans]
    return result


@cache
def iou(model: str, drawn: tuple[Path, int], there: tuple[Path, int]) -> float:
    """Of what was found in one picture with what is in another."""
    one, other = (truth_of(model, path)[index] for path, index in (drawn, there))
    return boxes_iou(one, other) if isinstance(other, list) else mask_iou(one, other)


def run(scenario: str, device: str, system: str, footage: str, seconds: float, seed: int) -> Any:
    """The figures of a run, by DNN."""
    experiment = prepare(
        scenario, device, system, seconds=seconds, variations={"luminance": footage}
    )
    begun = experiment.begin(seed)
    dnns = begun.figures.dnns
    for name, each in dnns.items():
        dnns[name] = Shown(**{f.name: getattr(each, f.name) for f in fields(ModelFigures)})
    begun.run(seconds)
    return begun.figures


def watched(
    results_ns: Sequence[tuple[int, int]], times_ns: Sequence[int]
) -> list[tuple[int, int]]:
    """(time, when the frame was taken whose result is on screen), from the first result on."""
    found, newest, left = [], None, list(results_ns)
    for now_ns in times_ns:
        while left and left[0][1] <= now_ns:
            newest = left.pop(0)[0]
        if newest is not None:
            found.append((now_ns, newest))
    return found


def judge(figures: Any, scenario: str, footage: str, seconds: float) -> dict[str, list[float]]:
    """By DNN: mean age in ms, mean IoU, inferences, how many began anew."""
    clip = open_watched(footage)
    count = round(seconds * FPS)
    times = [WARM_UP_NS + round(index * 1e9 / FPS) for index in range(count)]
    found = {}
    for dnn, model in MODELS[scenario].items():
        each = figures.dnns[dnn]
        pairs = watched(each.results_ns, times)
        age_ms = float(np.mean([now - taken for now, taken in pairs])) / 1e6
        values = [iou(model, clip.place(taken), clip.place(now)) for now, taken in pairs]
        found[dnn] = [age_ms, float(np.mean(values)), len(each.latencies_ns), each.begun_anew]
    return found


def carried(figures: Any, scenario: str, footage: str, seconds: float) -> dict[str, float]:
    """By DNN: mean IoU of what ``App.tracked`` gives."""
    clip, found = open_watched(footage), {}
    begin = WARM_UP_NS - 1_000_000_000  # so that there is something to carry
    times = [begin + round(index * 1e9 / FPS) for index in range(round((seconds + 1) * FPS))]
    places = [clip.place(each) for each in times]
    frames = [
        Frame(pictures_of(path)[index], number, times[number] - begin)
        for number, (path, index) in enumerate(places)
    ]
    for dnn, model in MODELS[scenario].items():
        truth = [truth_of(model, path)[index] for path, index in places]
        seen = [
            Inference((taken - begin) / 1e6, (ready - begin) / 1e6)
            for taken, ready in figures.dnns[dnn].results_ns
            if taken >= begin
        ]
        found[dnn] = score(on_screen(frames, truth, seen, carry=True), truth).mean
    return found


def live(app: str, admission: str, footage: str, seconds: float) -> dict[str, list[float]]:
    """What ``judge`` gives, of a bundled app that runs on this machine: it is shown a picture each
    frame, and what is on screen is compared on that picture."""
    clip, newest = open_watched(footage), dict.fromkeys(MODELS[app], 0)
    pushed: list[tuple[int, tuple[Path, int]]] = []  # when, and which picture
    seen: dict[str, list[tuple[float, float]]] = {dnn: [] for dnn in newest}

    def arrived(dnn: str, result: Any, frame: Frame) -> None:
        if dnn in newest:
            newest[dnn] = frame.sequence

    options: RunArguments = {"size": SIZE, "overlay": "off", "admission": admission}
    with Session(app, on_result=arrived, process=True, **options) as session:
        warm: int | None = None
        while warm is None or len(pushed) < warm + seconds * FPS:
            place = clip.place(len(pushed) * 1_000_000_000 // FPS)
            session.push(pictures_of(place[0])[place[1]])
            pushed.append((time.perf_counter_ns(), place))
            session.step()
            now_ns = time.perf_counter_ns()
            if warm is None and min(newest.values()) > 0 and len(pushed) >= WARM_FRAMES:
                warm = len(pushed)
            for dnn, sequence in newest.items() if warm is not None else ():
                taken_ns, there = pushed[sequence - 1]
                shown = iou(MODELS[app][dnn], there, place)
                seen[dnn].append(((now_ns - taken_ns) / 1e6, shown))
        summary = session.summary()
    found = {}
    for dnn, pairs in seen.items():
        each = summary.dnns[dnn]
        means = np.mean(pairs, axis=0).tolist()
        found[dnn] = [*means, each.inferences, each.begun_anew]
    found["fps"] = [summary.fps.mean or 0.0, summary.late_frames, 0, 0]
    return found


def live_lines(app: str, arguments: argparse.Namespace) -> Iterator[str]:
    """Of one run: a second one in the same process finds another machine than the first."""
    admission = arguments.live
    found = live(app, admission, arguments.footage[-1], arguments.seconds)
    for dnn, (age_ms, shown, inferences, anew) in found.items():
        cells = [app, dnn, admission, f"{age_ms:.1f}", f"{shown:.3f}"]
        yield "| " + " | ".join([*cells, f"{inferences:.0f}", f"{anew:.0f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", default=list(MODELS))
    parser.add_argument("--device", default="lg-v50")
    parser.add_argument("--footage", default=",".join(FOOTAGE), type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument(
        "--live", choices=Admission.values(), help="a bundled app on this machine, that way, once"
    )
    parser.add_argument("--carried", action="store_true", help="of the first seed, as carried, too")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    if arguments.live:
        print("| app | DNN | admission | age ms | IoU | inferences | began anew |")
        for app in arguments.scenarios:
            for line in live_lines(app, arguments):
                print(line, flush=True)
        return
    print("| scenario | footage | DNN | age ms | with | IoU | with | difference | began anew |")
    print("|---|---|---|---|---|---|---|---|---|")
    for scenario in arguments.scenarios:
        for footage in arguments.footage:
            for line in lines(scenario, footage, arguments):
                print(line, flush=True)


def lines(scenario: str, footage: str, arguments: argparse.Namespace) -> list[str]:
    """Of the table: each DNN without and with replacing, and the mean difference over seeds with
    its interval."""
    seconds, found = arguments.seconds, {}
    for system in SYSTEMS:
        runs = [
            run(scenario, arguments.device, system, footage, seconds, seed)
            for seed in range(arguments.seeds)
        ]
        found[system] = [judge(each, scenario, footage, seconds) for each in runs]
        if arguments.carried:
            tracked = carried(runs[0], scenario, footage, seconds)
            print(f"<!-- {scenario} {footage} {system} carried {tracked} -->")
    text = []
    for dnn in MODELS[scenario]:
        off, on = (np.array([each[dnn] for each in found[system]]) for system in SYSTEMS)
        (age, shown, _, _), (new_age, new_shown, _, anew) = off.mean(axis=0), on.mean(axis=0)
        change = interval(list(on[:, 1] - off[:, 1]))
        sure = f"{change.mean:+.3f} ({change.low:+.3f} to {change.high:+.3f})"
        text.append(
            f"| {scenario} | {footage} | {dnn} | {age:.0f} | {new_age:.0f} | {shown:.3f} | "
            f"{new_shown:.3f} | {sure} | {anew:.0f} |"
        )
    return text


if __name__ == "__main__":
    main()
