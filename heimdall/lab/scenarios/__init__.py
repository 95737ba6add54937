"""Folders of scenarios: this one, and those that packages offer by the entry points
``heimdall.scenarios`` (a ``pathlib.Path``)."""

from __future__ import annotations

from pathlib import Path

from heimdall.system.registry import Registry

_HERE = Path(__file__).parent


def _accept(name: str, value: object) -> str | None:
    return (
        None if isinstance(value, Path) and value.is_dir() else f"must be a folder, not {value!r}"
    )


FOLDERS: Registry[Path] = Registry("scenario folder", "heimdall.scenarios", {"lab": _HERE}, _accept)
