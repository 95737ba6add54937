"""DNNs, processors and options of a coordinator, drawn at random."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from heimdall.vocabulary.enums import ChunkMode, ProcessorKind
from heimdall.vocabulary.plans import DnnPlan, Exit, StagePlan
from heimdall.vocabulary.processors import GPU, SERVER, Processor, usual
from tests.stages import MS, make_plan, make_stage

FRAME_NS = 33 * MS


@st.composite
def stage_plans(draw: Any, remote: bool) -> StagePlan:
    """A network of few ops, perhaps with some that the GPU lacks, or with an early exit."""
    ops = draw(st.lists(st.sampled_from([0.2, 1, 3, 7, 20]), min_size=1, max_size=6))
    off = draw(st.sets(st.integers(0, len(ops) - 1), max_size=2))
    stage = make_stage(ops, fallback=off, chunk_cost_ms=draw(st.sampled_from([0, 0.1])))
    if remote:
        stage = replace(stage, remote_ns=draw(st.sampled_from([5, 60])) * MS)
    if len(ops) > 2 and not off and draw(st.booleans()):
        head = draw(st.integers(1, len(ops) - 2))
        exits = (
            Exit("early", ((0, head + 1),), 0.5),
            Exit("whole", ((0, head), (head + 1, len(ops))), 0.9),
        )
        stage = replace(stage, exits=exits)
    return stage


@st.composite
def dnn_plans(draw: Any, name: str, remote: bool = False) -> DnnPlan:
    """One DNN: of frames, continuous or asked for, or of requests."""
    stages = draw(st.lists(stage_plans(remote), min_size=1, max_size=2))
    queued, built = draw(st.sampled_from([(False, True), (False, True), (True, True), (0, 0)]))
    plan = make_plan(
        name,
        *stages,
        constraint_ms=draw(st.sampled_from([20, 200, 1000])),
        priority=draw(st.sampled_from(["low", "normal", "high"])),
        continuous=not queued and draw(st.booleans()),
        min_interval_ms=draw(st.sampled_from([0, 0, 80])),
    )
    return replace(plan, queued=bool(queued), built=bool(built))


OPTIONS: Any = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(ChunkMode.values()),
        "offload": st.booleans(),
        "offload_margin": st.sampled_from([0.0, 0.2]),
        "offload_interval_ns": st.sampled_from([50 * MS, 1000 * MS]),
        "content": st.sampled_from(["paper", "aging"]),
        "render_priority": st.sampled_from(["top", "top", "equal"]),
        "admission": st.sampled_from(["one-in-flight", "queue(2)", "replace", "all"]),
        "repeats": st.booleans(),
    }
)
PROCESSORS = st.sampled_from(
    [
        usual(1),
        usual(2),
        (*usual(1), SERVER),
        (Processor(GPU, ProcessorKind.GPU, renders=True, lanes=2), usual(2)[1]),
    ]
)
