"""The summary of a run, to plain data and back."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from heimdall import RunSummary
from heimdall.lab.simulator.simulate import simulate
from heimdall.runtime.telemetry.summary import Latency, Rates, RequestSummary


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


def test_it_is_short_where_it_is_shown_and_whole_as_json():
    summary = RunSummary.from_dict(simulate("shopping-phone", "lg-v50", "max-total", seconds=1))
    assert re.fullmatch(
        r"RunSummary\(shopping: \d+\.\d of 30 fps; detect \d+\.\d ms, .*\)", repr(summary)
    )
    assert len(repr(summary)) < 120
    lines = str(summary).splitlines()
    assert len(lines) == 2 + len(summary.dnns)
    assert re.fullmatch(r"\d+ frames in 1\.0 s, \d+ late", lines[1])
    assert re.fullmatch(
        r"detect: \d+ inferences, \d+ late, \d+\.\d ms on average, \d+\.\d ms p99", lines[2]
    )
    assert json.loads(json.dumps(summary.to_dict()))["dnns"].keys() == summary.dnns.keys()


def test_it_says_where_there_was_nothing_to_count():
    data = simulate("shopping-phone", "lg-v50", "max-total", seconds=1)
    nothing = dict.fromkeys(("mean", "p50", "p99", "max"))
    detect = {**data["dnns"]["detect"], "latency_ms": nothing}
    latency = Latency(4.0, 4.0, 5.0, 5.0)
    asked = RequestSummary(2, 1, 1, {}, {}, None, None, latency, None, None, {}, 0)
    summary = replace(
        RunSummary.from_dict({**data, "dnns": {"detect": detect}}),
        fps=Rates(None, None, None),
        requests={"faces": asked},
        errors=["no couch"],
    )
    assert repr(summary) == ("RunSummary(shopping: nothing drawn; detect no result, faces 4.0 ms)")
    assert str(summary).splitlines()[-2:] == [
        "faces: 1 of 2 requests answered, 4.0 ms on average, 5.0 ms p99",
        "error: no couch",
    ]
