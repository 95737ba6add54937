"""Whether a fault was borne: from the times of frames and results, nothing else.

All times are those that were noted as frames were shown and results came, by one clock that knows
no pause. A window of a third of a second that lies over a stall counts in full.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from heimdall.lab.faults.fault import NO_FAULT, Excuse, Fault
from heimdall.lab.faults.notes import Seen
from heimdall.lab.faults.trial import Outcome

WINDOW_S = 1 / 3
LEAST_MEAN = 29.8 / 30  # of the frame rate asked for
LEAST_IN_WINDOW = 27 / 30
MOST_RECOVERY_S = 2.0
MOST_AFTER_EXCUSE_S = 1.0  # where the system took the cores
MOST_END_S = 1.0
_LONGER = 1.5  # than any before: then a DNN's results do not come at their rate yet
_HIDDEN_MS = 20.0  # between the longest interval as the run says it, and as it was
_SOME = 2.0  # results that a DNN owes in a span before none is called starving

Span = tuple[int, int]  # ns


def judge(fault: Fault, outcome: Outcome) -> dict[str, Any]:
    """The figures of one trial, ``passed``, and ``why`` not: one line for each bound missed."""
    seen, summary = outcome.seen, outcome.summary
    frames = _measured(seen)
    end_ns = max([*seen.frames, seen.ended_ns or 0], default=outcome.ended_ns)
    excused = _excused(fault, seen)
    judged = fps_mean(frames, excused)
    worst = worst_window(frames, seen.fps, excused)
    back_s = None if fault.ends else recovery_s(seen, end_ns)
    lost = lost_results(seen, outcome.ended_ns)
    told = _told(outcome)
    asked_ns = outcome.asked_ns or (seen.began_ns if fault.ends else None)
    last_ns = seen.frames[-1] if seen.frames else outcome.ended_ns
    ended_s = (outcome.ended_ns - (asked_ns or last_ns)) / 1e9
    intervals_ms = np.diff(frames) / 1e6

    why = [
        *_why_ended(fault, outcome, ended_s),
        *_why_frames(fault, seen, judged, worst),
        *_why_back(fault, seen, back_s),
        *([f"{lost} results of DNNs not at fault are lost"] if lost else []),
        *([] if fault.excuse or fault.ends else _why_starved(seen)),
        *(["it was not named to the user"] if fault.told and not told else []),
        *([] if fault.hides else _why_hidden(frames, summary)),
        *([f"left: {', '.join(sorted(outcome.left))}"] if outcome.left else []),
    ]
    return verdict(
        fault,
        why,
        fps={
            "mean": _rounded(fps_mean(frames)),
            "min": _rounded(worst_window(frames, seen.fps, window_s=1.0)),
        },
        p99_ms=_rounded(np.quantile(intervals_ms, 0.99)) if len(intervals_ms) else None,
        longest_ms=_rounded(intervals_ms.max()) if len(intervals_ms) else None,
        worst_window_fps=_rounded(worst_window(frames, seen.fps)),
        recovery_s=_rounded(back_s),
        lost=lost,
        told=told,
        ended_in_s=_rounded(ended_s),
        left=sorted(outcome.left),
        status=outcome.status,
        dnns=rates(seen),
    )


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


# --- frames ----------------------------------------------------------------------------------


def fps_mean(frames: Sequence[int], excused: Span | None = None) -> float | None:
    """Frames a second over all intervals, but those that touch ``excused``; None without any."""
    intervals = [
        (end - start)
        for start, end in itertools.pairwise(frames)
        if excused is None or end < excused[0] or start > excused[1]
    ]
    return 1e9 * len(intervals) / sum(intervals) if intervals else None


def worst_window(
    frames: Sequence[int], fps: float, excused: Span | None = None, window_s: float = WINDOW_S
) -> float | None:
    """The fewest frames a second in any window of ``window_s`` that begins with a frame, and does
    not touch ``excused``; None without any. A frame belongs to a window when it is at most half an
    interval late for it, so that jitter alone costs nothing."""
    window_ns, late_ns = round(window_s * 1e9), round(0.5e9 / fps)
    worst = None
    for index, start in enumerate(frames):
        end = start + window_ns
        if end + late_ns > frames[-1]:
            break
        if excused is not None and end >= excused[0] and start <= excused[1]:
            continue
        found = (bisect.bisect_right(frames, end + late_ns) - index - 1) / window_s
        worst = found if worst is None else min(worst, found)
    return None if worst is None else min(worst, fps)


def _measured(seen: Seen) -> list[int]:
    """The frames since the run was warm, or since its fault began where that was before."""
    starts = [each for each in (seen.warm_ns, seen.began_ns) if each is not None]
    start = min(starts) if starts else 0
    return [each for each in seen.frames if each >= start]


def _excused(fault: Fault, seen: Seen) -> Span | None:
    if not fault.excuse or seen.began_ns is None:
        return None
    end_ns = seen.ended_ns or seen.began_ns
    grace_ns = round(1e9 * MOST_AFTER_EXCUSE_S)
    return seen.began_ns, end_ns + grace_ns


# --- DNNs ------------------------------------------------------------------------------------


def lost_results(seen: Seen, until_ns: int) -> int:
    """How many inferences gave no result, and were not put back: those that failed, and those that
    are under way for longer than any that came to its end; less those that the fault itself took
    from their DNN."""
    taken = Counter(dnn for _, dnn in seen.acted)
    last_ns = seen.frames[-1] if seen.frames else until_ns
    lasted = [each.ended_ns - each.began_ns for each in seen.jobs.values() if each.ended_ns]
    usual_ns = max([round(1e9), *lasted])
    lost: Counter[str] = Counter()
    for job in seen.jobs.values():
        forgotten = not job.end and last_ns - job.began_ns > usual_ns
        ended_ns = job.ended_ns or last_ns
        failed = job.end == "lost" and ended_ns <= last_ns  # not by the end of the run
        lost[job.dnn] += failed or forgotten
    return sum(max(0, number - taken[dnn]) for dnn, number in lost.items())


def rates(seen: Seen) -> dict[str, dict[str, float | None]]:
    """Results a second of each DNN before the fault, while it was there, and after it."""
    if seen.warm_ns is None or seen.began_ns is None or not seen.frames:
        return {}
    end_ns = seen.ended_ns or seen.frames[-1]
    spans = {
        "before_hz": (seen.warm_ns, seen.began_ns),
        "during_hz": (seen.began_ns, end_ns),
        "after_hz": (end_ns, seen.frames[-1]),
    }
    return {
        dnn: {name: _rounded(_rate(times, *span)) for name, span in spans.items()}
        for dnn, times in seen.results.items()
    }


def _rate(times: Sequence[int], start: int, end: int) -> float | None:
    return 1e9 * sum(start <= each < end for each in times) / (end - start) if end > start else None


def _why_starved(seen: Seen) -> list[str]:
    """DNNs that the fault is not about, and that gave nothing while it was there."""
    if seen.began_ns is None or seen.ended_ns is None:
        return []
    at_fault = {dnn for _, dnn in seen.acted}
    lasted_s = (seen.ended_ns - seen.began_ns) / 1e9
    return [
        f"{dnn}: no result while the fault was there"
        for dnn, each in rates(seen).items()
        if dnn not in at_fault
        and not each["during_hz"]
        and (each["before_hz"] or 0.0) * lasted_s >= _SOME
    ]


# --- recovery --------------------------------------------------------------------------------


def recovery_s(seen: Seen, until_ns: int) -> float | None:
    """From the end of the fault until frames, and results of every DNN, come at their rate again;
    None where one of them does not any more."""
    end_ns = seen.ended_ns
    if end_ns is None or seen.began_ns is None:
        return None
    back = [_frames_back(seen, end_ns)]
    for times in seen.results.values():
        before = [each for each in times if (seen.warm_ns or 0) <= each < seen.began_ns]
        if len(before) > _SOME:
            back.append(_results_back(times, before, end_ns, until_ns))
    known = [each for each in back if each is not None]
    return max(0, *known) / 1e9 if len(known) == len(back) else None


def _frames_back(seen: Seen, end_ns: int) -> int | None:
    """From the end of the fault to the first frame after which a whole second goes well."""
    frames, second_ns = seen.frames, round(1e9)
    first = max(0, bisect.bisect_right(frames, end_ns) - 1)
    for index in range(first, len(frames)):
        last = bisect.bisect_right(frames, frames[index] + second_ns)
        worst = worst_window(frames[index:last], seen.fps)
        if worst is None:
            return None
        if worst >= LEAST_IN_WINDOW * seen.fps:
            return frames[index] - end_ns
    return None


def _results_back(
    times: Sequence[int], before: Sequence[int], end_ns: int, until_ns: int
) -> int | None:
    """From the end of the fault to the first result that is followed by another one in time. The
    first interval may have begun before that end, and is the last one where none follows."""
    allowed = _LONGER * max(np.diff(before))
    first = max(0, bisect.bisect_right(times, end_ns) - 1)
    for start, end in zip(times[first:], [*times[first + 1 :], until_ns], strict=True):
        if end - start <= allowed:
            return start - end_ns
    return None


# --- bounds ----------------------------------------------------------------------------------


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


def _why_frames(fault: Fault, seen: Seen, mean: float | None, worst: float | None) -> list[str]:
    why = []
    if mean is None or mean < LEAST_MEAN * seen.fps:
        why.append("no frames" if mean is None else f"{mean:.1f} fps on average")
    if worst is not None and worst < LEAST_IN_WINDOW * seen.fps:
        why.append(f"{worst:.0f} fps in the worst third of a second")
    return why


def _why_back(fault: Fault, seen: Seen, back_s: float | None) -> list[str]:
    if fault.ends or seen.ended_ns is None:
        return []
    if back_s is None:
        return ["frames or a DNN were not at their rate again at the end"]
    most_s = MOST_AFTER_EXCUSE_S if fault.excuse is Excuse.SYSTEM else MOST_RECOVERY_S
    return [f"it took {back_s:.1f} s to recover"] if back_s > most_s else []


def _why_hidden(frames: Sequence[int], summary: dict[str, Any] | None) -> list[str]:
    """A stall that the run's own figures leave out."""
    if summary is None or len(frames) < 2:
        return []
    said_ms, longest_ms = summary["frame_interval_ms"]["max"], max(np.diff(frames)) / 1e6
    if said_ms is None or longest_ms - said_ms > _HIDDEN_MS:
        return [f"the longest interval was {longest_ms:.0f} ms, and the summary says {said_ms}"]
    return []


def _told(outcome: Outcome) -> str:
    """The first line of what the summary, or the overlay, says was wrong; else ""."""
    errors = [] if outcome.summary is None else outcome.summary["errors"]
    overlay = [text for _, text in outcome.seen.told]
    outputs = [] if outcome.summary is None else outcome.summary.get("outputs", {}).values()
    unsaved = [each["error"] for each in outputs if each["error"]]
    lines = [*errors, *overlay, *unsaved]
    if outcome.summary is None:
        lines += [line for line in outcome.said if line.startswith("error: ")]
    return next((line.strip().partition("\n")[0] for line in lines), "")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 2)
