"""Renew docs/laboratory/paper.md: ``python -m benchmarks.paper [--live] [--only NAME ...]``.

Simulations run in parallel processes (15 minutes on two cores). What ``--live`` runs on this
machine takes forty minutes, during which nothing else should run. Every result is kept in the
results folder as soon as it is there, and not made again unless what made it has changed: an
interrupted command goes on where it was. ``--only`` makes a part: simulated, sensitivity, sweep,
live, networks, accuracy, or the runs of one figure ("Fig. 14(a)").
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper import accuracy, live, pictures, sensitivity, simulated, sweep
from benchmarks.paper.findings import Findings
from benchmarks.paper.kept import Kept, perform
from benchmarks.paper.page import page
from benchmarks.paper.runs import Run, all_runs
from benchmarks.paper.values import Paper, read_values
from heimdall.analyzer.profiler import Progress
from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.errors import ConfigError, unknown
from heimdall.system import paths
from heimdall.system.paths import replace_file

PAGE = paths.ROOT / "docs" / "laboratory" / "paper.md"
RESULTS = paths.ROOT / "out" / "paper"
SIMULATED = ("simulated", "sensitivity", "sweep")
LIVE = ("live", "networks")
ACCURACY = "accuracy"
SWEEP_PART = 3  # of a simulated run's length is a point of the sweep


@dataclass(frozen=True)
class Wanted:
    """What is to be made: parts, and runs (None: all)."""

    parts: tuple[str, ...]
    runs: tuple[str, ...] | None = None

    def of(self, runs: Sequence[Run]) -> list[Run]:
        return [run for run in runs if self.runs is None or run.name in self.runs]


def main() -> None:
    parser = _parser()
    options = parser.parse_args()
    if options.page_only and (options.live or options.only):
        parser.error("--page-only goes with neither --live nor --only")
    for name in ("seconds", "simulated_seconds", "seeds", "runs", "workers"):
        if not getattr(options, name) > 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0")
    try:
        check_writable("out", options.out, (".md",))
        check_writable("results", options.results / "simulated.jsonl", (".jsonl",))
        paper = read_values()
        wanted = Wanted(()) if options.page_only else chosen(options.only, options.live, paper)
        with console.ProgressBars() as progress:
            _Renewal(options, paper, progress).make(wanted)
    except ConfigError as error:
        parser.error(console.words(error))
    except KeyboardInterrupt:
        parser.exit(130, "interrupted: the same command goes on; --page-only shows what there is\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--live", action="store_true", help="run on this machine, too")
    parser.add_argument("--only", action="append", metavar="NAME", help="a part, or a figure")
    parser.add_argument("--page-only", action="store_true", help="from what is in the folder")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for what is measured")
    parser.add_argument("--seeds", type=int, default=16, help="of each simulated run")
    parser.add_argument("--runs", type=int, default=5, help="of each live figure")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a live run")
    parser.add_argument("--simulated-seconds", type=float, default=20.0, help="of a simulated run")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    return parser


def chosen(names: Sequence[str] | None, live_too: bool, paper: Paper) -> Wanted:
    """What ``--only`` and ``--live`` ask for. Raises ConfigError for an unknown name."""
    parts = (*SIMULATED, *LIVE, ACCURACY)
    usual = (*SIMULATED, *(LIVE if live_too else ()), ACCURACY)
    if not names:
        return Wanted(usual)
    if set(names) <= set(parts):
        return Wanted(tuple(part for part in parts if part in names))
    runs: list[str] = []
    figures = {figure.name: figure for figure in paper.figure}
    for name in names:
        if name not in figures:
            raise ConfigError(unknown("part or figure", name, [*parts, *figures]))
        runs += figures[name].runs()
    return Wanted(("simulated", *(("live",) if live_too else ())), tuple(runs))


class _Renewal:
    """One call of the command."""

    def __init__(self, options: argparse.Namespace, paper: Paper, progress: Progress) -> None:
        self._options, self._paper, self._progress = options, paper, progress
        folder = options.results
        self._simulated = Kept(folder / "simulated.jsonl", simulated.source())
        self._live = Kept(folder / "live.jsonl", live.source())

    def make(self, wanted: Wanted) -> None:
        """Run what is wanted and is not there, then write the page of all that is there."""
        logging.getLogger("heimdall").setLevel(logging.ERROR)  # slow DNNs are what it is about
        for part in wanted.parts:
            self._run(part, wanted)
        findings = self._findings()
        images = self._options.out.parent.parent / "images"
        drawn = pictures.draw(findings, images)
        text = page(
            self._paper, findings, {name: f"../images/{path.name}" for name, path in drawn.items()}
        )
        replace_file(self._options.out, text.encode())

    def _run(self, part: str, wanted: Wanted) -> None:
        given = self._options
        seconds = given.simulated_seconds
        runs = wanted.of(all_runs())
        if part in SIMULATED:
            points = {
                "simulated": lambda: simulated.points(runs, given.seeds, seconds),
                "sensitivity": lambda: sensitivity.points(given.seeds, seconds),
                "sweep": lambda: sweep.points(given.seeds, seconds / SWEEP_PART),
            }[part]()
            tasks = [point.task for point in points]
            perform(tasks, self._simulated, given.workers, part, self._progress)
            self._simulated.tidy()
        elif part == ACCURACY:
            tasks = [each.task for each in accuracy.scores(self._places())]
            perform(tasks, self._simulated, given.workers, part, self._progress)
        else:
            live_tasks = live.tasks(runs, given.runs, given.seconds)
            tasks = live_tasks if part == "live" else live.network_tasks()
            perform(tasks, self._live, 0, part, self._progress)
            self._live.tidy()

    def _places(self) -> dict[str, dict[str, Any]]:
        """All that is known of the simulation, and of live runs."""
        given, runs = self._options, all_runs()
        found = {
            "simulated": simulated.collected(
                runs, self._simulated, given.seeds, given.simulated_seconds
            ),
            "live": live.collected(runs, self._live, given.runs, given.seconds),
        }
        return {place: results for place, results in found.items() if results}

    def _findings(self) -> Findings:
        given, seconds = self._options, self._options.simulated_seconds
        places = self._places()
        if "simulated" not in places:
            raise ConfigError(f"{given.results} holds no simulation yet: run without --page-only")
        for each in accuracy.scores(places):
            found = self._simulated.get(each.task, any_source=True)
            if found is not None:
                where = places[each.place].setdefault("accuracy", {}).setdefault(each.dnn, {})
                where[each.system] = found
        return Findings(
            simulated=places["simulated"],
            live=places.get("live"),
            sensitivity=sensitivity.collected(self._simulated, given.seeds, seconds),
            sweep=sweep.collected(self._simulated, given.seeds, seconds / SWEEP_PART),
            stale=self._stale(),
            sweep_seconds=seconds / SWEEP_PART,
        )

    def _stale(self) -> int:
        """How many of the results shown are of other sources."""
        given = self._options
        runs = all_runs()
        tasks = [
            point.task for point in simulated.points(runs, given.seeds, given.simulated_seconds)
        ]
        return self._simulated.others(tasks) + self._live.others(
            live.tasks(runs, given.runs, given.seconds)
        )


if __name__ == "__main__":
    main()
