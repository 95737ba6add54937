"""values.toml: what the paper says, and where to find the same in what was run here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from heimdall.lab.bench.scenario import tomllib

FILE = Path(__file__).with_name("values.toml")
TEXTS = Path(__file__).with_name("text")
Value = int | float | str | Mapping[str, int | float]
# What a row whose path ends so is split into: one number each.
_PARTS = {
    "fps": (("mean", ""), ("min", "lowest third of a second"), ("max", "highest third")),
    "latency_ms": (("mean", "mean"), ("max", "longest")),
}


# The runs that numbers below "derived" follow from, by the beginning of their paths.
_DERIVED = {
    "derived/slowdown": ("alone", "together"),
    "derived/reduction/max-total-static": ("shopping multithread", "shopping max-total-static"),
    "derived/reduction/max-total": ("shopping multithread", "shopping max-total"),
    "derived/face_on_cpu": ("face alone",),
    "derived/face_rate_gain": ("emoji multithread", "emoji max-total"),
    "derived/utility_gain": ("three max-total-nooffload", "three max-min-nooffload"),
    "derived/offload_gain": ("three max-min-nooffload", "three max-min"),
    "derived/gap_ms": ("nothing but drawn",),
}


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Line(NamedTuple):
    """One number: what it is, the paper's, and its paths in the results of either place."""

    what: str
    paper: Value | None
    at: str
    live_at: str


class Row(_Table):
    """One quantity. ``at`` is its path in the results ("/" between names) of both the simulation
    and the live run, unless ``live_at`` says otherwise; a path that is not there leaves a dash.
    Frame rates and latencies have a line for the mean, and for each extreme."""

    what: str
    paper: Value | None = None  # None: drawn, and no number in the text
    at: str
    live_at: str | None = None
    unit: str = ""

    def lines(self) -> Iterator[Line]:
        """The numbers of this quantity."""
        live_at = self.live_at or self.at
        parts = _PARTS.get(live_at.rpartition("/")[2], ())
        if not parts:
            yield Line(self.what, self.paper, self.at, live_at)
            return
        paper: Mapping[str, Any] = self.paper if isinstance(self.paper, Mapping) else {}
        for index, (name, said) in enumerate(parts):
            plain = not index and not isinstance(self.paper, Mapping)
            value = self.paper if plain else paper.get(name)
            if not index and "std" in paper:
                value = paper
            what = f"{self.what}, {said}" if said else self.what
            yield Line(what, value, f"{self.at}/{name}", f"{live_at}/{name}")


class Figure(_Table):
    """A figure or table. ``note`` says where the columns differ and why; ``not_simulated`` and
    ``not_here`` why a column has gaps. ``commands`` make single numbers of it again; ``picture``
    is what it is called among the pictures."""

    name: str
    section: str
    title: str
    rows: tuple[Row, ...] = Field(min_length=1)
    note: str
    not_simulated: str | None = None
    not_here: str | None = None
    commands: tuple[str, ...] = ()
    picture: str | None = None

    def runs(self) -> list[str]:
        """The names of the runs that its numbers come from."""
        found = [line.at for row in self.rows for line in row.lines()]
        names = [path.split("/")[1] for path in found if path.startswith("runs/")]
        derived = [path for path in found if path.startswith("derived/")]
        return list(
            dict.fromkeys([*names, *(run for path in derived for run in _DERIVED.get(path, ()))])
        )


class Headline(_Table):
    """What the paper claims, or is asked of this program, and the bounds within which a simulated
    number counts as the same: ``within`` a part of the paper's number, or ``least`` and ``most``.

    ``why`` is said where it is not reproduced, or not everywhere; ``command`` makes the number.
    """

    claim: str
    section: str
    at: str
    live_at: str | None = None
    paper: Value
    within: float | None = None
    least: float | None = None
    most: float | None = None
    unit: str = ""
    command: str
    why: str

    def bounds(self) -> tuple[float, float]:
        """The least and the most that counts as the same."""
        least, most = self.least, self.most
        if self.within is not None:
            assert isinstance(self.paper, int | float)
            least, most = self.paper * (1 - self.within), self.paper * (1 + self.within)
        return (
            float("-inf") if least is None else least,
            float("inf") if most is None else most,
        )

    def holds(self, value: float) -> bool:
        """Whether the value counts as the paper's."""
        least, most = self.bounds()
        return least <= value <= most

    def verdict(self, found: Mapping[str, Any] | None) -> str:
        """Of what all seeds said: "reproduced" when the mean's whole interval is within the
        bounds, "partly" when single seeds are, else "not"."""
        if found is None:
            return "not run"
        if "low" not in found:
            return "reproduced" if self.holds(found["mean"]) else "not"
        least, most = self.bounds()
        low, high = found["low"], found["high"]
        if least <= (found["mean"] if low is None else low) and (
            (found["mean"] if high is None else high) <= most
        ):
            return "reproduced"
        return "partly" if found["most"] >= least and found["least"] <= most else "not"


class Paper(_Table):
    """All of the file."""

    headline: tuple[Headline, ...]
    figure: tuple[Figure, ...]


def read_values(path: Path = FILE) -> Paper:
    """The paper's claims and figures in its order. Raises ValueError where the file is wrong."""
    return Paper.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def text(name: str) -> str:
    """A part of the page: TEXTS/NAME.md, with places for numbers in braces."""
    return (TEXTS / f"{name}.md").read_text(encoding="utf-8")


def look_up(results: Mapping[str, Any] | None, path: str) -> Any:
    """What lies at ``path``; None where there is nothing."""
    found: Any = results
    for name in path.split("/"):
        if not isinstance(found, Mapping) or name not in found:
            return None
        found = found[name]
    return found


def shown(value: Any, unit: str) -> str:
    """A value as the page has it: ``13.30 [13.26, 13.33]`` for a mean over runs and its interval,
    ``1181 ± 668``, ``0.62 (0.48 to 0.71)``, ``62%``."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return _number(value, unit)
    mean = value.get("mean")
    if mean is None:
        return "–"
    if isinstance(mean, Mapping):  # over runs, of numbers that are means themselves
        return shown({key: _mean(each) for key, each in value.items()}, unit)
    if "n" in value:
        return _over_runs(value, unit)
    if "std" in value:
        return f"{_number(mean, unit)} ± {_number(value['std'], unit)}"
    if value.get("min") is not None:
        least, most = _number(value["min"], unit), _number(value["max"], unit)
        return f"{_number(mean, unit)} ({least} to {most})"
    return _number(mean, unit)


def _mean(value: Any) -> Any:
    return value["mean"] if isinstance(value, Mapping) else value


def _over_runs(found: Mapping[str, Any], unit: str) -> str:
    """The mean with its interval; alone where all runs said the same, or there is one."""
    mean = _number(found["mean"], unit)
    if found["low"] is None:
        return f"{mean} (one run)"
    most = found["high"]
    if unit == "%" and found["most"] <= 1:  # Student's interval knows nothing of 100%
        most = min(most, 1.0)
    low, high = _number(found["low"], unit), _number(most, unit)
    return mean if low == high else f"{mean} [{low}, {high}]"


def seen(value: Any, unit: str) -> str:
    """The least and the most of all runs; nothing where they were the same."""
    if not isinstance(value, Mapping) or value.get("n", 1) < 2:
        return ""
    least, most = _number(value["least"], unit), _number(value["most"], unit)
    return "" if least == most else f"{least} to {most}"


def _number(value: float, unit: str) -> str:
    if unit == "%":
        return f"{100 * value:.1f}%"
    if isinstance(value, int) or abs(value) >= 200:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 50 else f"{value:.2f}"
