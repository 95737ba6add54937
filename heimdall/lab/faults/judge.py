"""Whether a fault was borne: the bounds, and which were missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.lab.faults.fault import NO_FAULT, Excuse, Fault
from heimdall.lab.faults.notes import Seen
from heimdall.lab.faults.times import (
    SOME,
    Span,
    fps_mean,
    is_slow,
    lost_results,
    measured,
    rates,
    recovery_s,
    rounded,
    worst_window,
)
from heimdall.lab.faults.trial import Outcome

LEAST_MEAN = 29.8 / 30  # of the frame rate asked for
MOST_RECOVERY_S = 2.0
MOST_AFTER_EXCUSE_S = 1.0  # where the system took the cores
MOST_END_S = 1.0
_HIDDEN_MS = 20.0  # between the longest interval as the run says it, and as it was


def judge(fault: Fault, outcome: Outcome) -> dict[str, Any]:
    """The figures of one trial, ``passed``, and ``why`` not: one line for each bound missed."""
    found, seen = figures(fault, outcome), outcome.seen
    lost, told, left = found["lost"], found["told"], found["left"]
    why = [
        *_why_ended(fault, outcome, found["ended_in_s"]),
        *_why_frames(fault, seen),
        *_why_back(fault, seen, found["recovery_s"]),
        *([f"{lost} results of DNNs not at fault are lost"] if lost else []),
        *([] if fault.excuse or fault.ends or fault.blind else _why_starved(fault, seen)),
        *(["it was not named to the user"] if fault.told and not told else []),
        *([] if fault.hides else _why_hidden(found["longest_ms"], outcome.summary)),
        *([f"left: {', '.join(left)}"] if left else []),
    ]
    return verdict(fault, why, **found)


def figures(fault: Fault, outcome: Outcome) -> dict[str, Any]:
    """What there is to say of a run in numbers."""
    seen, frames = outcome.seen, measured(outcome.seen)
    last_ns = seen.frames[-1] if seen.frames else outcome.ended_ns
    asked_ns = outcome.asked_ns or (seen.began_ns if fault.ends else None)
    intervals_ms = np.diff(frames) / 1e6
    some = len(intervals_ms) > 0
    return {
        "fps": {
            "mean": rounded(fps_mean(frames)),
            "min": rounded(worst_window(frames, seen.fps, window_s=1.0)),
        },
        "p99_ms": rounded(np.quantile(intervals_ms, 0.99)) if some else None,
        "longest_ms": rounded(intervals_ms.max()) if some else None,
        "worst_window_fps": rounded(worst_window(frames, seen.fps)),
        "recovery_s": None if fault.ends else rounded(recovery_s(seen, last_ns)),
        "lost": lost_results(seen, outcome.ended_ns),
        "told": _told(fault, outcome),
        "ended_in_s": rounded((outcome.ended_ns - (asked_ns or last_ns)) / 1e9),
        "left": sorted(outcome.left),
        "status": outcome.status,
        "dnns": rates(seen),
    }


def verdict(fault: Fault, why: Sequence[str], **figures: Any) -> dict[str, Any]:
    """What is said of a fault; null is a figure that could not be taken, or makes no sense."""
    nothing: dict[str, Any] = {
        "fps": {"mean": None, "min": None},
        "p99_ms": None,
        "longest_ms": None,
        "worst_window_fps": None,
        "recovery_s": None,
        "lost": None,
        "told": "",
        "ended_in_s": None,
        "left": [],
        "status": None,
        "dnns": {},
    }
    about = {"fault": fault.name, "what": fault.what}
    return {**about, **nothing, **figures, "passed": not why, "why": list(why)}


def _excused(fault: Fault, seen: Seen) -> Span | None:
    if not fault.excuse or seen.began_ns is None:
        return None
    end_ns = seen.ended_ns or seen.began_ns
    grace_ns = round(1e9 * MOST_AFTER_EXCUSE_S)
    return seen.began_ns, end_ns + grace_ns


def _why_starved(fault: Fault, seen: Seen) -> list[str]:
    """DNNs that the fault is not about, and that gave nothing while it was there."""
    if seen.began_ns is None or seen.ended_ns is None:
        return []
    at_fault = set() if fault.elsewhere else {dnn for _, dnn in seen.acted}
    lasted_s = (seen.ended_ns - seen.began_ns) / 1e9
    return [
        f"{dnn}: no result while the fault was there"
        for dnn, each in rates(seen).items()
        if dnn not in at_fault
        and not each["during_hz"]
        and (each["before_hz"] or 0.0) * lasted_s >= SOME
    ]


def _why_ended(fault: Fault, outcome: Outcome, ended_s: float) -> list[str]:
    seen, why = outcome.seen, []
    if outcome.status is None:
        why.append("it did not end, and was killed")
    elif outcome.summary is None:
        why.append(f"it ended without a summary, with status {outcome.status}")
    if ended_s > MOST_END_S:
        why.append(f"it took {ended_s:.1f} s to end")
    if seen.began_ns is None:
        why.append("it ended before the fault")
    elif not seen.acted and fault.name != NO_FAULT.name:
        why.append("the fault did not take place")
    elif seen.ended_ns is None and not fault.ends:
        why.append("it ended while the fault was there")
    return why


def _why_frames(fault: Fault, seen: Seen) -> list[str]:
    frames, excused, why = measured(seen), _excused(fault, seen), []
    mean, worst = fps_mean(frames, excused), worst_window(frames, seen.fps, excused)
    if mean is None or mean < LEAST_MEAN * seen.fps:
        why.append("no frames" if mean is None else f"{mean:.1f} fps on average")
    if worst is not None and is_slow(worst, seen.fps):
        why.append(f"{worst:.0f} fps in the worst third of a second")
    return why


def _why_back(fault: Fault, seen: Seen, back_s: float | None) -> list[str]:
    if fault.ends or seen.ended_ns is None:
        return []
    if back_s is None:
        return ["frames or a DNN were not at their rate again at the end"]
    most_s = MOST_AFTER_EXCUSE_S if fault.excuse is Excuse.SYSTEM else MOST_RECOVERY_S
    return [f"it took {back_s:.1f} s to recover"] if back_s > most_s else []


def _why_hidden(longest_ms: float | None, summary: Mapping[str, Any] | None) -> list[str]:
    """A stall that the run's own figures leave out."""
    if summary is None or longest_ms is None:
        return []
    said_ms = summary["longest_interval_ms"]
    if said_ms is None or longest_ms - said_ms > _HIDDEN_MS:
        return [f"the longest interval was {longest_ms:.0f} ms, and the summary says {said_ms}"]
    return []


def _told(fault: Fault, outcome: Outcome) -> str:
    """The first line of what the summary, or the overlay, says was wrong; else ""."""
    errors = [] if outcome.summary is None else outcome.summary["errors"]
    overlay = [text for _, text in outcome.seen.told]
    outputs = [] if outcome.summary is None else outcome.summary.get("outputs", {}).values()
    unsaved = [each["error"] for each in outputs if each["error"]]
    logged = [line for line in outcome.said if fault.logged and fault.logged in line]
    lines = [*errors, *overlay, *unsaved, *logged]
    if outcome.summary is None:
        lines += [line for line in outcome.said if line.startswith("error: ")]
    return next((line.strip().partition("\n")[0] for line in lines), "")
