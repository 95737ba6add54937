"""Actions for queued DNNs become ranges on threads, and answers."""

import queue
import threading
from dataclasses import replace

import numpy as np
import pytest

from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.errors import AppError, ModelError, RequestError
from heimdall.graph.graph import graph_from_model
from heimdall.runtime.execution import prober
from heimdall.runtime.execution.deployment import Networks
from heimdall.runtime.execution.executor import Executor
from heimdall.runtime.execution.model_loading import serve
from heimdall.runtime.execution.runs import Result
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnMoved,
    Drop,
    Finish,
    InferenceRequested,
    InputReady,
    JobFailed,
    Move,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RunChunk,
)
from heimdall.vocabulary.processors import CPU, GPU
from tests.engine.networks_with_exits import with_exits
from tests.networks import doubled, doublings


def answer(x):
    return doubled(x, 6)


class Flaky:
    """Makes a unit network's ranges fail: with ``error``, as long as ``times`` is above 0."""

    def __init__(self, unit_network, monkeypatch):
        self.times, self.ran = 0, 0
        self.error: Exception = OSError("the device is gone")
        network = unit_network.network

        def failing(call):
            def wrapped(*arguments):
                self.ran += 1
                if self.times > 0:
                    self.times -= 1
                    raise self.error
                return call(*arguments)

            return wrapped

        monkeypatch.setattr(network, "run", failing(network.run))


class Bench:
    """An executor with one model on two engines of onnxruntime, and its inbox."""

    def __init__(self):
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        cpu = OnnxRuntimeEngine(processor=CPU)
        self.engines = {GPU: OnnxRuntimeEngine(), CPU: cpu}
        self.served = serve(graph_from_model(doublings(6, 8)), self.engines, cpu)
        self.executor = Executor(self.inbox, urgent=False, engines=self.engines)
        self.requests = self.executor.requests
        self.requests.add("chain", self.served)
        self.jobs = 0

    def get(self):
        return self.inbox.get(timeout=20)

    def submit(self, value=1.0):
        number = self.requests.number()
        inputs = {"x": np.full((1, 8), value, np.float32)}
        future = self.requests.submit(number, "chain", inputs, 5)
        assert self.get() == InferenceRequested("chain", number, 5)
        return number, future

    def begin(self, value=1.0):
        """A request that has become a job."""
        number, future = self.submit(value)
        job, self.jobs = self.jobs, self.jobs + 1
        self.executor.execute([Prepare(job, "chain", 0, number)])
        assert self.get() == InputReady(job)
        return job, number, future

    def chunk(self, job, start, end, processor=GPU):
        self.executor.execute([RunChunk(job, "chain", 0, 0, processor, start, end, 0, "test")])
        return self.get()

    def finish(self, job, number, processor=GPU):
        self.executor.execute([Finish(job, "chain", processor, 1, False, 1, 1, number)])
        return self.get()


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(prober, "EVERY_S", 0.01)
    made = Bench()
    yield made
    made.executor.close()
    made.served.close()


def test_a_model_of_several_processors_has_units(bench):
    assert len(bench.served.stages[0].op_ns) == 6
    (stage,) = bench.served.stages
    assert [name for name, _ in stage.on] == [GPU, CPU]
    assert all(len(times) == 6 and min(times) > 0 for _, times in stage.on)
    assert (stage.cut_ns[0], len(stage.cut_ns)) == (0, 6)
    assert stage.chunks == ((0, 6),)


@pytest.mark.parametrize(
    "route",
    [
        [(GPU, 6)],
        [(CPU, 6)],
        [(GPU, 2), (CPU, 6)],
        [(CPU, 1), (GPU, 3), (GPU, 4), (CPU, 5), (GPU, 6)],
        [(GPU, 1), (CPU, 2), (GPU, 3), (CPU, 4), (GPU, 5), (CPU, 6)],
    ],
)
def test_any_route_leads_to_the_same_answer(bench, route):
    job, number, future = bench.begin(3.0)
    start = 0
    for processor, end in route:
        done = bench.chunk(job, start, end, processor)
        assert done == ChunkFinished(job, processor, start, end, done.elapsed_ns)
        start = end
    told = bench.finish(job, number, route[-1][0])
    assert isinstance(told, Result)
    np.testing.assert_allclose(future.result(0)["y"], np.full((1, 8), answer(3.0)), rtol=1e-6)


def test_several_jobs_of_one_model_are_in_flight(bench):
    jobs = [bench.begin(value) for value in (1.0, 2.0, 3.0)]
    for start, end in ((0, 2), (2, 5), (5, 6)):
        for job, _, _ in jobs:
            bench.chunk(job, start, end, (GPU, CPU)[(job + start) % 2])
    for job, number, _ in reversed(jobs):
        bench.finish(job, number)
    found = [future.result(0)["y"][0, 0] for _, _, future in jobs]
    assert found == [answer(1.0), answer(2.0), answer(3.0)]


def test_callbacks_run_on_a_thread_of_their_own(bench):
    job, number, future = bench.begin()
    where = []
    future.add_done_callback(lambda done: where.append(threading.current_thread().name))
    bench.chunk(job, 0, 6)
    bench.finish(job, number)
    assert where == ["answers-0"]


def test_a_dropped_request_says_why(bench):
    job, number, future = bench.begin()
    bench.chunk(job, 0, 3)
    bench.executor.execute([Drop(job, "chain", "too late", request=number)])
    with pytest.raises(RequestError, match="chain: the request has no answer: too late"):
        future.result(20)
    late = bench.chunk(job, 3, 6)  # it was on its way to the worker
    assert late == ChunkFinished(job, GPU, 3, 6, 0)


def test_a_refused_request_was_never_a_job(bench):
    number, future = bench.submit()
    bench.executor.execute([Drop(-1, "chain", "3 wait already", request=number)])
    with pytest.raises(RequestError, match="3 wait already"):
        future.result(20)


def test_a_job_that_moves_to_a_processor_that_there_is_has_moved(bench):
    bench.executor.execute([Move("chain", CPU, "test")])
    assert bench.get() == DnnMoved("chain", CPU)
    bench.executor.execute([Move("chain", "npu", "test")])
    assert bench.get() == DnnMoved("chain", CPU)  # it stays where it is
    assert "is not on npu" in bench.executor.errors_of(["chain"])[0]


def test_what_fails_once_is_tried_again_from_the_inputs(bench, monkeypatch):
    flaky = Flaky(bench.served.unit_network(0, GPU), monkeypatch)
    job, number, future = bench.begin()
    bench.chunk(job, 0, 2)
    flaky.times = 1
    assert isinstance(bench.chunk(job, 2, 6), ChunkFinished)
    bench.finish(job, number)
    assert future.result(0)["y"][0, 0] == answer(1.0)
    assert any("tried again" in each for each in bench.executor.errors_of(["chain"]))


def test_a_processor_that_keeps_failing_is_lost_and_its_jobs_lose_nothing(bench, monkeypatch):
    flaky = Flaky(bench.served.unit_network(0, GPU), monkeypatch)
    job, number, future = bench.begin()
    bench.chunk(job, 0, 2)
    flaky.times = 5
    assert bench.chunk(job, 2, 4) == ProcessorLost(GPU)
    assert bench.get() == ProcessorBack(GPU)  # once the probe works
    assert flaky.times == 0
    done = bench.chunk(job, 2, 6, CPU)  # the coordinator has put it back
    assert done == ChunkFinished(job, CPU, 2, 6, done.elapsed_ns)
    bench.finish(job, number, CPU)
    assert future.result(0)["y"][0, 0] == answer(1.0)


def test_a_job_that_costs_a_processor_twice_fails(bench, monkeypatch):
    flaky = Flaky(bench.served.unit_network(0, GPU), monkeypatch)
    job, _, _ = bench.begin()
    flaky.times = 2
    assert bench.chunk(job, 0, 6) == ProcessorLost(GPU)
    assert bench.get() == ProcessorBack(GPU)
    flaky.times = 2
    assert bench.chunk(job, 0, 6) == JobFailed(job, "gpu inference: OSError: the device is gone")


def test_a_model_error_is_the_requests_own(bench, monkeypatch):
    flaky = Flaky(bench.served.unit_network(0, GPU), monkeypatch)
    flaky.times, flaky.error = 1, ModelError("place 9 is outside")
    job, _, _ = bench.begin()
    assert bench.chunk(job, 0, 6) == JobFailed(job, "gpu inference: ModelError: place 9 is outside")


def test_what_was_under_way_when_its_processor_was_lost_is_not_told(bench, monkeypatch):
    """Another processor may have the job by then."""
    unit_network = bench.served.unit_network(0, GPU)
    begun, go_on, run = threading.Event(), threading.Event(), unit_network.network.run

    def slow(*arguments):
        begun.set()
        go_on.wait(20)
        return run(*arguments)

    monkeypatch.setattr(unit_network.network, "run", slow)
    job, number, future = bench.begin()
    bench.executor.execute([RunChunk(job, "chain", 0, 0, GPU, 0, 6, 0, "test")])
    assert begun.wait(20)
    bench.executor._chunks.prober.lose(GPU, lambda: None)
    assert [bench.get(), bench.get()] == [ProcessorLost(GPU), ProcessorBack(GPU)]
    bench.executor.execute([RunChunk(job, "chain", 0, 0, CPU, 0, 6, 0, "test")])
    go_on.set()
    done = bench.get()
    assert done == ChunkFinished(job, CPU, 0, 6, done.elapsed_ns)
    bench.finish(job, number, CPU)
    assert future.result(0)["y"][0, 0] == answer(1.0)


def test_a_cancelled_future_does_no_harm(bench):
    job, number, future = bench.begin()
    other, its_number, its_future = bench.begin(2.0)
    assert future.cancel()
    for each, each_number in ((job, number), (other, its_number)):
        bench.chunk(each, 0, 6)
        bench.finish(each, each_number)
    assert future.cancelled()
    assert its_future.result(0)["y"][0, 0] == answer(2.0)


def test_a_chunk_that_has_until_a_frame_ends_at_a_unit(bench):
    """Expected to take far longer than there is: it stops after the parts under way."""
    (stage,) = bench.served.stages
    stages = [replace(stage, op_ns=(10_000_000,) * 6)]
    unit_network = {each: [bench.served.unit_network(0, each)] for each in (GPU, CPU)}
    bench.requests.add("slow", Networks("slow", bench.served.graphs, stages, unit_network))
    number = bench.requests.number()
    bench.requests.submit(number, "slow", {"x": np.ones((1, 8), np.float32)})
    bench.get()
    bench.executor.execute([Prepare(9, "slow", 0, number)])
    bench.get()
    chunk = RunChunk(9, "slow", 0, 0, GPU, 0, 6, 60_000_000, "test", until_ns=1)
    bench.executor.execute([chunk])
    done = bench.get()  # this engine cannot end early: it runs all, and says so
    assert (done.start_op, done.end_op) == (0, 6)


def test_waiting_requests_are_answered_when_it_closes(bench):
    _, waiting = bench.submit()
    job, _, running = bench.begin()
    bench.chunk(job, 0, 3)
    bench.executor.close()
    for future in (waiting, running):
        with pytest.raises(RequestError, match="closed"):
            future.result(20)
    with pytest.raises(AppError, match="not served"):
        bench.requests.submit(99, "chain", {})


def test_what_was_asked_just_before_it_closed_is_not_begun(bench):
    number, future = bench.submit()
    bench.executor.close()
    bench.executor.execute([Prepare(7, "chain", 0, number)])  # it came by the inbox meanwhile
    assert 7 not in bench.executor.runs
    with pytest.raises(RequestError, match="closed"):
        future.result(20)


def test_a_model_that_is_removed_is_not_asked_any_more(bench):
    _, waiting = bench.submit()
    assert bench.executor.remove(["chain"])
    with pytest.raises(RequestError, match="closed"):
        waiting.result(20)
    with pytest.raises(AppError, match="not served"):
        bench.submit()


# --- early exits ---


@pytest.fixture
def early():
    """A model with three exits, on one processor, and how to run ranges of it."""
    cpu = OnnxRuntimeEngine(processor=CPU)
    inbox: queue.SimpleQueue = queue.SimpleQueue()
    executor = Executor(inbox, urgent=False)
    served = serve(with_exits(), {GPU: OnnxRuntimeEngine()}, cpu)
    executor.requests.add("exits", served)
    yield served, executor, inbox
    executor.close()
    served.close()


def answered(early, *ranges):
    """What a request answers that has run these ranges."""
    _, executor, inbox = early
    number = executor.requests.number()
    inputs = {"x": np.random.default_rng(0).random((1, 3, 12, 16), np.float32)}
    future = executor.requests.submit(number, "exits", inputs)
    assert inbox.get(timeout=20) == InferenceRequested("exits", number)
    executor.execute([Prepare(number, "exits", 0, number)])
    assert inbox.get(timeout=20) == InputReady(number)
    for start, end in ranges:
        executor.execute([RunChunk(number, "exits", 0, 0, GPU, start, end, 0, "test")])
        done = inbox.get(timeout=20)
        assert (done.start_op, done.end_op) == (start, end)
    executor.execute([Finish(number, "exits", GPU, 1, False, 1, 1, number)])
    assert isinstance(inbox.get(timeout=20), Result)
    return future.result(timeout=20)


def test_a_request_may_end_at_any_exit_of_its_model(early):
    served, *_ = early
    (graph,), (stage,) = served.graphs, served.stages
    assert [exit.name for exit in stage.exits] == [each.name for each in graph.exits]
    everything = answered(early, (0, len(stage.op_ns)))
    assert set(everything) == {"y1", "y2", "y3"}
    for exit, declared in zip(stage.exits, graph.exits, strict=True):
        found = answered(early, *exit.ranges)
        (name,) = declared.outputs
        assert list(found) == [name]
        np.testing.assert_allclose(found[name], everything[name], rtol=1e-4, atol=1e-5)


def test_a_model_with_exits_on_several_processors_runs_whole():
    cpu = OnnxRuntimeEngine(processor=CPU)
    served = serve(with_exits(), {GPU: OnnxRuntimeEngine(), CPU: cpu}, cpu)
    (stage,) = served.stages
    assert len(stage.op_ns) == 1
    assert not stage.exits
    served.close()
