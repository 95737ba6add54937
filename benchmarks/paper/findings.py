"""What was found: all that docs/laboratory/paper.md and its pictures show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.paper import sensitivity

Results = Mapping[str, Any]


@dataclass(frozen=True)
class Findings:
    """Everything that the page shows. ``live`` is None before anything ran on this machine;
    ``stale`` counts results that other sources than the present ones made."""

    simulated: Results
    live: Results | None
    sensitivity: Mapping[str, Sequence[tuple[sensitivity.Value, Results]]]
    sweep: Sequence[Results]
    stale: int = 0
    sweep_seconds: float = 10.0
