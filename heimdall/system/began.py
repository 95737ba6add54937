"""When the program began, near enough: the package imports this before anything else."""

from __future__ import annotations

import time

IMPORTED_S = time.perf_counter()  # ``startup_s`` counts from it
