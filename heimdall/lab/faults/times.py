"""What the times of frames and results say: rates, the worst window, what is lost, when all is as
before.

All times are those that were noted as frames were shown and results came, by one clock that knows
no pause. A window of a third of a second that lies over a stall counts in full.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np

from heimdall.lab.faults.notes import Seen

WINDOW_S = 1 / 3
LEAST_IN_WINDOW = 27 / 30  # of the frame rate asked for
SOME = 2.0  # results that a DNN owes in a span before it counts
_LONGER = 1.5  # than any before: then a DNN's results do not come at their rate yet
_ROUNDING = 1e-3  # fps

Span = tuple[int, int]  # ns


def rounded(value: float | None) -> float | None:
    """A figure for a report."""
    return None if value is None else round(float(value), 2)


def is_slow(worst: float, fps: float) -> bool:
    """True if the worst window is below its bound."""
    return worst < LEAST_IN_WINDOW * fps - _ROUNDING


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


def measured(seen: Seen) -> list[int]:
    """The frames since the run was warm, or since its fault began where that was before."""
    starts = [each for each in (seen.warm_ns, seen.began_ns) if each is not None]
    start = min(starts) if starts else 0
    return [each for each in seen.frames if each >= start]


# --- DNNs ------------------------------------------------------------------------------------


def lost_results(seen: Seen, until_ns: int) -> int:
    """How many inferences gave no result, and were not put back: those that failed, and those that
    are under way for longer than any that gave one; less those that the fault itself took from
    their DNN. What the end of the run cuts short is not lost."""
    taken = Counter(dnn for _, dnn in seen.acted)
    last_ns = seen.frames[-1] if seen.frames else until_ns
    jobs = seen.jobs.values()
    lasted = [
        each.ended_ns - each.began_ns for each in jobs if each.ended_ns and each.end == "result"
    ]
    usual_ns = max([round(1e9), *lasted])
    lost: Counter[str] = Counter()
    for job in jobs:
        ended = job.ended_ns is not None and job.ended_ns <= last_ns
        forgotten = not ended and last_ns - job.began_ns > usual_ns
        lost[job.dnn] += forgotten or (ended and job.end == "lost")
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
        dnn: {name: rounded(_rate(times, *span)) for name, span in spans.items()}
        for dnn, times in seen.results.items()
    }


def _rate(times: Sequence[int], start: int, end: int) -> float | None:
    return 1e9 * sum(start <= each < end for each in times) / (end - start) if end > start else None


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
        if len(before) > SOME:
            back.append(_results_back(times, before, end_ns, until_ns))
    known = [each for each in back if each is not None]
    return max(0, *known) / 1e9 if len(known) == len(back) else None


def _frames_back(seen: Seen, end_ns: int) -> int | None:
    """From the end of the fault to the first frame after which a whole second goes well."""
    frames, second_ns = seen.frames, round(1e9)
    first = max(0, bisect.bisect_right(frames, end_ns) - 1)
    for index in range(first, len(frames)):
        last = bisect.bisect_right(frames, frames[index] + second_ns)
        if last == len(frames):
            return None
        worst = worst_window(frames[index : last + 1], seen.fps)  # with the first one after it
        if worst is not None and not is_slow(worst, seen.fps):
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
