"""Environment variables: libraries read theirs when they load."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

# onnxruntime 1.29 and later report their use to Microsoft, unless this is set when they load.
SILENT = {"ORT_DISABLE_TELEMETRY": "1"}


def silence() -> None:
    """Ask libraries not to report home, in this process and in its children. What the user has
    set stays."""
    for name, value in SILENT.items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def variables(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables (None: remove them) inside this block. When it ends, even by an
    exception, what was there before is put back, unless it was changed meanwhile."""
    before = {name: os.environ.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            _set(name, value)
        yield
    finally:
        for name, value in wanted.items():
            if os.environ.get(name) == value:
                _set(name, before[name])


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
