"""The summary of a run, to plain data and back."""

from __future__ import annotations

import json

from heimdall import RunSummary
from heimdall.lab.simulator.simulate import simulate


def test_a_simulated_run_reads_as_a_summary():
    data = simulate("shopping-phone", "lg-v50", "max-total", seconds=1)
    summary = RunSummary.from_dict(data)
    assert summary.memory_mb.peak is None  # not known
    assert summary.dnns["style"].end_to_end_ms.p99 == data["dnns"]["style"]["end_to_end_ms"]["p99"]
    more = {"simulated", "scenario", "system", "seed", "times_real_time"}
    kept = {name: value for name, value in data.items() if name not in more}
    assert json.dumps(summary.to_dict()) == json.dumps(kept)  # in the same order
    world = {"tracked": 0.9, "lost": 1, "exact": None, "pose_ms": {"p50": 2.0, "p99": 5.0}}
    placed = RunSummary.from_dict({**data, "world": world})
    assert placed.world.pose_ms.p99 == 5
    assert placed.to_dict()["world"] == world
