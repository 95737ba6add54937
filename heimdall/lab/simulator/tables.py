"""Files of devices: TOML whose tables are checked, and hold nothing else."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from heimdall.errors import ConfigError
from heimdall.lab.bench.problems import problem

AGAIN = "measure again (heimdall measure)"


class Table(BaseModel):
    """One table, its keys as attributes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Kind = TypeVar("Kind", bound=Table)


def read_toml(path: Path) -> dict[str, Any]:
    """What a file holds. Raises ConfigError where it cannot be read or is no TOML."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"device profile {path} cannot be read: {error}") from error
    except ConfigError as error:
        raise ConfigError(f"device profile {path} is {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """What a text holds. Raises ConfigError where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}") from error


def as_tables(kind: type[Kind], path: Path, content: Mapping[str, Any]) -> Kind:
    """A file's content as a device, which is called as the file is. Raises ConfigError that names
    the first key that is wrong."""
    try:
        return kind.model_validate({**content, "name": path.stem})
    except ValidationError as error:
        where, what = problem(error, kind)
        said = f"{where}: {what}" if where else what
        if where == "schema":
            said += f": {AGAIN}"
        elif where == "profile" and what == "is missing":
            said = f"profile: its scenarios were not measured: {AGAIN}, with that part"
        raise ConfigError(f"device profile {path}: {said}") from error
