"""Engines: processors that run networks behind the contract of ``base``.

Engines are imported when they are opened: a machine without OpenCL can still use the others.
"""

from __future__ import annotations

import importlib
from typing import Any

from heimdall.engine.base import Engine
from heimdall.errors import ConfigError, unknown

ENGINES = {
    "opencl": "heimdall.engine.opencl.engine:OpenCLEngine",
    "onnxruntime": "heimdall.engine.onnxruntime:OnnxRuntimeEngine",
    "provider": "heimdall.engine.providers:ProviderEngine",
    "null": "heimdall.engine.null:NullEngine",
}


def open_engine(name: str, **options: Any) -> Engine:
    """The engine registered as ``name``; ``options`` go to its constructor.

    Raises ConfigError for an unknown name, DeviceError when its device is missing.
    """
    if name not in ENGINES:
        raise ConfigError(unknown("engine", name, ENGINES))
    module, _, attribute = ENGINES[name].partition(":")
    engine: Engine = getattr(importlib.import_module(module), attribute)(**options)
    return engine


__all__ = ["ENGINES", "Engine", "open_engine"]
