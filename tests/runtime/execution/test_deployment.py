"""One DNN ready to run: networks and states a processor, loaded when they are needed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from heimdall.analyzer.partition import Cut
from heimdall.app import DNN
from heimdall.coordinator import Coordinator
from heimdall.engine.null import NullEngine, NullNetwork
from heimdall.graph.graph import graph_from_model
from heimdall.models.base import Network, Pipeline
from heimdall.runtime.execution.deployment import Deployment, plan_of
from heimdall.vocabulary.events import InputReady, RenderingStopped, RunChunk
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU

MS = 1_000_000


class Two(Pipeline):
    """Two stages that are not run here."""

    networks = (Network("none.onnx"), Network("none.onnx"))

    def prepare(self, stage, image, previous, options):
        raise NotImplementedError

    def decode(self, stage, outputs, context):
        raise NotImplementedError


class Counting(NullEngine):
    """Notes which networks were loaded on it."""

    def __init__(self):
        super().__init__(CPU)
        self.loaded: list[NullNetwork] = []

    def load(self, graph, **options):
        self.loaded.append(super().load(graph, **options))
        return self.loaded[-1]


def chain(*ops: str):
    names = ["x", *(f"t{index}" for index in range(len(ops) - 1)), "y"]
    lines = " ".join(
        f"{after} = {op}({before})"
        for op, before, after in zip(ops, names, names[1:], strict=False)
    )
    text = f"(float[1,3] x) => (float[1,3] y) {{{lines}}}"
    return graph_from_model(
        onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> net {text}')
    )


GRAPHS = [chain("Relu", "Abs", "Neg"), chain("Tanh")]


@pytest.fixture
def cpu():
    return Counting()


@pytest.fixture
def deployment(cpu):
    made = Deployment(DNN("two", Two(), rate_hz=4), Two(), GRAPHS, cpu)
    gpu = NullEngine()
    made.place(GPU, [gpu.load(graph, force_fallback=["Abs"][: index == 0]) for index, graph in
                     enumerate(GRAPHS)])  # fmt: skip
    yield made
    made.close()


def test_the_cpus_networks_are_loaded_when_they_are_first_needed_and_once(deployment, cpu):
    assert cpu.loaded == []
    unit_network = deployment.unit_network(1, CPU)
    assert cpu.loaded == deployment.networks(CPU)
    assert unit_network.network is cpu.loaded[1]
    deployment.load(CPU)
    assert deployment.unit_network(1, CPU) is unit_network
    assert len(cpu.loaded) == 2


def test_each_stage_and_processor_has_a_state_of_its_own(deployment):
    where = [(stage, name) for stage in (0, 1) for name in (GPU, CPU)]
    states = [deployment.unit_network(*each).take().state for each in where]
    assert len(set(map(id, states))) == 4


def test_to_warm_up_runs_every_op_of_every_stage(deployment):
    deployment.load(CPU)
    deployment.warm_up(CPU)
    for stage in (0, 1):
        where = deployment.unit_network(stage, CPU).take()
        (output,) = where.network.read(where.state).values()  # which asks for all ops
        np.testing.assert_array_equal(output, np.zeros((1, 3), np.float32))


@pytest.mark.parametrize("policy", ["max-total", "lst", "fcfs", "edf-exits"])
def test_until_it_is_built_it_runs_on_the_cpu_whatever_the_policy(deployment, policy):
    deployment.begin_on_cpu()
    coordinator = Coordinator([deployment.plan], scheduler=policy, frame_interval_ns=33 * MS)
    coordinator.receive(RenderingStopped(), 0)
    (chunk,) = coordinator.receive(InputReady(0), 1 * MS)
    assert isinstance(chunk, RunChunk)
    assert chunk.processor == CPU


def test_fallback_ops_are_those_of_the_gpus_networks(deployment):
    assert deployment.fallback_ops == 1


def stage(*op_ns: int, fallback: tuple[bool, ...] = ()) -> StagePlan:
    marks = fallback or (False,) * len(op_ns)
    return StagePlan(op_ns, marks, 100 * MS, 0, ((0, len(op_ns)),))


def test_the_plan_is_complete_with_its_stages(deployment):
    assert deployment.plan.stages == ()
    deployment.complete([stage(1 * MS, 2 * MS, 4 * MS, fallback=(False, True, False)), stage(8)])
    assert deployment.plan.name == "two"
    assert deployment.plan.constraint_ns == 250 * MS
    assert deployment.whole_ns == 5 * MS + 8
    assert deployment.plan.fallback_ns == 2 * MS


def test_another_gap_gives_other_static_chunks_that_cover_every_op(deployment):
    deployment.complete([stage(*[4 * MS] * 6), stage(4 * MS)])
    for gap_ms in (4, 8, 30):
        for chunks, count in zip(deployment.partition(Cut(gap_ms * MS)), (6, 1), strict=True):
            assert [op for start, end in chunks for op in range(start, end)] == list(range(count))
    small, large = (len(deployment.partition(Cut(gap_ms * MS))[0]) for gap_ms in (4, 30))
    assert small > large == 1


def test_what_a_dnn_declares_is_in_its_plan():
    plan = plan_of(DNN("a", Two(), rate_hz=2, max_rate_hz=10, priority="high"), [])
    assert (plan.priority, plan.continuous, plan.min_interval_ns) == ("high", True, 100 * MS)
    own = DNN("b", Two(), on_event=True, latency_constraint_ms=80, beta=3.0, gamma=2.0)
    plan = plan_of(own, [])
    assert (plan.continuous, plan.constraint_ns, plan.min_interval_ns) == (False, 80 * MS, 0)
    assert (plan.utility.beta, plan.utility.gamma) == (3.0, 2.0)
    usual = plan_of(DNN("c", Two(), latency_constraint_ms=80), []).utility
    assert usual.gamma != plan.utility.gamma


def test_closing_closes_every_network(deployment, monkeypatch):
    closed = []
    monkeypatch.setattr(NullNetwork, "close", lambda network: closed.append(network))
    deployment.load(CPU)
    networks = deployment.networks(GPU) + deployment.networks(CPU)
    deployment.close()
    assert closed == networks
