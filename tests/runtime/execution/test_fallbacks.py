"""Fallback ops begin as soon as the chunk before them ends; what was decided is what is told."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

from heimdall.engine.network import LoadedNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeEngine, OnnxRuntimeNetwork
from heimdall.vocabulary.events import (
    ChunkFinished,
    Drop,
    FallbackFinished,
    Finish,
    InputReady,
    Prepare,
    RunFallback,
)
from heimdall.vocabulary.processors import GPU
from tests.runtime.execution.test_executor import Bench

JOB = 5
ASKED = RunFallback(JOB, "twice", 0, 0, 1, 2)


@pytest.fixture
def bench():
    made = Bench(OnnxRuntimeEngine(processor=GPU), forced=("Relu",))
    yield made
    made.executor.close()


@pytest.fixture
def ran(monkeypatch):
    """What ran of the fallback ops: (start, end); and what waits for one more."""
    runs, count = [], threading.Semaphore(0)
    run_any = LoadedNetwork.run_any

    def counted(network, state, start, end):
        elapsed_ns = run_any(network, state, start, end)
        runs.append((start, end))
        count.release()
        return elapsed_ns

    monkeypatch.setattr(OnnxRuntimeNetwork, "run_any", counted)
    return runs, partial(count.acquire, timeout=20)


def test_they_run_before_they_are_asked_for_and_once(bench, ran):
    runs, wait = ran
    assert bench.do(Prepare(JOB, "twice", 0)) == InputReady(JOB, 1, 0.0, 1)
    assert isinstance(bench.chunk(0, 1), ChunkFinished)
    assert wait()
    assert bench.inbox.empty()  # nobody has decided that they should
    told = bench.do(ASKED)
    assert isinstance(told, FallbackFinished)
    assert (told.job, told.end_op) == (JOB, 2)
    assert runs == [(1, 2)]
    assert bench.do(Prepare(JOB, "twice", 1)) == InputReady(JOB, 2, 0.0)


def test_a_job_that_is_dropped_instead_is_not_told_of(bench, ran):
    _, wait = ran
    bench.do(Prepare(JOB, "twice", 0))
    bench.chunk(0, 1)
    assert wait()
    bench.executor.execute([Drop(JOB, "twice", "test")])
    assert bench.do(Prepare(6, "twice", 0)).job == 6
    assert bench.inbox.empty()


def test_a_job_that_begins_anew_is_computed_from_its_new_frame(bench, ran):
    _, wait = ran
    bench.do(Prepare(JOB, "twice", 0))
    bench.chunk(0, 1)
    assert wait()
    bench.image = np.full((4, 4, 3), 9, np.uint8)
    assert isinstance(bench.do(Prepare(JOB, "twice", 0, anew="the scene has changed")), InputReady)
    bench.chunk(0, 1)
    assert isinstance(bench.do(ASKED), FallbackFinished)
    bench.do(Prepare(JOB, "twice", 1))
    for task in (0, 1):
        bench.chunk(0, 1, stage=1, task=task)
        bench.do(RunFallback(JOB, "twice", 1, task, 1, 2))
    assert bench.do(Finish(JOB, "twice", GPU, 1, False, 3, 2)).value[0] == [18.0]


def test_what_went_wrong_with_them_is_told_once_they_are_asked_for(bench, monkeypatch):
    failed = threading.Event()

    def fail(network, state, start, end):
        failed.set()
        raise RuntimeError("no such op")

    bench.do(Prepare(JOB, "twice", 0))
    monkeypatch.setattr(OnnxRuntimeNetwork, "run_any", fail)
    bench.chunk(0, 1)
    assert failed.wait(20)
    assert bench.inbox.empty()
    told = bench.do(ASKED)
    assert (told.job, told.error) == (JOB, "fallback op: RuntimeError: no such op")
