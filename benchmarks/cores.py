"""One process for each number of cores: OpenCL on a CPU fixes its threads when it starts."""

from __future__ import annotations

import argparse
import os
import sys


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--cores``, by default one and all, and what ``worker`` says to a process."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--cores", type=int, nargs="+", default=sorted({1, available or 1}))
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)


def worker(module: str, cores: int) -> list[str]:
    """The command that runs a benchmark again, with its arguments, to measure on so many cores."""
    return [sys.executable, "-m", module, *sys.argv[1:], "--worker", str(cores)]
