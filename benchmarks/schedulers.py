"""Every system on its own ground and on the others': ``python -m benchmarks.schedulers [--write]``.

Simulates the scenarios of SPLIT's, Band's and Pantheon's papers under their systems and baselines,
and an app under all policies, over seeds. ``--write`` renews docs/laboratory/schedulers.md, whose
words, and figures of live runs with their commands, are in benchmarks/schedulers.md.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import pantheon
from benchmarks.simulated import Kept, Runs, Simulated, cell, filled, missed, table
from heimdall.errors import ConfigError
from heimdall.lab.bench.systems import system_names
from heimdall.runtime.telemetry.statistics import interval
from heimdall.system import paths

PAGE = paths.ROOT / "docs" / "laboratory" / "schedulers.md"
TEXT = paths.ROOT / "benchmarks" / "schedulers.md"
KEPT = Path("out") / "schedulers.jsonl"
SEEDS = 16  # a quarter of them for an app and for Pantheon, whose minutes take seconds
APP = "shopping"
SPLIT = [f"split-{number}" for number in range(1, 7)]
SPLIT_SYSTEMS = ("response-ratio", "response-ratio-nosplit", "fcfs", "prema", "rt-a", "max-total")
SHORT, LONG = ("YOLOv2", "GoogLeNet", "GPT-2"), ("ResNet50", "VGG19")
BAND_SYSTEMS = (
    "heft",
    "heft-nosubgraphs",
    "lst",
    "lst-nosubgraphs",
    "shortest",
    "round-robin",
    "fixed-many",
    "fixed",
)
APP_SYSTEMS = (
    "max-total",
    "max-min",
    "response-ratio",
    "fcfs",
    "prema",
    "rt-a",
    "lst",
    "shortest",
    "multithread",
)
MULTIPLIERS = (1, 2, 3, 4, 5)  # as Fig. 18
BAND_S = 10.0  # of frames, or requests, a run
TOP = ("top-mixed", "top-240")
TOP_S = 1.0


# --- SPLIT ----------------------------------------------------------------------------------------


def violated(multiple: str) -> Callable[[Mapping[str, Any]], float]:
    """Percent of all requests that were dropped or took longer than that multiple."""
    return lambda run: 100 * run["violations"][multiple]


def violations_of_split(simulated: Simulated) -> str:
    """At alpha = 4, by scenario."""
    rows = [
        [f"`{system}`", *(simulated.over(violated("4"), name, system) for name in SPLIT)]
        for system in SPLIT_SYSTEMS
    ]
    return table(["over 4x, %", *SPLIT], rows)


def jitter_of_split(simulated: Simulated) -> str:
    """Of short requests: how much less than under each baseline, at low and at high load."""
    rows = []
    for baseline, low, high in (("fcfs", 55.3, 56.0), ("prema", 46.8, 50.3), ("rt-a", 68.9, 69.3)):
        row = [f"`{baseline}`"]
        for scenario, paper in (("split-1", low), ("split-6", high)):
            less = [
                100 * (1 - ours / theirs)
                for ours, theirs in zip(
                    _short_jitters(simulated.runs(scenario, "response-ratio")),
                    _short_jitters(simulated.runs(scenario, baseline)),
                    strict=True,
                )
            ]
            row += [cell(interval(less)), f"{paper:g}"]
        rows.append(row)
    columns = ["jitter of short requests less than", "split-1, %", "paper", "split-6, %", "paper"]
    return table(columns, rows)


def _short_jitters(runs: Runs) -> Iterator[float]:
    for run in runs:
        yield statistics.fmean(run["requests"][name]["jitter_ms"] for name in SHORT)


def long_of_split(simulated: Simulated) -> str:
    """What long requests pay: jitter in ms."""
    asked = [(scenario, name) for scenario in ("split-1", "split-6") for name in LONG]

    def jitter_of(model: str) -> Callable[[Mapping[str, Any]], float]:
        return lambda run: float(run["requests"][model]["jitter_ms"])

    rows = [
        [
            f"`{system}`",
            *(simulated.over(jitter_of(name), scenario, system) for scenario, name in asked),
        ]
        for system in SPLIT_SYSTEMS
    ]
    columns = [f"{scenario}, {name}" for scenario, name in asked]
    return table(["jitter of long requests, ms", *columns], rows)


# --- Band -----------------------------------------------------------------------------------------


def rounds(run: Mapping[str, Any]) -> float:
    """Frames a second of its closed loop."""
    (loop,) = run["frames"].values()
    return float(loop["fps"])


def frames_of_band(simulated: Simulated) -> str:
    """Processed frames a second."""
    rows = []
    for system in BAND_SYSTEMS:
        row = [f"`{system}`"]
        for scenario in ("band-eagleeye", "band-distream"):
            row += [simulated.over(rounds, scenario, system, seconds=BAND_S)]
        rows.append(row)
    return table(["frames a second", "band-eagleeye", "band-distream"], rows)


def ratios_of_band(simulated: Simulated) -> str:
    """The paper's headlines."""
    rows = []
    asked = (
        ("band-eagleeye", "heft", "fixed", "4.53"),
        ("band-eagleeye", "heft", "fixed-many", "2.42"),
        ("band-distream", "heft", "fixed", "3.18"),
        ("band-distream", "heft", "fixed-many", "3.22"),
    )
    for scenario, ours, theirs, paper in asked:
        mine, others = (simulated.runs(scenario, each, seconds=BAND_S) for each in (ours, theirs))
        pairs = zip(mine, others, strict=True)
        found = interval([rounds(one) / rounds(other) for one, other in pairs])
        rows.append([scenario, f"`{ours}` over `{theirs}`", f"{cell(found, 2)}x", f"{paper}x"])
    return table(["scenario", "frames a second", "here", "paper, at most"], rows)


def slos_of_band(simulated: Simulated) -> str:
    """SLOs met by multiplier."""

    def met(run: Mapping[str, Any]) -> float:
        return 100 * (1 - run["violations"]["slo"])

    rows = [
        [
            f"`{system}`",
            *(
                simulated.over(
                    met,
                    "band-lifelogging",
                    system,
                    seconds=BAND_S,
                    variations={"slo_multiplier": multiplier},
                )
                for multiplier in MULTIPLIERS
            ),
        ]
        for system in BAND_SYSTEMS
    ]
    return table(["SLOs met, %", *(f"{each}x" for each in MULTIPLIERS)], rows)


def noise_of_band(simulated: Simulated) -> str:
    """What wrong estimates cost."""
    rows = []
    for system in ("heft", "lst"):
        asked = {"seconds": BAND_S}
        right = simulated.runs("band-eagleeye", system, **asked)
        wrong = simulated.runs("band-eagleeye", system, variations={"estimates": 0.3}, **asked)
        pairs = zip(right, wrong, strict=True)
        lost = interval([100 * (1 - rounds(one) / rounds(other)) for other, one in pairs])
        rows.append([f"`{system}`", f"{cell(lost)}%", "1.6%"])
    return table(["30% noise in estimates costs", "frames a second", "paper"], rows)


# --- an app ---------------------------------------------------------------------------------------


def an_app(simulated: Simulated) -> str:
    """Shopping on a phone, its frames and its DNNs."""
    known = system_names()
    rows = []
    for system in APP_SYSTEMS:
        if system not in known:
            continue
        runs = simulated.runs(APP, system)
        late = interval([100 * run["late_rate"] for run in runs])
        row = [f"`{system}`", cell(interval([run["fps"]["mean"] for run in runs])), cell(late)]
        for dnn in ("style", "hand", "segment", "detect"):
            done = [run["dnns"][dnn]["latency_ms"]["mean"] for run in runs]
            known_ms = [ms for ms in done if ms is not None]
            row.append(cell(interval(known_ms), 0) if known_ms else "never ran")
        rows.append(row)
    columns = ["", "fps", "late, %", "style, ms", "hand, ms", "segment, ms", "detect, ms"]
    return table(columns, rows)


# --- everything -----------------------------------------------------------------------------------


def finished(run: Mapping[str, Any]) -> float:
    """Requests answered a second."""
    return float(run["throughput_hz"])


# Of each workload: what is said of it, and how it is run.
WORKLOADS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], float], Mapping[str, Any]]] = {
    "split-1": ("over 4x, %", violated("4"), {}),
    "split-6": ("over 4x, %", violated("4"), {}),
    "band-lifelogging": (
        "over 2x, %",
        missed,
        {"seconds": BAND_S, "variations": {"slo_multiplier": 2}},
    ),
    "band-eagleeye": ("frames a second", rounds, {"seconds": BAND_S}),
    "band-distream": ("frames a second", rounds, {"seconds": BAND_S}),
    "pantheon-traffic": ("missed, %", missed, {"seconds": pantheon.SECONDS}),
    "pantheon-robot": ("missed, %", missed, {"seconds": pantheon.SECONDS}),
    "pantheon-uav": ("missed, %", missed, {"seconds": pantheon.SECONDS}),
    "top-mixed": ("finished a second", finished, {"seconds": TOP_S}),
    "top-240": ("finished a second", finished, {"seconds": TOP_S}),
}
EVERYBODY = (
    "max-total",
    "response-ratio",
    "lst",
    "heft",
    "edf-exits",
    "top",
    "static-plan",
    "rms",
    "prema",
    "fcfs",
)


def everything(simulated: Simulated) -> str:
    """Every system on every workload, a quarter of the seeds; a dash where it cannot run it."""
    few, rows = simulated.few(), []
    for system in EVERYBODY:
        row = [f"`{system}`"]
        for scenario, (_, figure, options) in WORKLOADS.items():
            try:
                row.append(few.over(figure, scenario, system, **options))
            except ConfigError:
                row.append("-")
        rows.append(row)
    columns = [f"{scenario}: {what}" for scenario, (what, _, _) in WORKLOADS.items()]
    return table(["", *columns], rows)


PARTS: Mapping[str, Callable[[Simulated], str]] = {
    "split_violations": violations_of_split,
    "split_jitter": jitter_of_split,
    "split_long": long_of_split,
    "band_frames": frames_of_band,
    "band_ratios": ratios_of_band,
    "band_slos": slos_of_band,
    "band_noise": noise_of_band,
    **pantheon.PARTS,
    "everything": everything,
    "app": an_app,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"renew {PAGE.name}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--output", type=Path, default=KEPT, help="where runs are kept (.jsonl)")
    parser.add_argument("--only", choices=list(PARTS), nargs="+", help="print these tables alone")
    arguments = parser.parse_args()
    simulated = Simulated(arguments.seeds, Kept(arguments.output))
    if arguments.only:
        for name in arguments.only:
            print(f"{name}\n\n{PARTS[name](simulated)}\n", flush=True)
        return
    tables = {name: part(simulated) for name, part in PARTS.items()}
    numbers = {"seeds": arguments.seeds, "fewer": max(2, arguments.seeds // 4)}
    text = filled(TEXT, {**tables, **numbers})
    if arguments.write:
        paths.replace_file(PAGE, text.encode())
    print(text)


if __name__ == "__main__":
    main()
