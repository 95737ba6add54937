"""Simulated runs by scenario, system and seed, and their figures as cells of tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heimdall.lab.simulator.seeds import simulate_seeds
from heimdall.runtime.telemetry.statistics import Interval, interval

MANY = ("split", "band")  # scenarios that run all seeds, others a quarter: they take seconds
Runs = Sequence[Mapping[str, Any]]


class Simulated:
    """Runs of each scenario and system, made once."""

    def __init__(self, seeds: int, many: tuple[str, ...] = MANY) -> None:
        self._seeds, self._many = seeds, many
        self._runs: dict[str, Runs] = {}

    def few(self) -> Simulated:
        """The same, a quarter of the seeds whatever the scenario."""
        found = Simulated(self._seeds, ())
        found._runs = self._runs
        return found

    def runs(self, scenario: str, system: str, **options: Any) -> Runs:
        """One for each seed."""
        many = scenario.startswith(self._many)
        seeds = self._seeds if many else max(2, self._seeds // 4)
        key = f"{scenario} {system} {seeds} {options}"
        if key not in self._runs:
            began = time.monotonic()
            found = simulate_seeds(scenario, None, system, seeds=seeds, **options)
            self._runs[key] = found["runs"]
            print(f"{key}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        return self._runs[key]

    def over(
        self, figure: Callable[[Mapping[str, Any]], float], *asked: Any, **options: Any
    ) -> str:
        """A figure's mean and half its interval, as a cell."""
        return cell(interval([figure(run) for run in self.runs(*asked, **options)]))


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
