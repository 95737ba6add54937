"""Actions become work on threads, and come back as events."""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time

import numpy as np
import pytest
from onnx import helper

from heimdall.app import DNN
from heimdall.capture import Frame
from heimdall.engine.null import NullEngine, NullNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeEngine, OnnxRuntimeNetwork
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.runtime.execution.chunks import GPU_FAILURES_UNTIL_LOST
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.executor import Executor
from heimdall.runtime.execution.runs import Result
from heimdall.system.workers import Workers
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnMoved,
    Drop,
    FallbackFinished,
    Finish,
    InputReady,
    JobFailed,
    Move,
    Prepare,
    ProcessorLost,
    RunChunk,
    RunFallback,
    Yield,
)
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU
from tests.networks import small_graph

IMAGE = np.full((4, 4, 3), 7, np.uint8)


def doubling_graph(length=2):
    """y = relu(x + x): two nodes, or more of the last."""
    names = ["s", *(f"s{i}" for i in range(length - 2)), "y"]
    nodes = [
        helper.make_node("Add", ["x", "x"], ["s"], name="add"),
        *(
            helper.make_node("Relu", [a], [b], name=f"relu {b}")
            for a, b in itertools.pairwise(names)
        ),
    ]
    return small_graph(nodes, {"x": [1, 3]}, {"y": [1, 3]})


class Mean(Pipeline):
    """Stage 0 doubles the picture's mean; stage 1 doubles each of two crops of the result."""

    networks = (Network("none.onnx"), Network("none.onnx"))
    broken = ""

    def prepare(self, stage, image, previous, options):
        if self.broken == "prepare":
            raise ValueError("no such picture")
        if stage == 0:
            start = float(image.mean()) + options.get("more", 0)
            return [Prepared({"x": np.full((1, 3), start, np.float32)}, "whole")]
        return [Prepared({"x": np.full((1, 3), previous[0] + i, np.float32)}, i) for i in (0, 1)]

    def decode(self, stage, outputs, context):
        if self.broken == "decode":
            raise ValueError("no such output")
        return float(outputs["y"][0, 0])

    def combine(self, results, image):
        return results


class Bench:
    """An executor with one DNN on null or real engines, and its inbox."""

    def __init__(self, gpu, pipeline=None, forced=(), op_ns=(1_000, 1_000), built=True, **options):
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        graphs = [doubling_graph(len(op_ns)), doubling_graph(len(op_ns))]
        pipeline = pipeline or Mean()
        dnn = DNN("twice", model=pipeline)
        deployment = Deployment(dnn, pipeline, graphs, OnnxRuntimeEngine())
        self.deployment = deployment
        self.image = IMAGE
        if built:
            self.build(gpu, forced, op_ns)
        else:
            deployment.begin_on_cpu()
        self.executor = Executor(self.inbox, **options)
        self.executor.add("twice", deployment, lambda: Frame(self.image, 1, 0))

    def build(self, gpu, forced=(), op_ns=(1_000, 1_000)):
        networks = [gpu.load(graph, force_fallback=forced) for graph in self.deployment.graphs]
        self.deployment.place(GPU, networks)
        marks = [tuple(op.fallback for op in network.ops) for network in networks]
        self.deployment.complete([StagePlan(op_ns, each, 1, 0, ()) for each in marks])

    def do(self, action):
        self.executor.execute([action])
        return self.inbox.get(timeout=20)

    def chunk(self, start, end, stage=0, task=0, processor=GPU):
        return self.do(RunChunk(5, "twice", stage, task, processor, start, end, 0, "test"))


@pytest.fixture
def bench():
    made = []

    def make(*arguments, **options):
        made.append(Bench(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.executor.close()


@pytest.mark.parametrize(("luminance", "levels"), [("cells", 0), ("pixels", 10)])
def test_a_changed_picture_is_told_with_how_much_it_changed(bench, luminance, levels):
    """Chequers whose light and dark fields change places: cells see the same grey."""
    b = bench(OnnxRuntimeEngine(processor=GPU), luminance=luminance)
    fields = np.indices((270, 480)).sum(0) % 2 * 10
    for job, image in enumerate((fields, 10 - fields)):
        b.image = image.astype(np.uint8)[..., None].repeat(3, 2)
        ready = b.do(Prepare(job, "twice", 0))
        b.executor.execute([Drop(job, "twice", "seen")])
    assert ready.luminance_difference == pytest.approx(levels * 1920 * 1080, abs=1920 * 1080)


def test_a_job_of_two_stages_runs_chunk_by_chunk_to_its_result(bench):
    b = bench(OnnxRuntimeEngine(processor=GPU), forced=("Relu",))
    assert b.do(Prepare(5, "twice", 0)) == InputReady(5, 1, 0.0, 1)
    assert isinstance(b.chunk(0, 1), ChunkFinished)
    assert isinstance(b.do(RunFallback(5, "twice", 0, 0, 1, 2)), FallbackFinished)
    assert b.do(Prepare(5, "twice", 1)) == InputReady(5, 2, 0.0)
    for task in (0, 1):
        b.chunk(0, 1, stage=1, task=task)
        b.do(RunFallback(5, "twice", 1, task, 1, 2))
    result = b.do(Finish(5, "twice", GPU, 1, False, 3, 2))
    assert isinstance(result, Result)
    assert result.value == [[14.0], [28.0, 30.0]]
    assert result.frame.image is IMAGE


def test_options_of_the_newest_request_reach_the_pipeline(bench):
    b = bench(OnnxRuntimeEngine(processor=GPU))
    b.executor.ask("twice", {"more": 3})
    b.do(Prepare(5, "twice", 0))
    ops = len(b.deployment.networks(GPU)[0].ops)
    b.chunk(0, ops)
    assert b.do(Finish(5, "twice", GPU, 1, False, 1)).value[0] == [20.0]


def test_on_the_cpu_the_whole_network_runs_whatever_the_gpus_ops_are(bench):
    b = bench(NullEngine())
    assert b.do(Move("twice", CPU, "test")) == DnnMoved("twice", CPU)
    b.do(Prepare(5, "twice", 0))
    event = b.chunk(0, 2, processor=CPU)
    assert (event.processor, event.end_op) == (CPU, 2)
    assert b.do(Finish(5, "twice", CPU, 1, False, 1)).value[0] == [14.0]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_cpu_runs_as_many_jobs_at_once_as_it_has_workers(bench, monkeypatch, workers):
    started, released = threading.Semaphore(0), threading.Event()
    run = OnnxRuntimeNetwork.run

    def wait(network, state, start, end):
        started.release()
        released.wait(20)
        return run(network, state, start, end)

    b = bench(NullEngine(), cpu_workers=workers)
    other = Bench(NullEngine()).deployment
    b.executor.add("other", other, lambda: Frame(IMAGE, 1, 0))
    jobs = ((5, "twice"), (6, "other"))
    for job, name in jobs:
        assert b.do(Move(name, CPU, "test")) == DnnMoved(name, CPU)
        b.do(Prepare(job, name, 0))
    monkeypatch.setattr(OnnxRuntimeNetwork, "run", wait)
    chunks = [RunChunk(job, name, 0, 0, CPU, 0, 2, 0, "") for job, name in jobs]
    b.executor.execute(chunks)
    assert started.acquire(timeout=20)
    assert started.acquire(timeout=20 if workers == 2 else 0.1) is (workers == 2)
    released.set()
    assert {b.inbox.get(timeout=20).job for _ in chunks} == {5, 6}
    assert b.do(Finish(6, "other", CPU, 1, False, 1)).value[0] == [14.0]


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="Linux's policies")
def test_a_dnn_that_has_only_the_cpu_is_not_run_in_the_background(bench, monkeypatch):
    policies = []
    run = OnnxRuntimeNetwork.run

    def tell(network, state, start, end):
        policies.append(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK)
        return run(network, state, start, end)

    b = bench(NullEngine(), built=False)
    monkeypatch.setattr(OnnxRuntimeNetwork, "run", tell)
    b.do(Prepare(5, "twice", 0))
    b.chunk(0, 1, processor=CPU)
    b.build(NullEngine())
    b.executor.execute([Drop(5, "twice", "built for the GPU", again=True)])
    b.do(Prepare(6, "twice", 0))
    b.do(RunChunk(6, "twice", 0, 0, CPU, 0, 2, 0, "offloaded"))
    assert policies == [os.SCHED_OTHER, os.SCHED_IDLE]


def test_a_dnn_that_was_built_does_not_wait_for_what_it_left_on_the_cpu(bench, monkeypatch):
    started, released = threading.Event(), threading.Event()
    run = OnnxRuntimeNetwork.run

    def hang(network, state, start, end):
        started.set()
        released.wait(20)
        return run(network, state, start, end)

    b = bench(OnnxRuntimeEngine(processor=GPU), built=False)
    with monkeypatch.context() as patched:
        patched.setattr(OnnxRuntimeNetwork, "run", hang)
        b.do(Prepare(5, "twice", 0))
        b.executor.execute([RunChunk(5, "twice", 0, 0, CPU, 0, 1, 0, "test")])
        assert started.wait(20)
    b.build(OnnxRuntimeEngine(processor=GPU))
    assert b.do(Move("twice", GPU, "built for the GPU")) == DnnMoved("twice", GPU)
    b.executor.execute([Drop(5, "twice", "built for the GPU", again=True)])
    b.do(Prepare(6, "twice", 0))
    b.do(RunChunk(6, "twice", 0, 0, GPU, 0, 2, 0, "test"))
    assert b.do(Finish(6, "twice", GPU, 1, False, 1)).value[0] == [14.0]
    released.set()
    assert b.inbox.get(timeout=20).job == 5  # it still reports back


def test_a_pipeline_that_raises_fails_its_job_and_is_reported(bench):
    pipeline = Mean()
    pipeline.broken = "prepare"
    b = bench(NullEngine(), pipeline)
    event = b.do(Prepare(5, "twice", 0))
    assert event == JobFailed(5, "preprocess: ValueError: no such picture")
    assert b.executor.errors_of(["twice"]) == [
        "twice: preprocess failed: ValueError: no such picture"
    ]


def test_a_result_that_cannot_be_decoded_is_reported_to_the_coordinator(bench):
    pipeline = Mean()
    pipeline.broken = "decode"
    b = bench(NullEngine(), pipeline)
    b.do(Prepare(5, "twice", 0))
    b.chunk(0, 2)
    assert b.do(Finish(5, "twice", GPU, 1, False, 1)) == JobFailed(
        5, "decode: ValueError: no such output"
    )


def fail(network, state, start, ends, go_on):
    raise OSError("the device is gone")


def test_a_gpu_that_fails_again_and_again_is_given_up(bench, monkeypatch):
    monkeypatch.setattr(NullNetwork, "run_parts", fail)
    b = bench(NullEngine())
    for _ in range(GPU_FAILURES_UNTIL_LOST):
        b.do(Prepare(5, "twice", 0))
        assert isinstance(b.chunk(0, 2), JobFailed)
        b.executor.execute([Drop(5, "twice", "failed")])
    assert b.inbox.get(timeout=20) == ProcessorLost(GPU)
    assert "the GPU failed repeatedly" in b.executor.errors_of(["twice"])[-1]


def test_what_fails_is_told_to_those_whom_it_concerns(bench, monkeypatch):
    pipeline = Mean()
    b = bench(NullEngine(), pipeline)
    b.executor.add("twice:2", b.deployment, lambda: Frame(IMAGE, 1, 0))
    pipeline.broken = "prepare"
    b.do(Prepare(4, "twice:2", 0))
    fault = "twice: preprocess failed: ValueError: no such picture"  # by the app's own name
    assert b.executor.errors_of(["twice:2"]) == [fault]
    assert b.executor.message_of(["twice:2"]) == fault
    assert (b.executor.errors_of(["twice"]), b.executor.message_of(["twice"])) == ([], "")
    pipeline.broken = ""
    monkeypatch.setattr(NullNetwork, "run_parts", fail)
    for job in range(5, 5 + GPU_FAILURES_UNTIL_LOST):
        b.do(Prepare(job, "twice", 0))
        b.do(RunChunk(job, "twice", 0, 0, GPU, 0, 2, 0, "test"))
        b.executor.execute([Drop(job, "twice", "failed")])
    assert b.inbox.get(timeout=20) == ProcessorLost(GPU)
    lost = "the GPU failed repeatedly: its DNNs move to the CPU"  # that concerns all
    assert b.executor.errors_of(["twice:2"]) == [fault, lost]
    assert b.executor.message_of(["twice:2"]) == lost
    b.executor.execute([Drop(4, "twice:2", "failed")])
    assert b.executor.remove(["twice:2"])
    assert b.executor.errors_of(["twice:2"]) == [lost]


class Slow(Mean):
    """Preprocessing that takes until it is released."""

    def __init__(self):
        self.started, self.released = threading.Event(), threading.Event()

    def prepare(self, stage, image, previous, options):
        self.started.set()
        self.released.wait(20)
        return super().prepare(stage, image, previous, options)


def test_a_dnn_moves_to_the_cpu_behind_what_is_loaded_there(bench):
    """Else it has left the GPU, and its first job on the CPU waits for the networks of others."""
    b = bench(NullEngine())
    b.executor.preload(["twice"])
    assert b.executor.preloaded.wait(20)
    started, released = threading.Event(), threading.Event()

    class Slow(OnnxRuntimeEngine):
        def load(self, graph, **options):
            started.set()
            released.wait(20)
            return super().load(graph, **options)

    pipeline = Mean()
    other = Deployment(DNN("other", model=pipeline), pipeline, b.deployment.graphs, Slow())
    b.executor.add("other", other, lambda: Frame(IMAGE, 1, 0))
    b.executor.preload(["other"])
    assert started.wait(20)
    b.executor.execute([Move("twice", CPU, "test")])
    with pytest.raises(queue.Empty):
        b.inbox.get(timeout=0.2)
    released.set()
    assert b.inbox.get(timeout=20) == DnnMoved("twice", CPU)


def test_a_dnn_that_is_removed_is_not_run_any_more(bench):
    b = bench(NullEngine())
    b.executor.add("twice:2", b.deployment, lambda: Frame(IMAGE, 1, 0))
    b.do(Prepare(5, "twice", 0))
    b.executor.execute([Drop(5, "twice", "removed")])
    assert b.executor.remove(["twice", "twice:2"])
    assert not b.deployment.in_use
    b.deployment.close()
    with pytest.raises(KeyError):
        b.executor.execute([Prepare(6, "twice", 0)])


def test_networks_that_a_thread_still_uses_are_not_freed(bench, monkeypatch, caplog):
    freed: list[NullNetwork] = []
    monkeypatch.setattr("heimdall.runtime.execution.executor.DRAIN_S", 0.05)
    monkeypatch.setattr(NullNetwork, "close", freed.append)
    slow = Slow()
    b = bench(NullEngine(), slow)
    b.executor.execute([Prepare(5, "twice", 0)])
    assert slow.started.wait(20)
    b.executor.execute([Drop(5, "twice", "removed")])
    assert not b.executor.remove(["twice"])
    b.deployment.close()
    assert freed == []
    assert "twice: still in use" in caplog.text
    slow.released.set()
    assert b.inbox.get(timeout=20) == InputReady(5, 1, 0.0, 1)  # it could go on with what it had


def test_dnns_that_leave_are_not_loaded_any_more(bench, monkeypatch):
    loading, released, loaded = threading.Event(), threading.Event(), []

    def load(deployment, processor):
        loaded.append(deployment)
        loading.set()
        released.wait(20)

    monkeypatch.setattr(Deployment, "load", load)
    monkeypatch.setattr(Deployment, "warm_up", lambda deployment, processor: None)
    b = bench(NullEngine())
    b.executor.add("twice:2", b.deployment, lambda: Frame(IMAGE, 1, 0))
    b.executor.preload(["twice", "twice:2"])
    assert loading.wait(20)
    drain = Workers.drain

    def released_when_waited_for(workers, timeout_s):
        released.set()
        return drain(workers, timeout_s)

    monkeypatch.setattr(Workers, "drain", released_when_waited_for)
    assert b.executor.remove(["twice", "twice:2"])
    assert b.executor.preloaded.is_set()
    assert loaded == [b.deployment]


def test_fallback_ops_do_not_wait_for_preprocessing(bench):
    slow = Slow()
    slow.released.set()
    b = bench(OnnxRuntimeEngine(processor=GPU), slow, forced=("Relu",))
    b.do(Prepare(5, "twice", 0))
    b.chunk(0, 1)
    slow.released.clear()
    b.executor.execute([Prepare(job, "twice", 0) for job in (6, 7, 8)])  # more than the pool has
    assert b.do(RunFallback(5, "twice", 0, 0, 1, 2)).job == 5
    b.executor.execute([Drop(job, "twice", "test") for job in (5, 6, 7, 8)])
    slow.released.set()


@pytest.mark.parametrize(("asked", "meanwhile"), [(True, 0), (False, 0), (True, 1), (True, 2)])
def test_a_chunk_ends_early_when_it_is_asked_to_yield(bench, monkeypatch, asked, meanwhile):
    """Also where chunks begin on another processor ``meanwhile``."""
    started, released = threading.Event(), threading.Event()

    def run_parts(network, state, start, ends, go_on):
        started.set()
        released.wait(20)
        return (ends[2] if go_on(2) else ends[1]), 1

    monkeypatch.setattr(NullNetwork, "run_parts", run_parts)
    b = bench(NullEngine(), op_ns=(4_000_000,) * 3)
    b.executor.add("other", Bench(NullEngine()).deployment, lambda: Frame(IMAGE, 1, 0))
    b.do(Move("other", CPU, "test"))
    b.do(Prepare(5, "twice", 0))
    b.do(Prepare(6, "other", 0))
    until_ns = time.perf_counter_ns() + 3600 * 10**9
    b.executor.execute([RunChunk(5, "twice", 0, 0, GPU, 0, 3, 12_000_000, "test", until_ns)])
    assert started.wait(20)
    if asked:
        b.executor.execute([Yield(5, "twice", "test")])
    for _ in range(meanwhile):
        assert b.do(RunChunk(6, "other", 0, 0, CPU, 0, 2, 0, "test")).job == 6
    released.set()
    assert b.inbox.get(timeout=20).end_op == (2 if asked else 3)


def test_the_next_chunk_of_a_job_that_yielded_runs_to_its_end(bench, monkeypatch):
    """It yielded too late, or has: that is over."""
    monkeypatch.setattr(
        NullNetwork, "run_parts", lambda network, state, start, ends, go_on: (ends[go_on(2)], 1)
    )
    b = bench(NullEngine(), op_ns=(4_000_000,) * 3)
    b.do(Prepare(5, "twice", 0))
    b.executor.execute([Yield(5, "twice", "test")])
    until_ns = time.perf_counter_ns() + 3600 * 10**9
    chunk = b.do(RunChunk(5, "twice", 0, 0, GPU, 0, 3, 12_000_000, "test", until_ns))
    assert chunk.end_op == 2  # ends[True]


def test_a_job_that_begins_anew_takes_the_newest_frame_and_reads_what_was_there_before(bench):
    bench = bench(NullEngine())
    assert bench.do(Prepare(5, "twice", 0)) == InputReady(5, 1, 0.0, 1)
    bench.chunk(0, 1)
    bench.image = np.full((4, 4, 3), 9, np.uint8)
    again = bench.do(Prepare(5, "twice", 0, anew="the scene has changed"))
    assert (again.job, again.tasks) == (5, 1)
    assert again.luminance_difference > 0
    bench.chunk(0, 2)
    bench.do(Prepare(5, "twice", 1))
    bench.chunk(0, 2, stage=1)
    bench.chunk(0, 2, stage=1, task=1)
    result = bench.do(Finish(5, "twice", GPU, 0, False, 1, 2))
    assert result.frame.image is bench.image
    # The next job's input may be written: what was given up is not waited for.
    assert bench.do(Prepare(6, "twice", 0)) == InputReady(6, 1, 0.0, 1)
