"""What a machine is: the facts that stand in its row."""

from __future__ import annotations

import datetime
import platform
from typing import Any

import psutil

import heimdall
from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.engine.providers import available_providers
from heimdall.errors import HeimdallError
from heimdall.runtime.execution.processors import open_gpu, open_processors
from heimdall.runtime.opening.devices import list_devices
from heimdall.system import softgpu

_SLOW = ("tensorrt",)  # builds for minutes what each chunk needs: only where it is asked for


def describe_machine(device: str | None, progress: Progress = no_progress) -> dict[str, Any]:
    """CPU, GPU, drivers and versions, and whether the GPU is made of cores; ``providers`` are
    onnxruntime's that find a GPU here. Raises DeviceError when there is no such ``device``."""
    progress("looking at the machine", 0, 1)
    with open_processors(device, softgpu.plan()) as processors:
        engine, mode = processors.gpu, processors.describe()
        described = {**engine.describe(), "engine": engine.name}
        software = processors.software is not None
    listed = list_devices()
    progress("looking at the machine", 1, 1)
    return {
        "cpu": listed["cpu"]["name"],
        "cores": psutil.cpu_count(),
        "memory_mb": round(psutil.virtual_memory().total / 1e6),
        "engine": described["engine"],
        "gpu": described["device"],
        "driver": described["driver"],
        "software_gpu": software,
        "mode": mode,
        "renderer": listed["gl"]["renderer"] or f"none: {listed['gl']['error']}",
        "os": platform.platform(),
        "python": platform.python_version(),
        "onnxruntime": listed["onnxruntime"]["version"],
        "heimdall": heimdall.__version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "providers": [
            name for name in available_providers() if name not in _SLOW and _finds_a_gpu(name)
        ],
    }


def _finds_a_gpu(provider: str) -> bool:
    try:
        engine = open_gpu(provider)
    except HeimdallError:
        return False
    engine.close()
    return engine.hardware
