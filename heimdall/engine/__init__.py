"""Engines: processors that run networks behind the contract of ``base``.

Engines are imported when they are opened: a machine without OpenCL can still use the others.
Another one is an Engine passed as ``device``, registered in ``ENGINES``, or offered by a package
under the entry points ``heimdall.engines`` (docs/do/engine.md).
"""

from __future__ import annotations

import inspect
from typing import Any

from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork, Memory, Op, State
from heimdall.engine.together import GroupMember
from heimdall.system.registry import Registry


def _accept(name: str, value: object) -> str | None:
    if not (inspect.isclass(value) and issubclass(value, Engine)):
        return f"must be a class derived from heimdall.engine.Engine, not {value!r}"
    own = getattr(value, "name", None)
    return None if own == name else f"must have that name itself: {value!r} is called {own!r}"


ENGINES: Registry[type[Engine]] = Registry(
    "engine",
    "heimdall.engines",
    {
        "opencl": "heimdall.engine.opencl.engine:OpenCLEngine",
        "onnxruntime": "heimdall.engine.onnxruntime:OnnxRuntimeEngine",
        "provider": "heimdall.engine.providers:ProviderEngine",
        "null": "heimdall.engine.null:NullEngine",
    },
    _accept,
)


def open_engine(name: str, **options: Any) -> Engine:
    """The engine registered as ``name``; ``options`` go to its constructor.

    Raises ConfigError for an unknown name, DeviceError when its device is missing.
    """
    kind = ENGINES[name] if name in ENGINES else ENGINES.find(name)
    return kind(**options)


__all__ = [
    "ENGINES",
    "Engine",
    "GroupMember",
    "LoadedNetwork",
    "Memory",
    "Op",
    "State",
    "open_engine",
]
