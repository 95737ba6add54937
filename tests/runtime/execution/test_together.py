"""Groups of ops of several jobs: one launch, and a ChunkFinished for each job."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from onnx import helper, save

from heimdall import Session
from heimdall.coordinator.replay import replay
from heimdall.engine.null import NullEngine
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.errors import ConfigError, DeviceError, ModelError
from heimdall.graph.branches import independent_branches, node_needs
from heimdall.graph.graph import load_graph
from heimdall.runtime.execution import prober
from heimdall.runtime.execution.processors import Processors
from heimdall.runtime.execution.runs import Result, RunningJob
from heimdall.runtime.execution.together import chunks_of
from heimdall.runtime.telemetry.trace import read_recording
from heimdall.schedulers.base import Assignment, Choice, FreeRanges
from heimdall.vocabulary.events import (
    ChunkFinished,
    Drop,
    Finish,
    Group,
    JobFailed,
    Prepare,
    ProcessorBack,
    ProcessorLost,
    RunChunk,
    RunTogether,
)
from heimdall.vocabulary.processors import CPU, GPU
from tests.networks import small_model
from tests.runtime.execution import test_executor, test_requests
from tests.runtime.execution.test_requests import Flaky, answer


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.setattr(prober, "EVERY_S", 0.01)
    made = test_requests.Bench()
    yield made
    made.executor.close()
    made.served.close()


def together(*stages, processor=GPU):
    """Stages of (job, ranges...)."""
    groups = tuple(
        tuple(Group(job, "chain", 0, 0, tuple(ranges)) for job, *ranges in stage)
        for stage in stages
    )
    return RunTogether(processor, groups, 7_000_000, "test")


def run(bench, action):
    """What is told of it, by job."""
    bench.executor.execute([action])
    told = [bench.get() for _ in action.parts]
    return {event.job: event for event in told if isinstance(event, (ChunkFinished, JobFailed))}


def test_what_each_job_would_run_by_itself():
    action = together([(1, (0, 2)), (2, (3, 4))], [(2, (4, 6)), (1, (2, 3))])
    assert chunks_of(action) == [
        RunChunk(1, "chain", 0, 0, GPU, 0, 3, 7_000_000, "test"),
        RunChunk(2, "chain", 0, 0, GPU, 3, 6, 7_000_000, "test"),
    ]


def test_jobs_run_together_each_from_where_it_is(bench):
    jobs = [bench.begin(value) for value in (1.0, 2.0, 3.0)]
    (a, _, _), (b, _, _), (c, _, _) = jobs
    bench.chunk(b, 0, 2)
    bench.chunk(c, 0, 4, CPU)  # its tensors come along
    told = run(bench, together([(a, (0, 1)), (b, (2, 4)), (c, (4, 6))], [(a, (1, 6)), (b, (4, 6))]))
    elapsed_ns = told[a].elapsed_ns
    assert elapsed_ns > 0
    assert told == {
        a: ChunkFinished(a, GPU, 0, 6, elapsed_ns),
        b: ChunkFinished(b, GPU, 2, 6, elapsed_ns),
        c: ChunkFinished(c, GPU, 4, 6, elapsed_ns),
    }
    for (job, number, future), value in zip(jobs, (1.0, 2.0, 3.0), strict=True):
        assert isinstance(bench.finish(job, number), Result)
        assert future.result(0)["y"][0, 0] == answer(value)


def test_a_job_goes_on_by_itself_afterwards_and_elsewhere(bench):
    (a, number, future), (b, _, _) = bench.begin(4.0), bench.begin(5.0)
    run(bench, together([(a, (0, 3)), (b, (0, 6))]))
    bench.chunk(a, 3, 5, CPU)
    run(bench, together([(a, (5, 6))], processor=CPU))
    bench.finish(a, number, CPU)
    assert future.result(0)["y"][0, 0] == answer(4.0)


def test_a_job_that_was_dropped_does_not_keep_the_others(bench):
    (a, number, future), (b, dropped, _) = bench.begin(), bench.begin()
    bench.executor.execute([Drop(b, "chain", "too late", request=dropped)])
    told = run(bench, together([(a, (0, 6)), (b, (0, 3))]))
    assert told.keys() == {a, b}
    bench.finish(a, number)
    assert future.result(0)["y"][0, 0] == answer(1.0)


def test_where_a_launch_fails_each_job_runs_by_itself(bench, monkeypatch):
    (a, *first), (b, *second) = bench.begin(1.0), bench.begin(2.0)
    bench.chunk(b, 0, 2)

    def fail(stages):
        for part in (part for stage in stages for part in stage):
            part.state.progress.begin(-1)  # what it had computed is lost
        raise DeviceError("out of luck")

    with monkeypatch.context() as patched:
        patched.setattr(bench.engines[GPU], "run_together", fail)
        told = run(bench, together([(a, (0, 6)), (b, (2, 6))]))
    assert [type(told[job]) for job in (a, b)] == [ChunkFinished, ChunkFinished]
    for job, (number, future), value in ((a, first, 1.0), (b, second, 2.0)):
        bench.finish(job, number)
        assert future.result(0)["y"][0, 0] == answer(value)
    assert any("not run together: DeviceError" in each for each in bench.executor.errors_of([]))


def test_what_may_not_run_together_runs_one_after_the_other(bench):
    """A policy's mistake: it costs time, and is reported, but no answer."""
    job, number, future = bench.begin(3.0)
    told = run(bench, together([(job, (0, 2)), (job, (2, 6))]))
    assert isinstance(told[job], ChunkFinished)
    bench.finish(job, number)
    assert future.result(0)["y"][0, 0] == answer(3.0)
    assert any("needs op" in each for each in bench.executor.errors_of([]))


def test_only_the_job_that_cannot_run_is_lost(bench, monkeypatch):
    (a, number, future), (b, _, _) = bench.begin(1.0), bench.begin(2.0)
    at = RunningJob.at

    def refuse(run, *where):
        if run.inputs[0]["x"][0, 0] == 2.0:
            raise ModelError("place 9 is outside")
        return at(run, *where)

    monkeypatch.setattr(RunningJob, "at", refuse)
    told = run(bench, together([(a, (0, 6)), (b, (0, 6))]))
    assert isinstance(told[a], ChunkFinished)
    assert told[b] == JobFailed(b, "gpu inference: ModelError: place 9 is outside")
    bench.finish(a, number)
    assert future.result(0)["y"][0, 0] == answer(1.0)


def test_a_processor_that_fails_together_and_alone_is_lost(bench, monkeypatch):
    flaky = Flaky(bench.served.unit_network(0, GPU), monkeypatch)
    job, number, future = bench.begin()
    flaky.times = 3  # together, alone, and alone once more
    bench.executor.execute([together([(job, (0, 6))])])
    assert [bench.get(), bench.get()] == [ProcessorLost(GPU), ProcessorBack(GPU)]
    run(bench, together([(job, (0, 6))]))
    bench.finish(job, number)
    assert future.result(0)["y"][0, 0] == answer(1.0)


@pytest.mark.parametrize("failing", [False, True])
def test_an_apps_dnn_runs_together_too(failing, monkeypatch):
    engine = OnnxRuntimeEngine(processor=GPU)
    bench = test_executor.Bench(engine, engines={GPU: engine})
    try:
        bench.do(Prepare(5, "twice", 0))
        group = Group(5, "twice", 0, 0, ((0, 1),))
        ops = len(bench.deployment.networks(GPU)[0].ops)
        action = RunTogether(GPU, ((group,),), 1_000_000, "test")
        if failing:
            monkeypatch.setattr(engine, "run_together", lambda stages: 1 / 0)
        done = bench.do(action)
        assert done == ChunkFinished(5, GPU, 0, 1, done.elapsed_ns)
        if ops > 1:
            bench.chunk(1, ops)
        result = bench.do(Finish(5, "twice", GPU, 1, False, 1))
        assert isinstance(result, Result)
        assert result.value[0] == [14.0]
    finally:
        bench.executor.close()


def test_an_engine_has_lanes_only_for_a_policy_that_groups():
    cpu = OnnxRuntimeEngine(processor=CPU)
    found = Processors(NullEngine(lanes=3), cpu, None, {"gpu2": NullEngine(lanes=2)})
    found = Processors(found.gpu, cpu, None, found.others, (GPU, CPU, "gpu2"))
    assert [each.lanes for each in found.listed(2)] == [1, 2, 1]
    assert [each.lanes for each in found.for_groups().listed(2)] == [3, 2, 2]
    assert found.for_groups().gpu is found.gpu  # it has no plans of memory


class Grouped(FreeRanges):
    """The branches of one waiting job after the other: a stage for all of them, then the next."""

    name = "grouped"
    together = True
    stages: Any = ()
    launches: Any = ()

    def config(self):
        return {"stages": len(self.stages)}

    def select(self, view, now_ns):
        ready = [job for job in view.ready if job.next_op == 0]
        if not ready or view.idle.count(GPU) < 2:
            return None
        chosen = [
            Assignment(job.id, ranges[-1][1], GPU, "", number, stage, ranges)
            for job in ready[:1]
            for stage, groups in enumerate(self.stages)
            for number, ranges in enumerate(groups)
        ]
        chosen += [
            Assignment(job.id, job.costs[0].ops, GPU, "", 7, len(self.stages)) for job in ready[1:2]
        ]
        self.launches.append(len(chosen))
        return Choice(tuple(chosen), "grouped")


@pytest.fixture
def fire(tmp_path):
    random = np.random.default_rng(0)
    shapes = {"u": (16, 3, 1, 1), "v": (16, 16, 1, 1), "w": (16, 16, 3, 3)}
    weights = {
        name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    nodes = [
        helper.make_node("Conv", ["x", "u"], ["s"], "squeeze"),
        helper.make_node("Conv", ["s", "v"], ["a"], "expand1"),
        helper.make_node("Conv", ["s", "w"], ["b"], "expand3", pads=[1, 1, 1, 1]),
        helper.make_node("Concat", ["a", "b"], ["y"], "join", axis=1),
    ]
    path = tmp_path / "fire.onnx"
    save(small_model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 32, 8, 8]}, weights), path)
    return path


@pytest.mark.parametrize("name", ["null", "opencl"])
def test_a_session_runs_what_a_policy_groups(fire, name, tmp_path):
    """Branches of one request beside each other, another request behind, until all have answers."""
    graph = load_graph(fire)
    if name == "null":
        engine, stages = NullEngine(lanes=3), independent_branches(node_needs(graph))
    else:
        opencl = pytest.importorskip("heimdall.engine.opencl.engine")
        try:
            engine = opencl.OpenCLEngine(lanes=3, keep_kernels=False)
        except DeviceError as error:
            pytest.skip(str(error))
        stages = independent_branches(engine.for_branches.load(graph).needs)
    assert len(stages[1]) == 2
    policy: Any = type("Mine", (Grouped,), {"stages": stages, "launches": [], "name": "mine"})
    inputs = np.random.default_rng(1).standard_normal((6, 1, 3, 8, 8)).astype(np.float32)
    trace = tmp_path / "trace.json"
    with Session(device=engine, processors=("gpu",), scheduler=policy, trace=trace) as session:
        model = session.register(fire, slo_ms=10_000)
        futures = [model.submit({"x": each}) for each in inputs]
        answers = [session.wait(future, 20)["y"] for future in futures]
        session._running().shared_gpu.save_trace(trace, "test")
    if engine.computes:
        network = engine.load(graph)
        for each, found in zip(inputs, answers, strict=True):
            wanted = network.infer(network.new_state(), {"x": each})["y"]
            np.testing.assert_array_equal(found, wanted)
    assert max(policy.launches) >= 3
    recorded = read_recording(trace)
    assert any("RunTogether" in json.dumps(each) for each in recorded.records)
    assert list(replay(recorded.config, recorded.records, policy())) == []
    spans = json.loads(trace.read_text())["traceEvents"]
    rows = {each["tid"] for each in spans if "together" in each.get("args", {})}
    assert len(rows) == 2  # one for each job, side by side


def test_a_policy_that_groups_needs_lanes():
    with pytest.raises(ConfigError, match=r"grouped runs groups .* one lane"):
        Session(device=NullEngine(lanes=1), scheduler=Grouped).open()
