"""What the tables of the command line are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

NONE = "-"


def table(title: str | None, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A table whose cells are right-aligned where the column's name begins with ``>``."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        right = column.startswith(">")
        made.add_column(column.lstrip(">"), justify="right" if right else "left")
    for row in rows:
        made.add_row(*(Text(cell if isinstance(cell, str) else str(cell)) for cell in row))
    return made


def facts(named: Iterable[tuple[str, str]]) -> Table:
    """Lines of a name and what there is to say."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in named:
        made.add_row(Text(name, style="bold"), Text(value))
    return made


def number(value: float | None, digits: int = 1) -> str:
    """A figure; a dash for one that could not be taken."""
    return NONE if value is None else f"{value:.{digits}f}"


def percent(share: float | None, digits: int = 0) -> str:
    """A share of a whole."""
    return NONE if share is None else f"{100 * share:.{digits}f}%"


def rates(achieved_hz: str, required_hz: float | None) -> str:
    """Inferences a second, of so many that are asked for."""
    return achieved_hz if required_hz is None else f"{achieved_hz} of {required_hz:g}"


def mean(found: Mapping[str, Any] | None, digits: int = 1, scale: float = 1) -> str:
    """Of a figure over runs (``statistics.over_runs``) the mean, with half its 95% interval."""
    if found is None:
        return NONE
    said = f"{scale * found['mean']:.{digits}f}"
    if found["high"] is None:
        return said
    return f"{said} ±{scale * (found['high'] - found['mean']):.{digits}f}"


def extremes(least: Mapping[str, Any] | None, most: Mapping[str, Any] | None) -> str:
    """The least of one figure over runs to the most of another."""
    low, high = least["least"] if least else None, most["most"] if most else None
    return f"{number(low)} to {number(high)}"


def achieved(dnn: Mapping[str, Any]) -> str:
    """Of a DNN's figures over runs its rate, beside what is asked for."""
    required = dnn.get("required_hz")
    return rates(mean(dnn.get("achieved_hz"), 2), required and required["mean"])


def say(value: object) -> str:
    """A varied value as one would type it."""
    if isinstance(value, list | tuple):
        return "x".join(map(say, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
