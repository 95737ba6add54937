"""What hangs is named and given up, and everything else goes on: by a clock that the test moves."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pytest

from heimdall.app import DNN
from heimdall.capture import Frame
from heimdall.engine.null import NullEngine, NullNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.runtime.execution import prober
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.executor import Executor
from heimdall.runtime.execution.pool import MOST_HANGING
from heimdall.runtime.execution.runs import Result
from heimdall.vocabulary.events import (
    ChunkFinished,
    Drop,
    Finish,
    InputReady,
    JobFailed,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RunChunk,
    RunFallback,
)
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU
from tests.runtime.execution.test_executor import doubling_graph

PICTURE = np.full((4, 4, 3), 7, np.uint8)


class Mean(Pipeline):
    """``hangs``: the step that waits until it is released."""

    networks = (Network("none.onnx"),)
    hangs = ""

    def __init__(self):
        self.began, self.released = threading.Semaphore(0), threading.Event()

    def wait(self, step):
        if self.hangs == step:
            self.began.release()
            self.released.wait(20)

    def prepare(self, stage, image, previous, options):
        self.wait("prepare")
        return [Prepared({"x": np.full((1, 3), float(image.mean()), np.float32)})]

    def decode(self, stage, outputs, context):
        self.wait("decode")
        return float(outputs["y"][0, 0])


class Bench:
    """An executor whose time stands still, with two DNNs: ``bad``, which may hang, and ``good``."""

    def __init__(self):
        self.now_ns = 0
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        self.executor = Executor(self.inbox, clock=lambda: self.now_ns, urgent=False)
        self.pipelines = {name: Mean() for name in ("bad", "good")}
        for name, pipeline in self.pipelines.items():
            dnn, graphs = DNN(name, model=pipeline), [doubling_graph()]
            deployment = Deployment(dnn, pipeline, graphs, OnnxRuntimeEngine())
            deployment.place(GPU, [NullEngine().load(graph) for graph in graphs])
            deployment.complete([StagePlan((1, 1), (False, False), 1, 0, ())])
            self.executor.add(name, deployment, lambda: Frame(PICTURE, 1, 0))
        self.bad = self.pipelines["bad"]
        self.jobs = 0

    def get(self):
        return self.inbox.get(timeout=20)

    def nothing(self):
        return self.inbox.empty()

    def pass_s(self, seconds):
        self.now_ns += round(seconds * 1e9)
        self.executor.watch()

    def begin(self, name):
        """A new job; its number."""
        self.jobs += 1
        self.executor.execute([Prepare(self.jobs, name, 0)])
        return self.jobs

    def chunk(self, job, name, expected_ns=0):
        self.executor.execute([RunChunk(job, name, 0, 0, GPU, 0, 2, expected_ns, "test")])

    def result(self, name):
        """A whole job, and what came of it."""
        job = self.begin(name)
        assert isinstance(self.get(), InputReady)
        self.chunk(job, name)
        assert isinstance(self.get(), ChunkFinished)
        self.executor.execute([Finish(job, name, GPU, 1, False, 1)])
        return self.get()

    def errors(self, name):
        return self.executor.errors_of([name])


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(prober, "EVERY_S", 0.01)
    made = Bench()
    yield made
    for pipeline in made.pipelines.values():
        pipeline.released.set()
    made.executor.close()


def hung(bench, step):
    """Have one job of the bad DNN hang, and be given up; its number."""
    bench.bad.hangs = step
    if step == "prepare":
        job = bench.begin("bad")
    else:
        job = bench.begin("bad")
        assert isinstance(bench.get(), InputReady)
        bench.chunk(job, "bad")
        assert isinstance(bench.get(), ChunkFinished)
        bench.executor.execute([Finish(job, "bad", GPU, 1, False, 1)])
    assert bench.bad.began.acquire(timeout=20)
    bench.pass_s(0.9)
    assert bench.nothing()
    bench.pass_s(0.2)
    failed = bench.get()
    assert isinstance(failed, JobFailed)
    assert failed.job == job
    if step == "prepare":
        bench.executor.execute([Drop(job, "bad", "failed")])
    return job


@pytest.mark.parametrize(("step", "said"), [("prepare", "preprocess"), ("decode", "decode")])
def test_what_hangs_fails_its_job_after_a_second_and_is_named(bench, step, said):
    hung(bench, step)
    assert bench.errors("bad") == [
        f"bad: {said} failed: OverdueError: it has not come back for 1.1 s"
    ]
    assert bench.errors("good") == []
    assert isinstance(bench.result("good"), Result)


@pytest.mark.parametrize("step", ["prepare", "decode"])
def test_others_never_wait_behind_what_has_hung_once(bench, step):
    hung(bench, step)
    for _ in range(MOST_HANGING - 1):
        bench.begin("bad") if step == "prepare" else hung(bench, step)
        assert isinstance(bench.result("good"), Result)
        if step == "prepare":
            assert bench.bad.began.acquire(timeout=20)
            bench.pass_s(1.1)
            assert isinstance(bench.get(), JobFailed)


def test_code_that_hangs_in_many_threads_is_called_again_when_they_are_back(bench):
    for _ in range(MOST_HANGING):
        hung(bench, "prepare")
    threads = threading.active_count()
    job = bench.begin("bad")
    assert bench.get() == JobFailed(job, f"preprocess: AppError: it hangs in {MOST_HANGING} "
                                         "threads, and is not called meanwhile")  # fmt: skip
    assert threading.active_count() == threads
    bench.bad.hangs = ""
    bench.bad.released.set()
    for _ in range(2000):
        found = bench.begin("bad"), bench.get()
        bench.executor.execute([Drop(found[0], "bad", "seen")])
        if isinstance(found[1], InputReady):
            break
        threading.Event().wait(0.01)
    assert isinstance(bench.result("bad"), Result)


@pytest.mark.parametrize("step", ["prepare", "decode"])
def test_what_comes_after_all_is_not_used(bench, step):
    hung(bench, step)
    bench.bad.hangs = ""
    bench.bad.released.set()
    for thread in threading.enumerate():
        if thread.name == "pool-0":
            thread.join(0.5)
    assert isinstance(bench.result("good"), Result)
    assert bench.nothing()


def test_a_job_given_up_in_the_moment_it_went_on_fails_once(bench):
    job = bench.begin("bad")
    assert isinstance(bench.get(), InputReady)
    bench.executor.runs[job].abandon()  # its thread has not said yet that it is done
    bench.chunk(job, "bad")
    assert isinstance(bench.get(), ChunkFinished)
    bench.executor.execute([Finish(job, "bad", GPU, 1, False, 1)])
    assert isinstance(bench.result("good"), Result)
    assert bench.nothing()
    assert bench.errors("bad") == []


class Stuck:
    """The GPU hangs until it is released."""

    def __init__(self, monkeypatch, method):
        self.began, self.released = threading.Event(), threading.Event()
        self.working = False
        original = getattr(NullNetwork, method)

        def run(network, *arguments):
            if not self.working:
                self.began.set()
                self.released.wait(20)
            return original(network, *arguments)

        monkeypatch.setattr(NullNetwork, method, run)


def test_a_chunk_that_never_ends_costs_its_processor_until_that_works_again(bench, monkeypatch):
    gpu = Stuck(monkeypatch, "run_parts")
    job = bench.begin("bad")
    assert isinstance(bench.get(), InputReady)
    bench.chunk(job, "bad")
    assert gpu.began.wait(20)
    bench.pass_s(1.1)
    assert bench.get() == ProcessorLost(GPU)
    assert bench.errors("bad") == [
        "bad: gpu inference failed: OverdueError: it has not come back for 1.1 s"
    ]
    bench.executor.execute([Drop(job, "bad", "gpu lost")])
    gpu.working = True
    assert bench.get() == ProcessorBack(GPU)
    assert isinstance(bench.result("bad"), Result)  # on another thread, in another state
    gpu.released.set()
    for thread in threading.enumerate():
        if thread.name == "gpu-0":
            thread.join(0.5)
    assert bench.nothing()  # the thread that is back tells nothing


def test_a_chunk_may_take_twenty_times_what_was_expected(bench, monkeypatch):
    gpu = Stuck(monkeypatch, "run_parts")
    job = bench.begin("bad")
    assert isinstance(bench.get(), InputReady)
    bench.chunk(job, "bad", expected_ns=200_000_000)
    assert gpu.began.wait(20)
    bench.pass_s(3.9)
    assert bench.nothing()
    gpu.released.set()
    assert isinstance(bench.get(), ChunkFinished)


def test_fallback_ops_that_hang_fail_their_job(bench, monkeypatch):
    cpu = Stuck(monkeypatch, "run_any")
    job = bench.begin("bad")
    assert isinstance(bench.get(), InputReady)
    bench.executor.execute([RunFallback(job, "bad", 0, 0, 0, 2)])
    assert cpu.began.wait(20)
    bench.pass_s(1.1)
    failed = bench.get()
    assert (failed.job, failed.error[:11]) == (job, "fallback op")
    cpu.working = True
    cpu.released.set()


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["prepare", "decode"])
def test_nothing_that_code_raises_takes_a_thread_with_it(bench, monkeypatch, step, error):
    def exit(stage, *arguments):
        raise error("out")

    monkeypatch.setattr(bench.bad, step, exit)
    for _ in range(4):
        if step == "prepare":
            job = bench.begin("bad")
            failed = bench.get()
            bench.executor.execute([Drop(job, "bad", "failed")])
        else:
            failed = bench.result("bad")
        assert isinstance(failed, JobFailed)
    assert isinstance(bench.result("good"), Result)


def test_values_that_are_no_numbers_fail_the_job(bench, monkeypatch):
    def prepare(stage, image, previous, options):
        return [Prepared({"x": np.array([[1.0, np.nan, 2.0]], np.float32)})]

    monkeypatch.setattr(bench.bad, "prepare", prepare)
    job = bench.begin("bad")
    failed = bench.get()
    assert failed.job == job
    assert "input 'x'" in failed.error
    assert "no numbers" in failed.error
