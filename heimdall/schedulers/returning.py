"""Jobs that run an op on the CPU and want the GPU back (Heimdall, section 7.2).

The GPU is another DNN's meanwhile. But a chunk cannot be taken back: one as long as a gap would
keep an urgent job waiting at each of its fallback ops, which is what ruins StyleTransfer in an
uncoordinated app (section 3.2.2). So what runs meanwhile ends when the urgent job returns.
"""

from __future__ import annotations

from heimdall.schedulers.base import Assignment, Choice, JobView, View


def meanwhile(
    view: View, job: JobView, fits_op: int, awaited: JobView, now_ns: int
) -> Choice | None:
    """As much of ``job`` (of which ops up to ``fits_op`` fit the gap) as fits until ``awaited`` is
    back from the CPU; None when no op does (or, where chunks cannot be cut, not all of it): then
    the wait is shorter than what it would have to wait for.

    One that is late is taken to be late by as much again, so that the GPU does not stand still
    for fallback ops that take far longer than expected.
    """
    left_ns = abs(awaited.back_ns - now_ns)
    end_op = min(job.costs[job.stage].longest(job.next_op, left_ns), fits_op)
    if end_op == job.next_op or (end_op < fits_op and not view.cuts_anywhere):
        return None
    reason = f"until {awaited.dnn} is back from the CPU"
    return Choice((Assignment(job.id, end_op),), reason)
