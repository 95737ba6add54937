"""Renew docs/paper.md: ``python -m benchmarks.paper [--live]``.

Simulates anew each time (a minute). What ``--live`` measures on this machine (within ten minutes;
nothing else should run on it) is kept in the results folder, and shown again without it.
"""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any

from benchmarks.paper import sweep
from benchmarks.paper.accuracy import table_4
from benchmarks.paper.derived import derived
from benchmarks.paper.live import live
from benchmarks.paper.page import page
from benchmarks.paper.simulated import simulated
from benchmarks.paper.values import read_values
from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.errors import ConfigError
from heimdall.system import paths
from heimdall.system.paths import replace_file

PAGE = paths.ROOT / "docs" / "paper.md"
RESULTS = paths.ROOT / "out" / "paper"
ACCURACY_S = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--live", action="store_true", help="run everything on this machine, too")
    parser.add_argument("--page-only", action="store_true", help="from what is in the folder")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for what is measured")
    parser.add_argument("--seconds", type=float, default=6.0, help="of a live run")
    parser.add_argument("--simulated-seconds", type=float, default=60.0, help="of a simulated run")
    options = parser.parse_args()
    if options.live and options.page_only:
        parser.error("--live and --page-only exclude each other")
    for name in ("seconds", "simulated_seconds"):
        if not getattr(options, name) > 0:
            parser.error(f"--{name.replace('_', '-')} must be above 0")
    try:
        check_writable("out", options.out, (".md",))
        check_writable("results", options.results / "simulated.json")
        _renew(options)
    except ConfigError as error:
        parser.error(console.words(error))
    except KeyboardInterrupt:
        parser.exit(130, "interrupted: --page-only shows what had finished\n")


def _renew(options: argparse.Namespace) -> None:
    folder = _Folder(options.results)
    with console.Progress() as progress:
        if not options.page_only:
            seconds = options.simulated_seconds
            logging.getLogger("heimdall").setLevel(logging.ERROR)  # slow DNNs are what it is about
            folder.write("simulated", simulated(folder.traces("simulated"), seconds, progress))
            points = sweep.sweep(seconds / 3, progress)
            folder.write("sweep", {"seconds": seconds / 3, "points": points})
        if options.live:
            live(
                folder.traces("live"),
                options.seconds,
                lambda results: folder.write("live", results),
                progress,
            )
        if not options.page_only:
            places = {place: folder.results(place) for place in ("simulated", "live")}
            known = {place: results for place, results in places.items() if results}
            folder.write("accuracy", table_4(known, ACCURACY_S, progress))
    simulation = folder.results("simulated")
    if simulation is None:
        raise ConfigError(f"{options.results} holds no simulation yet: run without --page-only")
    chart = options.out.parent / "images" / "sweep.svg"
    sweep.draw(folder.read("sweep")["points"], chart)
    text = page(
        read_values(),
        simulation,
        folder.results("live"),
        folder.read("sweep"),
        chart.relative_to(options.out.parent).as_posix(),
    )
    replace_file(options.out, text.encode())


class _Folder:
    """Where results are kept: NAME.json, and a folder of traces for each place."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def traces(self, place: str) -> Path:
        path = self._folder / f"{place}-traces"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def path(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def write(self, name: str, results: Any) -> None:
        replace_file(self.path(name), json.dumps(results, indent=1).encode())

    def read(self, name: str) -> Any:
        """Raises ConfigError when it is not there yet, or damaged."""
        try:
            return json.loads(self.path(name).read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"results {self.path(name)} cannot be read ({error}): run without --page-only"
            ) from error

    def results(self, place: str) -> dict[str, Any] | None:
        """All that is known of a place; None for one that never ran."""
        if not self.path(place).exists():
            return None
        found: dict[str, Any] = self.read(place)
        accuracy = self.read("accuracy") if self.path("accuracy").exists() else {}
        return {**found, "accuracy": accuracy.get(place, {}), "derived": derived(found)}


if __name__ == "__main__":
    main()
