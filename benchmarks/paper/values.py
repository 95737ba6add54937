"""values.toml: the figures of the paper, and where to find the same in what was run here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from heimdall.bench.scenario import tomllib

FILE = Path(__file__).with_name("values.toml")
Value = int | float | str | Mapping[str, int | float]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Table):
    """One number. ``at`` is its path in the results ("/" between names) of both the simulation
    and the live run, unless ``live_at`` says otherwise; a path that is not there leaves a dash.
    """

    what: str
    paper: Value | None = None  # None: drawn, and no number in the text
    at: str
    live_at: str | None = None
    unit: str = ""


class Figure(_Table):
    """A figure or table. ``note`` says where the columns differ and why; ``not_simulated`` and
    ``not_here`` why a column has gaps."""

    name: str
    section: str
    title: str
    rows: tuple[Row, ...] = Field(min_length=1)
    note: str
    not_simulated: str | None = None
    not_here: str | None = None


def read_values(path: Path = FILE) -> list[Figure]:
    """The paper's figures in its order. Raises ValueError where the file is wrong."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Figure.model_validate(figure) for figure in table["figure"]]


def look_up(results: Mapping[str, Any] | None, path: str) -> Any:
    """What lies at ``path``; None where there is nothing."""
    found: Any = results
    for name in path.split("/"):
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def shown(value: Value | None, unit: str) -> str:
    """A value as the page has it: ``11.99 (6.82 to 17.70)``, ``1181 ± 668``, ``62%``."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return _number(value, unit)
    if value.get("mean") is None:
        return "–"
    mean = _number(value["mean"], unit)
    if "std" in value:
        return f"{mean} ± {_number(value['std'], unit)}"
    if value.get("min") is not None:
        return f"{mean} ({_number(value['min'], unit)} to {_number(value['max'], unit)})"
    return mean if value.get("max") is None else f"{mean}, at most {_number(value['max'], unit)}"


def _number(value: float, unit: str) -> str:
    if unit == "%":
        return f"{100 * value:.1f}%"
    if isinstance(value, int) or abs(value) >= 200:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 50 else f"{value:.2f}"
