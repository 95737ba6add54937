"""Made-up runs: frames and results at times that a test says."""

from __future__ import annotations

from heimdall.lab.faults.notes import Seen

S = 1_000_000_000
FPS = 30.0


def frames(seconds: float, *stalls: tuple[float, float], start_s: float = 0.0) -> list[int]:
    """Frames of a run, none within the ``stalls`` (from, to)."""
    times = [start_s + index / FPS for index in range(round(seconds * FPS) + 1)]
    return [
        round(each * S) for each in times if not any(begin < each < end for begin, end in stalls)
    ]


def results(rate_hz: float, until_s: float, *gaps: tuple[float, float]) -> list[int]:
    """Results of a DNN, none within the gaps."""
    times = [index / rate_hz for index in range(round(until_s * rate_hz))]
    return [round(each * S) for each in times if not any(begin < each < end for begin, end in gaps)]


def seen(**what: object) -> Seen:
    """Fifteen seconds with a fault from 5 to 10 s, all well but for what is given."""
    found = Seen(
        fps=FPS,
        frames=frames(15),
        warm_ns=0,
        began_ns=5 * S,
        ended_ns=10 * S,
        over_ns=15 * S,
        acted=[(5 * S, "detect")],
    )
    found.results["detect"] = results(5, 15)
    found.results["hand"] = results(10, 15)
    for name, value in what.items():
        setattr(found, name, value)
    return found
