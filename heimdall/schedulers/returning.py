"""Jobs that run an op on the CPU and want the GPU back (Heimdall, section 7.2).

The GPU is another DNN's meanwhile. But a chunk cannot be taken back: one as long as a gap would
keep an urgent job waiting at each of its fallback ops, which is what ruins StyleTransfer in an
uncoordinated app (section 3.2.2). So what runs meanwhile ends when the urgent job returns.
"""

from __future__ import annotations

from heimdall.schedulers.base import Assignment, Choice, JobView


def meanwhile(job: JobView, awaited: JobView) -> Choice | None:
    """As much of ``job`` as fits while ``awaited`` is on the CPU; None when no op does: then the
    wait is shorter than what it would have to wait for."""
    away = awaited.costs[awaited.stage]
    left_ns = away.fallback_ns(awaited.next_op, away.run_end[awaited.next_op])
    end_op = min(job.costs[job.stage].longest(job.next_op, left_ns), job.end_op)
    if end_op == job.next_op:
        return None
    reason = f"until {awaited.dnn} is back from the CPU"
    return Choice((Assignment(job.id, end_op, job.processor),), reason)
