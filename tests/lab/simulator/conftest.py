"""Small machines and DNNs with literal times, in ms."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from heimdall.cli import main
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.schedulers.utility import utility_for
from heimdall.vocabulary.plans import DnnPlan, StagePlan

MS = 1_000_000


def make_machine(**changes) -> Machine:
    """30 fps leave gaps of 30 ms; nothing else takes time."""
    return Machine(
        **{
            "name": "test",
            "gpu": "test",
            "cpu": "test",
            "render_ns": 10 * MS // 3,
            "batch_ns": 20 * MS,
            "chunk_cost_ns": 0,
            "guard_ns": 0,
            "cores": 4,
            **changes,
        }
    )


def make_dnn(
    name: str,
    op_ms: Sequence[float],
    *,
    fallback: Sequence[int] = (),
    cpu_ms: float = 500,
    prepare_ms: float = 1,
    priority: str = "normal",
    constraint_ms: float = 1000,
    max_rate_hz: float | None = None,
    **rest,
) -> SimulatedDnn:
    stage = StagePlan(
        op_ns=tuple(round(ms * MS) for ms in op_ms),
        fallback=tuple(i in fallback for i in range(len(op_ms))),
        cpu_ns=round(cpu_ms * MS),
        chunk_cost_ns=0,
        chunks=(),
    )
    plan = DnnPlan(
        name,
        (stage,),
        round(constraint_ms * MS),
        utility=utility_for(priority, constraint_ms),
        min_interval_ns=round(1e9 / max_rate_hz) if max_rate_hz else 0,
        continuous="event" not in rest,
        priority=priority,
    )
    return SimulatedDnn(plan, prepare_ns=((round(prepare_ms * MS),),), decode_ns=0, **rest)


@pytest.fixture
def machine():
    return make_machine


@pytest.fixture
def dnn():
    return make_dnn


@pytest.fixture
def run_command(capsys):
    """``run_command("shopping", ...)``: the status of ``heimdall simulate``, and what it says."""

    def run(*arguments: str):
        with pytest.raises(SystemExit) as ended:
            main(["simulate", *arguments])
        return ended.value.code, capsys.readouterr()

    return run
