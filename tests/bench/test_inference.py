"""How baselines run networks: with the urgency that the same work has in a coordinated run."""

from __future__ import annotations

import os
import queue
import sys
import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

from heimdall.app import DNN
from heimdall.bench.inference import WholeNetwork
from heimdall.bench.threads import Threads
from heimdall.capture import Frame
from heimdall.engine.null import NullEngine
from heimdall.graph.graph import graph_from_model
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.runtime.deployment import Deployment
from heimdall.runtime.executor import Executor, Result
from heimdall.system.priority import standing
from heimdall.vocabulary.events import Finish, Prepare, RunChunk, RunFallback
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU

FRAME = Frame(np.zeros((4, 4, 3), np.uint8), 1, 0)
FALLBACK = ("Relu",)


def graph():
    """y = sqrt(relu(abs(x))): three nodes."""
    names = ("x", "a", "b", "y")
    nodes = [
        helper.make_node(kind, [names[i]], [names[i + 1]], name=kind.lower())
        for i, kind in enumerate(("Abs", "Relu", "Sqrt"))
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy"]
    whole = helper.make_graph(nodes, "three", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    return graph_from_model(helper.make_model(whole, opset_imports=opset, ir_version=8))


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
