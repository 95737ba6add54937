"""XRBench live on this machine: ``python -m benchmarks.xrbench_live``, for the page that
``python -m benchmarks.xrbench --write`` makes.

Each scenario at each load under each system, alone and beside a renderer, in turns. Alone every
system has all cores: a software GPU has them, too, as onnxruntime's threads do. Beside a renderer
the GPU has its usual share. What was measured is kept in benchmarks/xrbench-live.json, machine by
machine and point by point, so an interrupted run goes on; ``--again`` measures the systems anew
that are named. ``--dry`` tells how long it takes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.simulated import cell, table
from heimdall.lab.bench.runner import compare, machine
from heimdall.lab.bench.scenario import scenario_names
from heimdall.lab.scenarios import FOLDERS
from heimdall.runtime.telemetry.statistics import interval
from heimdall.system import paths
from heimdall.system.softgpu import allowed_cores

KEPT = paths.ROOT / "benchmarks" / "xrbench-live.json"
SCENARIOS = [name for name in scenario_names(draws=False) if name.startswith("xrbench-")]
SYSTEMS = (
    "most-in-time",
    "max-total",
    "lst",
    "edf-exits",
    "response-ratio",
    "greedy",
    "multithread",
    "edf",
    "multithread-onnxruntime-all",
)
LOADS = (0.5,)
RUNS, SECONDS = 5, 6.0
FRAMES: Mapping[str, Any] = {"fps": 30.0, "size": (640, 480)}
AROUND_S = {False: 6.0, True: 25.0}  # what a run takes beside: to open it, and to measure it alone

ALONE, DRAWN = "alone", "drawn"

Figures = dict[str, list[float]]


def points(arguments: argparse.Namespace) -> Iterator[tuple[str, float, bool]]:
    """What is to be measured: scenario, load, and whether there is a renderer."""
    for where in arguments.where:
        for scenario in arguments.scenarios:
            for load in arguments.loads:
                yield scenario, load, where == DRAWN


def at_load(scenario: str, load: float, folder: Path) -> Path:
    """The scenario's file, with its streams at this load of the machine."""
    text = next(
        path.read_text(encoding="utf-8")
        for each in FOLDERS.values()
        if (path := each / f"{scenario}.toml").is_file()
    )
    path = folder / f"{scenario}.toml"
    path.write_text(text.replace("drop_late = true", f"drop_late = true\nload = {load}", 1))
    return path


def measured(
    scenario: str, load: float, draws: bool, systems: Sequence[str], runs: int, seconds: float
) -> dict[str, Figures]:
    """By system, the figures of each run."""
    how = FRAMES if draws else {"gpu_cores": len(allowed_cores())}
    with tempfile.TemporaryDirectory() as folder:
        path = at_load(scenario, load, Path(folder))
        found = compare(str(path), ",".join(systems), runs=runs, seconds=seconds, **how)
    for failure in found["failures"]:
        print(f"  failed: {failure}", flush=True)
    return {name: _figures(each, draws) for name, each in found["runs"].items()}


def _figures(runs: Sequence[Mapping[str, Any]], draws: bool) -> Figures:
    scores = [run["score"] for run in runs]
    figures: Figures = {key: [each[key] or 0.0 for each in scores] for key in ("overall", "qoe")}
    if draws:
        figures["fps"] = [run["fps"]["mean"] for run in runs]
        figures["p99"] = [run["frame_interval_ms"]["p99"] for run in runs]
    return figures


# --- the page -------------------------------------------------------------------------------------


def tables() -> str:
    """What was measured, a table for each load and machine, alone and beside a renderer."""
    kept, parts = _kept(), []
    loads = sorted({float(key.split()[1]) for points in kept.values() for key in points})
    asked = ((draws, load, where) for draws in (False, True) for load in loads for where in kept)
    for draws, load, where in asked:
        points = ((name, kept[where].get(_key(name, load, draws))) for name in SCENARIOS)
        if by_scenario := {name: found for name, found in points if found}:
            what = "Beside a renderer" if draws else "Alone"
            parts += [f"{what}, at a load of {load:g} ({where}):", _table(by_scenario, draws)]
    return "\n\n".join(parts) or "Not measured yet: `python -m benchmarks.xrbench_live`."


def _kept() -> dict[str, dict[str, dict[str, Figures]]]:
    """By machine, point and system."""
    if not KEPT.is_file():
        return {}
    kept: dict[str, dict[str, dict[str, Figures]]] = json.loads(KEPT.read_text(encoding="utf-8"))
    return kept


def _table(by_scenario: Mapping[str, Mapping[str, Figures]], draws: bool) -> str:
    rows = []
    for system in dict.fromkeys(name for found in by_scenario.values() for name in found):
        cells = [
            cell(interval(found[system]["overall"])) if system in found else "-"
            for found in by_scenario.values()
        ]
        for figure in ("fps", "p99") if draws else ():
            seen = (found.get(system, {}).get(figure, []) for found in by_scenario.values())
            values = [each for runs in seen for each in runs]
            cells.append(cell(interval(values)) if values else "-")
        rows.append([f"`{system}`", *cells])
    names = [name.removeprefix("xrbench-") for name in by_scenario]
    return table(["score", *names, *(("fps", "interval p99, ms") if draws else ())], rows)


def _key(scenario: str, load: float, draws: bool) -> str:
    return f"{scenario} {load:g} {DRAWN if draws else ALONE}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--systems", nargs="+", default=SYSTEMS)
    parser.add_argument("--where", nargs="+", choices=(ALONE, DRAWN), default=(ALONE, DRAWN))
    parser.add_argument("--loads", nargs="+", type=float, default=LOADS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--again", action="store_true", help="measure these systems anew")
    parser.add_argument("--dry", action="store_true", help="tell how long it takes")
    arguments = parser.parse_args()
    here, kept = machine(), _kept()
    own = kept.setdefault(f"{here['processor']}, {here['cores']} cores", {})
    left = [each for each in points(arguments) if arguments.again or _key(*each) not in own]
    runs = len(arguments.systems) * arguments.runs
    whole_s = sum(runs * (arguments.seconds + AROUND_S[draws]) for _, _, draws in left)
    print(f"{len(left)} points of {runs} runs: about {whole_s / 60:.0f} minutes", flush=True)
    for scenario, load, draws in () if arguments.dry else left:
        key = _key(scenario, load, draws)
        print(key, flush=True)
        found = measured(
            scenario, load, draws, arguments.systems, arguments.runs, arguments.seconds
        )
        own.setdefault(key, {}).update(found)
        paths.replace_file(KEPT, (json.dumps(kept, indent=0) + "\n").encode())


if __name__ == "__main__":
    main()
