"""What an app's memory does over minutes: ``python benchmarks/memory.py [APP] [--minutes N]``.

Runs APP headless in this process for N minutes after warm-up. Prints, once a minute, its resident
memory, how much more that is than a minute before, and what of it the C library's allocator holds
(in use, and free but not given back); at the end by how much a minute it grew after the first.

``--tracemalloc``: at the end also which lines of Python hold more than a minute after the start.
It makes everything slower and larger: believe its differences, not its totals.
"""

from __future__ import annotations

import argparse
import ctypes
import linecache
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator

import psutil

MB = 1e6
MINUTE_S = 60.0
SHOWN = 25
_MALLINFO2 = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class MallInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``."""

    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO2]


def allocator_mb() -> tuple[float, float] | None:
    """What malloc has handed out, and what it keeps for later, in MB; None where it does not say
    (another C library than glibc 2.33 or later)."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    mallinfo2.restype = MallInfo
    info = mallinfo2()
    return (info.uordblks + info.hblkhd) / MB, info.fordblks / MB


class Watch(threading.Thread):
    """Prints a line a minute until ``stop``."""

    def __init__(self, traced: bool) -> None:
        super().__init__(daemon=True)
        self._process = psutil.Process()
        self._traced = traced
        self._over = threading.Event()
        self._first: tracemalloc.Snapshot | None = None
        self._samples: list[tuple[float, float]] = []  # (when, MB)

    def run(self) -> None:
        print(f"{'minute':>6}{'resident MB':>13}{'more':>8}{'malloc: in use':>16}{'free':>8}")
        while not self._over.wait(MINUTE_S):
            self._tell()
            if self._traced and self._first is None:
                self._first = tracemalloc.take_snapshot()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _tell(self) -> None:
        resident = self._process.memory_info().rss / MB
        more = resident - self._samples[-1][1] if self._samples else 0.0
        self._samples.append((time.monotonic(), resident))
        held = allocator_mb()
        words = f"{held[0]:>16.1f}{held[1]:>8.1f}" if held else ""
        print(f"{len(self._samples):>6}{resident:>13.1f}{more:>+8.1f}{words}", flush=True)

    def rate(self, since_s: float) -> float | None:
        """MB a minute since then; None where there are less than two samples."""
        counted = [(at_s, resident) for at_s, resident in self._samples if at_s >= since_s]
        if len(counted) < 2:
            return None
        (first_s, first), (last_s, last) = counted[0], counted[-1]
        return (last - first) / (last_s - first_s) * MINUTE_S

    def grown(self) -> Iterator[str]:
        """The lines of Python that hold more than after the first minute."""
        if self._first is None:
            return
        now = tracemalloc.take_snapshot()
        for each in now.compare_to(self._first, "lineno")[:SHOWN]:
            frame = each.traceback[0]
            line = linecache.getline(frame.filename, frame.lineno).strip()
            place = "/".join(frame.filename.split("/")[-3:])
            yield (
                f"{each.size_diff / 1e3:>+10.1f} kB {each.count_diff:>+8} {place}:{frame.lineno}  "
                f"{line}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("app", nargs="?", default="shopping")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--tracemalloc", action="store_true", help="what in Python has grown")
    arguments = parser.parse_args()
    if arguments.tracemalloc:
        tracemalloc.start()
    from heimdall.app.options import RunOptions
    from heimdall.runtime.run import run_app

    watch = Watch(arguments.tracemalloc)
    watch.start()
    options = RunOptions(headless=True, seconds=arguments.minutes * MINUTE_S)
    summary = run_app(arguments.app, options)
    warm_s = time.monotonic() - summary["seconds"]
    watch.stop()
    rate = watch.rate(warm_s + MINUTE_S)
    print("after the first minute:", "?" if rate is None else f"{rate:+.2f} MB a minute")
    print(f"fps {summary['fps']['mean']}, errors {summary['errors']}")
    sys.stdout.writelines(line + "\n" for line in watch.grown())


if __name__ == "__main__":
    main()
