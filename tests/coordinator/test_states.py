from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

import heimdall.coordinator
from heimdall.coordinator.dnn import Dnn
from heimdall.coordinator.job import Job
from heimdall.coordinator.states import TABLE, CoordinationError, PutBack, State
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnBuilt,
    DnnRemoved,
    Drop,
    FallbackFinished,
    Finish,
    InputReady,
    JobFailed,
    Prepare,
    ProcessorLost,
    RunChunk,
    RunFallback,
    RunTogether,
)

EVENTS = (
    InputReady, RunChunk, ChunkFinished, RunFallback, FallbackFinished, Prepare, Finish,
    JobFailed, ProcessorLost, DnnRemoved, DnnBuilt, Drop, PutBack, RunTogether,
)  # fmt: skip

LIFE: dict[tuple[str, type], str] = {
    ("preparing", InputReady): "ready",
    ("ready", RunChunk): "running",
    ("ready", RunTogether): "running",
    ("running", ChunkFinished): "ready",
    ("ready", RunFallback): "fallback",
    ("fallback", FallbackFinished): "ready",
    ("ready", Prepare): "preparing",
    ("ready", Finish): "finished",
    ("finished", JobFailed): "finished",
    **{(s, JobFailed): "dropped" for s in ("preparing", "ready", "running", "fallback", "dropped")},
    **{(s, ProcessorLost): "dropped" for s in ("preparing", "ready", "running", "fallback")},
    **{(s, DnnRemoved): "dropped" for s in ("preparing", "ready", "running", "fallback")},
    **{(s, DnnBuilt): "dropped" for s in ("preparing", "ready", "running", "fallback")},
    **{(s, Drop): "dropped" for s in ("preparing", "ready", "running", "fallback")},
    ("running", PutBack): "ready",
    **{("dropped", late): "dropped" for late in (InputReady, ChunkFinished, FallbackFinished)},
}


@pytest.fixture
def job(sim):
    owner = Dnn(sim.plan("detect", sim.stage([5, 5])))
    plan = owner.plan
    return Job(
        id=3,
        dnn="detect",
        priority=plan.priority,
        utility=plan.utility,
        constraint_ns=plan.constraint_ns,
        arrival_ns=0,
        owner=owner,
        stage_costs=owner.costs[0],
    )


def test_the_table_speaks_of_these_events_and_no_others():
    assert {event for row in TABLE.values() for event in row} == set(EVENTS)
    assert set(TABLE) == set(State)


@pytest.mark.parametrize(
    ("state", "event"),
    list(itertools.product(State, EVENTS)),
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_an_event_leads_to_its_successor_or_is_refused(job, state, event):
    job.state = state
    if (state.value, event) in LIFE:
        job.happened(event)
        assert job.state is State(LIFE[state.value, event])
        return
    with pytest.raises(CoordinationError) as error:
        job.happened(event)
    for part in ("job 3", "'detect'", f"is {state.value}", f"{event.__name__} cannot happen"):
        assert part in str(error.value)
    assert job.state is state


def test_a_refusal_lists_what_can_happen(job):
    with pytest.raises(CoordinationError, match=r"\(only .*InputReady, JobFailed, ProcessorLost\)"):
        job.happened(RunChunk)


def test_the_state_of_a_job_is_set_in_one_place():
    """Else the table would not be the whole truth."""
    folder = Path(heimdall.coordinator.__file__).parent
    setting = [
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "state"
        and isinstance(node.ctx, ast.Store)
    ]
    assert setting == ["job.py"]
