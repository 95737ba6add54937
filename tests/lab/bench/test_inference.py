"""How baselines run networks: with the urgency that the same work has in a coordinated run."""

from __future__ import annotations

import os
import queue
import sys
import threading

import numpy as np
import pytest
from onnx import helper

from heimdall.app import DNN
from heimdall.capture import Frame
from heimdall.engine.null import NullEngine, NullNetwork
from heimdall.lab.bench.admission import OneAtATime, Passage
from heimdall.lab.bench.inference import Session, WholeNetwork
from heimdall.lab.bench.systems import Sharing
from heimdall.lab.bench.threads import Threads
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.executor import Executor
from heimdall.runtime.execution.runs import Result
from heimdall.system.priority import standing
from heimdall.vocabulary.events import Finish, Prepare, RunChunk, RunFallback
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU
from tests.networks import small_graph

FRAME = Frame(np.zeros((4, 4, 3), np.uint8), 1, 0)
FALLBACK = ("Relu",)


def graph():
    """y = sqrt(relu(abs(x))): three nodes."""
    names = ("x", "a", "b", "y")
    nodes = [
        helper.make_node(kind, [names[i]], [names[i + 1]], name=kind.lower())
        for i, kind in enumerate(("Abs", "Relu", "Sqrt"))
    ]
    return small_graph(nodes, {"x": [1, 3]}, {"y": [1, 3]})


class Watched(Pipeline):
    """Notes how urgent the thread is that prepares, computes each op, and decodes."""

    networks = (Network("none.onnx"),)

    def __init__(self):
        self.seen: dict[str, tuple[int, ...]] = {}
        self.engine = NullEngine(op_ns=lambda op: self.note(op.kind))

    def note(self, step):
        found = standing(threading.get_native_id())
        policy = found.policy & ~os.SCHED_RESET_ON_FORK
        if policy == os.SCHED_OTHER:
            self.seen[step] = policy, found.nice
        else:
            self.seen[step] = policy, found.priority
        return 1

    def prepare(self, stage, image, previous, options):
        self.note("prepare")
        return [Prepared({"x": np.zeros((1, 3), np.float32)}, None)]

    def decode(self, stage, outputs, context):
        self.note("decode")

    def deployment(self):
        made = Deployment(DNN("three", model=self, on_event=True), self, [graph()], None)
        made.place(GPU, [self.engine.load(graph(), force_fallback=FALLBACK)])
        made.complete([StagePlan((1, 1, 1), (False, True, False), 1, 0, ())])
        return made


def coordinated(pipeline, inbox):
    executor = Executor(inbox)
    executor.add("three", pipeline.deployment(), lambda: FRAME)
    for action in (
        Prepare(5, "three", 0),
        RunChunk(5, "three", 0, 0, GPU, 0, 1, 0, "test"),
        RunFallback(5, "three", 0, 0, 1, 2),
        RunChunk(5, "three", 0, 0, GPU, 2, 3, 0, "test"),
        Finish(5, "three", GPU, 1, False, 2, 1),
    ):
        executor.execute([action])
        last = inbox.get(timeout=20)
    executor.close()
    return last


def uncoordinated(pipeline, inbox):
    def networks(deployment):
        return [WholeNetwork(pipeline.engine, graph(), FALLBACK)]

    threads = Threads(inbox, networks, None)
    threads.add("three", pipeline.deployment(), lambda: FRAME, lambda value, frame: None)
    threads.execute([Prepare(5, "three", 0)])
    inbox.get(timeout=20)
    last = inbox.get(timeout=20)
    threads.close()
    return last


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority on Linux only")
def test_each_step_of_a_baseline_is_as_urgent_as_in_a_coordinated_run():
    seen = []
    for run in (coordinated, uncoordinated):
        pipeline = Watched()
        assert isinstance(run(pipeline, queue.SimpleQueue()), Result)
        seen.append(pipeline.seen)
    assert seen[0] == seen[1]
    assert seen[0].keys() == {"prepare", "Abs", "Relu", "Sqrt", "decode"}


# --- a little at a time -------------------------------------------------------------------------


def chain(length):
    """As many nodes, one after the other."""
    names = [f"t{index}" for index in range(length + 1)]
    nodes = [
        helper.make_node("Abs", [names[i]], [names[i + 1]], name=f"node{i}") for i in range(length)
    ]
    return small_graph(nodes, {names[0]: [1, 3]}, {names[-1]: [1, 3]})


class Asking(NullNetwork):
    """Runs in parts, of which two are with the device at a time; notes what it was given."""

    def __init__(self, engine, graph, ops):
        super().__init__(engine, graph, ops)
        self.given = []

    def run_parts(self, state, start, ends, go_on):
        self.given.append((start, tuple(ends)))
        for part, end in enumerate(ends):
            if part >= 2:
                assert go_on(part)
            self.run(state, start, end)
            start = end
        return start, 1


class AskingEngine(NullEngine):
    ends_early = True

    def load(self, graph, **options):
        self.last = Asking(self, graph, super().load(graph, **options).ops)
        return self.last


def infer(network, names=("t0", "t8")):
    network.write({names[0]: np.zeros((1, 3), np.float32)})
    network.run()
    assert list(network.read()) == [names[1]]


MS = 1_000_000


@pytest.mark.parametrize(
    ("sharing", "given"),
    [
        (Sharing(), [(0, (8,))]),
        (Sharing(wait_ops=3), [(0, (3,)), (3, (6,)), (6, (8,))]),
        (Sharing(most_ops=4), [(0, (2, 4, 6, 8))]),  # two parts at a time
        (Sharing(most_ops=2), [(0, tuple(range(1, 9)))]),
        (Sharing(most_ops=7), [(0, (3, 6, 8))]),
        (Sharing(batch_ns=4 * MS), [(0, (2, 3, 5, 7, 8))]),
    ],
)
def test_what_may_be_with_the_gpu_at_a_time_is_what_the_system_says(sharing, given):
    op_ns = [MS, MS, 5 * MS, MS, MS, MS, MS, MS]
    engine = AskingEngine()
    infer(WholeNetwork(engine, chain(8), (), sharing, op_ns))
    assert engine.last.given == given


def test_a_network_runs_in_its_turn_and_gives_way_between_its_parts():
    gate, order = OneAtATime(), []

    def urgent():
        order.append("urgent")
        gate.leave("urgent")

    def note(op):
        if op.name == "node0":
            gate.ask("urgent", -1.0, urgent_thread.start)
            gate.ask("later", 1.0, lambda: order.append("later"))
        order.append(op.name)
        return 1

    urgent_thread = threading.Thread(target=urgent)
    turn, sharing = Passage(gate, "network"), Sharing(most_ops=4)
    engine = AskingEngine(op_ns=note)
    infer(WholeNetwork(engine, chain(8), (), sharing, (), turn, rank=0.0))
    urgent_thread.join(20)
    nodes = [f"node{index}" for index in range(8)]
    assert order == [*nodes[:4], "urgent", *nodes[4:], "later"]


@pytest.mark.parametrize("cores", [(), (0,)])
def test_a_session_gives_what_its_network_computes(cores):
    session = Session(graph(), cores)
    session.write({"x": np.array([[4, 9, -16]], np.float32)})
    session.run()
    assert session.read()["y"].tolist() == [[2, 3, 4]]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be placed here")
def test_a_session_on_all_cores_leaves_its_maker_where_it_was():
    before = os.sched_getaffinity(0)
    everywhere = sorted(before)
    try:
        os.sched_setaffinity(0, {everywhere[0]})
        Session(graph(), everywhere)
        assert os.sched_getaffinity(0) == {everywhere[0]}
    finally:
        os.sched_setaffinity(0, before)
