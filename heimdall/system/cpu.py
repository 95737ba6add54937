"""What the processor is called."""

from __future__ import annotations

import platform
from pathlib import Path


def cpu_name() -> str:
    """The processor's marketing name, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
