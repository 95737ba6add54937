"""The two OpenCL drivers that play a GPU on the CPU's cores, beside each other and onnxruntime:

    python -m benchmarks.drivers            # prints a table, writes docs/laboratory/drivers.md
    python -m benchmarks.drivers --cores 2 --rounds 5

PoCL is the system's; Intel's runtime is unpacked by scripts/opencl.py. Each bundled network is
measured by `heimdall check` in a process for each driver, in turns; the best of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from heimdall.system.cpu import cpu_name

PAGE = Path("docs/laboratory/drivers.md")
ROOT = Path(__file__).parents[1]
DRIVERS = {"PoCL": (), "Intel": ("scripts/opencl.py", "--run", "intel", sys.executable)}

Times = dict[str, dict[str, float]]  # ms by network, then by driver, and by "onnxruntime"


def measure(driver: str, cores: int) -> list[dict[str, Any]]:
    """What `heimdall check` finds with one driver."""
    command = [sys.executable, *DRIVERS[driver], "-m", "heimdall", "check", "--all", "--json"]
    done = subprocess.run(
        [*command, "--cores", str(cores)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["models"]
    return found


def compare(rounds: int, cores: int) -> Times:
    """The best times of each network, the drivers in turns."""
    best: Times = {}
    for _ in range(rounds):
        for driver in DRIVERS:
            for each in measure(driver, cores):
                if each["error"] or not each["max_rel_error"] <= 1e-3:
                    raise SystemExit(f"{driver} is wrong on {each['model']}: {each}")
                times = best.setdefault(each["model"], {})
                for name, ms in ((driver, each["gpu_ms"]), ("onnxruntime", each["onnxruntime_ms"])):
                    times[name] = min(ms, times.get(name, ms))
    return best


def page(times: Times, rounds: int, cores: int, note: str) -> str:
    """The tables, with what they are of."""
    names = [*DRIVERS, "onnxruntime"]
    lines = [
        "# Software GPUs compared",
        "",
        "For whoever runs without a GPU and asks which OpenCL driver plays one best.",
        "",
        "The bundled networks on one machine's cores, by the two OpenCL drivers that can play a GPU"
        " there, and by onnxruntime. Where both are installed, the one that is clearly faster (a"
        " tenth) at a small network is used; that is measured when they are first met, and"
        " `--device` overrides it.",
        "",
        f"Written by `python -m benchmarks.drivers --cores {cores} --rounds {rounds}`: the drivers"
        f" in turns, the best of the rounds. Machine: {cpu_name()}, {os.cpu_count()} cores,"
        f" {platform.system()} {platform.machine()}; {cores} of them used. {note}".rstrip(),
        "",
        "| network | " + " | ".join(f"{name} ms" for name in names) + " | PoCL / Intel |",
        "| --- |" + " ---: |" * (len(names) + 1),
    ]
    for path, found in times.items():
        cells = [f"{found[name]:.2f}" for name in names]
        lines.append(
            f"| {Path(path).stem} | {' | '.join(cells)} | {found['PoCL'] / found['Intel']:.2f} |"
        )
    mean = geometric_mean(found["PoCL"] / found["Intel"] for found in times.values())
    lines.append(f"| geometric mean |{' |' * len(names)} {mean:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--note", default="", help="a sentence about the circumstances")
    chosen = parser.parse_args()
    text = page(compare(chosen.rounds, chosen.cores), chosen.rounds, chosen.cores, chosen.note)
    print(text)
    _, heading, by_hand = PAGE.read_text().partition("\n## ")  # what follows is not measured here
    PAGE.write_text(text + heading + by_hand)


if __name__ == "__main__":
    main()
