"""The work of the last seconds, lane by lane, for the overlay's timeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from heimdall.render.timeline import LANES, Span
from heimdall.runtime.telemetry.trace import Tracer

_KEPT = 1024  # spans that were not fetched yet


class Spans:
    """Hears of every span of work, from any thread; passes each on to the tracer, if any.
    ``others``: processors beside the GPU and the CPU, whose lanes come below."""

    def __init__(self, tracer: Tracer | None, others: Sequence[str] = ()) -> None:
        self.tracer, self.others = tracer, others
        self._number = {str(lane): number for number, lane in enumerate((*LANES, *others))}
        self._new: deque[Span] = deque(maxlen=_KEPT)

    def span(
        self, lane: str, name: str, start_ns: int, end_ns: int, details: Mapping[str, Any]
    ) -> None:
        """A piece of work in a lane; its name begins with that of the DNN. Jobs that ran
        ``together`` have a ``row`` each: they share the lane here, and have GPU, GPU-1, and so on
        in a trace."""
        row, rows = details.get("row", 0), len(details.get("together", ())) or 1
        if lane in self._number:
            dnn = name.partition(" ")[0]
            self._new.append(Span(self._number[lane], dnn, start_ns, end_ns, row, rows))
        if self.tracer:
            self.tracer.span(f"{lane}-{row}" if row else lane, name, start_ns, end_ns, details)

    def fetch(self) -> list[Span]:
        """What is new since the last call."""
        return [self._new.popleft() for _ in range(len(self._new))]
