"""Events that cannot happen to a coordinator as it is: it refuses them without effect."""

from __future__ import annotations

from dataclasses import replace

from heimdall.vocabulary.enums import ChunkMode
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnAdded,
    DnnAdjusted,
    DnnBuilt,
    DnnMoved,
    DnnRemoved,
    Event,
    FallbackFinished,
    FrameArrived,
    InferenceRequested,
    InputReady,
    JobFailed,
    ProcessorBack,
    ProcessorLost,
    Reconfigured,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU, GPU
from tests.coordinator.drawn import FRAME_NS
from tests.coordinator.ledger import Ledger, places


def impossible(ledger: Ledger) -> list[Event]:
    """Events that nothing has led to."""
    jobs = ledger.jobs.values()
    known = [plan.name for plan in ledger.plans.values()]
    never = 10**9
    found: list[Event] = [
        InputReady(never),
        ChunkFinished(never, GPU, 0, 1, 1),
        ChunkFinished(-1, GPU, 0, 1, 1),
        FallbackFinished(never, 1, 1),
        JobFailed(never, "?"),
        InferenceRequested("nobody"),
        DnnRemoved("nobody"),
        DnnMoved("nobody", GPU),
        DnnMoved(known[0] if known else "nobody", "toaster"),
        ProcessorLost("toaster"),
        ProcessorBack("toaster"),
        FrameArrived((*known, "nobody"), 10**6),
        Reconfigured("nobody", ChunkMode.STATIC, FRAME_NS, ()),
        Reconfigured("max-min", "whatever", FRAME_NS, ()),
        Reconfigured("max-min", ChunkMode.STATIC, FRAME_NS, (((0, 1),),) * 99),
        DnnAdded(DnnPlan(next(iter(ledger.gone), "new"), (), 1)),
    ]
    if known:
        plan = ledger.plans[known[0]]
        networks = [stage for each in ledger.plans.values() for stage in each.stages]
        gaps = tuple(((0, len(stage.op_ns) + 1),) for stage in networks)
        found += [
            DnnAdded(plan),
            DnnBuilt(replace(plan, built=False)),
            DnnBuilt(replace(plan, stages=(*plan.stages, *plan.stages))),
            DnnAdjusted(plan.name, "utmost", plan.utility, 1, 0),
            DnnAdjusted(plan.name, "low", plan.utility, -1, 0),
            Reconfigured("max-min", ChunkMode.STATIC, FRAME_NS, gaps),
        ]
        found += [
            DnnMoved(name, each)
            for name in known
            for each in ledger.lanes
            if each not in places(ledger.plans[name])
        ]
    for job in jobs:
        span = job.span
        if job.doing != "preparing":
            found += [InputReady(job.id), InputReady(job.id, 2)]
        else:
            found += [InputReady(job.id, -1)]
        if job.doing != "fallback":
            found += [FallbackFinished(job.id, span[1], 1)]
        else:
            found += [FallbackFinished(job.id, span[1] + 1, 1)]
        if job.doing != "running":
            if not ledger.late_of_lost:
                found += [ChunkFinished(job.id, job.processor, *span, 1)]
            continue
        there, others = job.processor, {GPU, CPU, "toaster"} - {job.processor}
        if ledger.late_of_lost:
            continue
        found += [ChunkFinished(job.id, each, *span, 1) for each in sorted(others)]
        found += [
            ChunkFinished(job.id, there, span[0] + 1, span[1], 1),
            ChunkFinished(job.id, there, span[0], span[1] + 1, 1),
            ChunkFinished(job.id, there, span[0], span[0], 1),
            ChunkFinished(job.id, there, *span, -1),
        ]
    for id in [id for id in ledger.finished if id not in ledger.undecoded][-3:]:
        found += [InputReady(id)]
        if not ledger.late_of_lost:
            found += [ChunkFinished(id, GPU, 0, 1, 1)]
    return found
