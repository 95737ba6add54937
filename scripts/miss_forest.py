"""Trains RT-mDL's predictor of missed deadlines: miss_forest.py [--to FILE] [--runs N]

Draws tasks at random (how many, how long, how often, by when, in which order of priorities), lets
each lot run in the simulator under fixed priorities without preemption, and fits a random forest to
the share of deadlines that they miss. Written is an ONNX file, which onnxruntime runs; scikit-learn
is needed. One seed and one version of it give the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from sklearn.ensemble import RandomForestRegressor

from heimdall.lab.bench.settings import EventProcess
from heimdall.lab.policies.fixed_priority import RtMdl
from heimdall.lab.simulator.clients import SimulatedModel
from heimdall.lab.simulator.miss_forest import FEATURES, FILE, features
from heimdall.lab.simulator.requests import RequestSimulation
from heimdall.lab.simulator.schedulability import Task
from heimdall.system.paths import replace_file
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import Processor

SEED, SECONDS = 20, 4.0
TREES, LEAVES = 20, 32
NOISE, JITTER_MS = 0.05, 1.0  # as heimdall/lab/devices/xavier-nx.toml and the scenarios have them
PHASES = (0.0, None)  # tasks are released together, or begin when they like


def drawn(draw: random.Random) -> list[Task]:
    """Two to six tasks, those of the highest priority first."""
    number = draw.randint(2, 6)
    load = draw.uniform(0.3, 1.8)
    parts = [draw.expovariate(1) + 0.1 for _ in range(number)]
    rate_hz = draw.uniform(10, 60)
    alike = draw.random() < 0.5
    tasks = []
    for part in parts:
        period_ns = 1e9 / (rate_hz if alike else draw.uniform(10, 60))
        takes_ns = round(load * part / sum(parts) * period_ns)
        tasks.append(Task(takes_ns, period_ns, round(draw.uniform(0.5, 1) * period_ns)))
    order = draw.choice([lambda each: each.deadline_ns, lambda each: each.takes_ns, None])
    if order is not None:
        tasks.sort(key=order)
    return tasks


def missed(tasks: list[Task], seed: int, phase: float | None) -> float:
    """The share of their deadlines that tasks miss in a run."""
    draw = random.Random(f"{seed} arrivals")
    models = []
    for index, task in enumerate(tasks):
        op_ns = (max(1, task.takes_ns),)
        stage = StagePlan(op_ns, (False,), op_ns[0], 0, ((0, 1),), on=(("gpu", op_ns),))
        plan = DnnPlan(
            f"task{index}", (stage,), task.deadline_ns, continuous=False, queued=True
        )  # fmt: skip
        process = EventProcess(
            process="periodic", rate_hz=1e9 / task.period_ns, phase=phase, jitter_ms=JITTER_MS
        )
        arrivals = []
        for at_s in process.times_s(draw):
            if at_s >= SECONDS:
                break
            arrivals.append(round(at_s * 1e9))
        models.append(SimulatedModel(plan, arrivals))
    policy = RtMdl({f"task{index}": index for index in range(len(tasks))})
    run = RequestSimulation(
        models, [Processor("gpu", "gpu")], policy, seed=seed, noise={"gpu": NOISE}
    )
    run.run()
    late = [each.violates(each.slo_ns) for each in run.answered if each.slo_ns is not None]
    return sum(late) / len(late)


def as_onnx(forest: RandomForestRegressor) -> onnx.ModelProto:
    """The forest as one operator: the mean of its trees."""
    nodes: dict[str, list[Any]] = {key: [] for key in (
        "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
    )}  # fmt: skip
    leaves: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for number, each in enumerate(forest.estimators_):
        tree = each.tree_
        for node in range(tree.node_count):
            leaf = tree.children_left[node] < 0
            values = (
                number,
                node,
                0 if leaf else int(tree.feature[node]),
                0.0 if leaf else float(np.float32(tree.threshold[node])),
                "LEAF" if leaf else "BRANCH_LEQ",
                0 if leaf else int(tree.children_left[node]),
                0 if leaf else int(tree.children_right[node]),
            )
            for key, value in zip(nodes, values, strict=True):
                nodes[key].append(value)
            if leaf:
                weight = float(tree.value[node][0][0]) / len(forest.estimators_)
                for key, value in zip(leaves, (number, node, 0, weight), strict=True):
                    leaves[key].append(value)
    attributes = {f"nodes_{key}": each for key, each in nodes.items()}
    attributes |= {f"target_{key}": each for key, each in leaves.items()}
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["tasks"],
        ["missed"],
        domain="ai.onnx.ml",
        n_targets=1,
        **attributes,
    )
    graph = helper.make_graph(
        [node],
        "forest",
        [helper.make_tensor_value_info("tasks", TensorProto.FLOAT, [None, FEATURES])],
        [helper.make_tensor_value_info("missed", TensorProto.FLOAT, [None, 1])],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FILE)
    parser.add_argument("--runs", type=int, default=3000)
    options = parser.parse_args()
    draw = random.Random(SEED)
    given, shares = [], []
    for number in range(options.runs):
        tasks = drawn(draw)
        given.append(features(tasks))
        shares.append(missed(tasks, number, draw.choice(PHASES)))
        if number % 100 == 99:
            print(f"{number + 1} of {options.runs}", flush=True)
    kept = options.runs // 5  # for a test
    forest = RandomForestRegressor(TREES, max_leaf_nodes=LEAVES, random_state=SEED)
    forest.fit(given[kept:], shares[kept:])
    errors = np.abs(forest.predict(given[:kept]) - shares[:kept])
    of = f"of {100 * np.mean(shares):.1f}% missed, in {kept} runs that it has not seen"
    score = forest.score(given[:kept], shares[:kept])
    print(f"mean error {100 * errors.mean():.1f} points {of}; R2 {score:.3f}")
    data = as_onnx(forest).SerializeToString()
    replace_file(options.to, data)
    print(f"{options.to}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
