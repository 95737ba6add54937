"""What happens to each picture of a phone on its way: through the network, the app, and back."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

CAPTURED, SHOWN = "captured", "shown"
# In their order. The phone tells the first two and the last, by its clock as compared with ours.
STATIONS = (CAPTURED, "sent", "received", "decoded", "drawn", "encoded", SHOWN)
_UNDER_WAY = 256
_REMEMBERED = 1 << 16  # latencies: of half an hour at 30 fps
_LONGEST_NS = 5_000_000_000  # a way that took longer was no way: the phone slept


@dataclass
class Journey:
    """When one picture was where, by ``time.perf_counter_ns``; stations that were not told are
    missing."""

    at_ns: dict[str, int] = field(default_factory=dict)

    def legs(self) -> Iterator[tuple[str, int, int]]:
        """From each station to the next that is known: ``"sent to received"``, when it began,
        when it ended."""
        known = [each for each in STATIONS if each in self.at_ns]
        for first, then in itertools.pairwise(known):
            yield f"{first} to {then}", self.at_ns[first], self.at_ns[then]

    @property
    def latency_ns(self) -> int:
        """From motion to photon: from the camera to the screen."""
        return self.at_ns[SHOWN] - self.at_ns[CAPTURED]


class Journeys:
    """All pictures of a run by when they were captured. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: OrderedDict[int, Journey] = OrderedDict()
        self._ended: deque[Journey] = deque(maxlen=_UNDER_WAY)
        self._latencies_ns: deque[int] = deque(maxlen=_REMEMBERED)
        self._shown = 0

    def note(self, captured_ns: int, **at_ns: int) -> None:
        """A picture was at these stations. The first time that it is shown counts."""
        with self._lock:
            journey = self._under_way.get(captured_ns)
            if journey is None:
                if SHOWN in at_ns or not at_ns:
                    return
                journey = self._under_way[captured_ns] = Journey({CAPTURED: captured_ns})
                while len(self._under_way) > _UNDER_WAY:
                    self._under_way.popitem(last=False)
            for station, when_ns in at_ns.items():
                journey.at_ns.setdefault(station, when_ns)
            if SHOWN in at_ns:
                del self._under_way[captured_ns]
                if 0 <= journey.latency_ns < _LONGEST_NS:
                    self._ended.append(journey)
                    self._latencies_ns.append(journey.latency_ns)
                    self._shown += 1

    def take(self) -> list[Journey]:
        """Those that have ended since the last call; of very many the last."""
        with self._lock:
            ended = list(self._ended)
            self._ended.clear()
        return ended

    def restart(self) -> None:
        """Count afresh."""
        with self._lock:
            self._latencies_ns.clear()
            self._shown = 0

    @property
    def latest_ms(self) -> float | None:
        """The median of the last second or so; None before there is one."""
        with self._lock:
            last = list(itertools.islice(reversed(self._latencies_ns), 30))
        return float(np.median(last)) / 1e6 if last else None

    @property
    def summary(self) -> Mapping[str, float | int | None]:
        """How many pictures were shown, and the ``p50_ms`` and ``p99_ms`` of the last 65,536; None
        of none."""
        with self._lock:
            known, shown = list(self._latencies_ns), self._shown
        p50, p99 = np.percentile(known, (50, 99)) / 1e6 if known else (None, None)
        return {"shown": shown, "p50_ms": p50, "p99_ms": p99}
