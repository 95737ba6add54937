"""A phone that gets hot, under each system: ``python benchmarks/hot.py [--seeds N]``.

benchmarks/shopping-hot.toml, whose GPU works a third slower after a minute, on a simulated phone:
the last 40 s before, and the last 40 s of two minutes, over several seeds (means of seeds, least
and most in brackets).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from heimdall.lab.simulator.seeds import simulate_seeds

SCENARIO = Path(__file__).with_name("shopping-hot.toml")
SYSTEMS = ("multithread", "max-total-static", "max-total")
PARTS = {"cool": range(20, 60, 10), "hot": range(80, 120, 10)}  # windows of 10 s that begin then


def over_part(run: dict[str, Any], part: str, dnn: str | None, figure: str) -> float:
    """Mean over windows of a figure of the run, or of one of its DNNs."""
    windows = [run["windows"][f"{start}-{start + 10} s"] for start in PARTS[part]]
    if dnn is not None:
        windows = [window["dnns"][dnn] for window in windows]
    values = [window[figure] for window in windows if window[figure] is not None]
    return sum(values) / len(values) if values else float("nan")


def cell(values: Sequence[float], digits: int) -> str:
    """Mean, least and most."""
    mean = sum(values) / len(values)
    return f"{mean:.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def rows(device: str, seeds: int) -> Iterator[str]:
    """Lines of the table."""
    head: list[str] = []
    for system in SYSTEMS:
        runs = simulate_seeds(str(SCENARIO), device, system, seeds=seeds, seconds=120.0)["runs"]
        dnns = list(runs[0]["dnns"])
        if not head:
            head = ["system", "GPU", "fps", *(f"{dnn} ms" for dnn in dnns), "late", "style missed"]
            yield "| " + " | ".join(head) + " |"
            yield "|---" * len(head) + "|"
        for part in PARTS:
            cells = [system, part, cell([over_part(run, part, None, "fps") for run in runs], 1)]
            for dnn in dnns:
                cells.append(cell([over_part(run, part, dnn, "latency_ms") for run in runs], 0))
            late = [100 * over_part(run, part, None, "late_rate") for run in runs]
            missed = [100 * over_part(run, part, "style", "miss_rate") for run in runs]
            cells += [f"{cell(late, 0)}%", f"{cell(missed, 0)}%"]
            yield "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="lg-v50")
    parser.add_argument("--seeds", type=int, default=16)
    arguments = parser.parse_args()
    for row in rows(arguments.device, arguments.seeds):
        print(row, flush=True)


if __name__ == "__main__":
    main()
