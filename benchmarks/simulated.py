"""Simulated runs by scenario, system and seed, and their figures as cells of tables."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heimdall.lab.simulator.seeds import simulate_seeds
from heimdall.runtime.telemetry.statistics import Interval, interval

MANY = ("split", "band")  # scenarios that run all seeds, others a quarter: they take seconds
Runs = Sequence[Mapping[str, Any]]


class Kept:
    """Figures of runs by name: made once, and kept in a file, a line each, to go on there. What
    was made by other code stays until the file is deleted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self._made: dict[str, Runs] = dict(map(json.loads, lines))
        if lines:
            say(f"goes on with {len(lines)} that {path} has; delete it to begin anew")

    def runs(self, name: str, make: Callable[[], Runs]) -> Runs:
        """Those of that name."""
        if name not in self._made:
            began = time.monotonic()
            self._made[name] = make()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, self._made[name]]) + "\n")
            say(f"{name}: {time.monotonic() - began:.0f} s")
        return self._made[name]


class Simulated:
    """Runs of each scenario and system, one for each seed."""

    def __init__(self, seeds: int, kept: Kept, many: tuple[str, ...] = MANY) -> None:
        self._seeds, self._kept, self._many = seeds, kept, many

    def few(self) -> Simulated:
        """The same, a quarter of the seeds whatever the scenario."""
        return Simulated(self._seeds, self._kept, ())

    def runs(self, scenario: str, system: str, **options: Any) -> Runs:
        """One for each seed."""
        many = scenario.startswith(self._many)
        seeds = self._seeds if many else max(2, self._seeds // 4)
        options = {name: each for name, each in options.items() if each}  # no variations are none

        def simulate() -> Runs:
            found: Runs = simulate_seeds(scenario, None, system, seeds=seeds, **options)["runs"]
            return found

        return self._kept.runs(f"{scenario} {system} {seeds} {options}", simulate)

    def over(
        self, figure: Callable[[Mapping[str, Any]], float], *asked: Any, **options: Any
    ) -> str:
        """A figure's mean and half its interval, as a cell."""
        return cell(interval([figure(run) for run in self.runs(*asked, **options)]))


def say(what: str) -> None:
    """How far a page is, beside what is printed of it."""
    print(what, file=sys.stderr, flush=True)


def cell(found: Interval, digits: int = 1) -> str:
    """A mean with half its 95% interval."""
    half = "" if found.half is None else f" ± {found.half:.{digits}f}"
    return f"{found.mean:.{digits}f}{half}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown has it."""
    head = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])


def filled(text: Path, parts: Mapping[str, object]) -> str:
    """A page's words, with what was measured in the places that are named so: ``[[name]]``."""
    page = text.read_text(encoding="utf-8")
    for name, part in parts.items():
        page = page.replace(f"[[{name}]]", str(part))
    return page


def missed(run: Mapping[str, Any]) -> float:
    """Percent of all deadlines."""
    return float(100 * run["violations"]["slo"])
