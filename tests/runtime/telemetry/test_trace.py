"""Trace files: a timeline for viewers, and a recording that replays."""

from __future__ import annotations

import json

import pytest

from heimdall import ConfigError
from heimdall.coordinator import Coordinator
from heimdall.coordinator.replay import replay
from heimdall.runtime.telemetry import trace
from heimdall.runtime.telemetry.trace import SCHEMA, Tracer, read_recording
from heimdall.vocabulary.events import ChunkFinished, Event, FrameRendered, InputReady, RunChunk
from heimdall.vocabulary.plans import DnnPlan, StagePlan

MS = 1_000_000


def small_run(tracer: Tracer) -> Coordinator:
    stage = StagePlan((MS, MS), (False, False), 9 * MS, 0, ((0, 2),))
    coordinator = Coordinator(
        [DnnPlan("eye", (stage,), 500 * MS)], scheduler="max-min", frame_interval_ns=33 * MS
    )
    script: list[tuple[int, Event]] = [
        (0, FrameRendered(0, 28 * MS)),
        (2 * MS, InputReady(0)),
        (5 * MS, ChunkFinished(0, "gpu", 0, 2, 2 * MS)),
    ]
    for now_ns, event in script:
        tracer.step(now_ns, event, coordinator.receive(event, now_ns))
    return coordinator


def test_a_saved_run_replays_without_differences(tmp_path):
    tracer = Tracer(0)
    config = small_run(tracer).config()
    tracer.save(tmp_path / "t.json", config, {"app": "test"})
    recording = read_recording(tmp_path / "t.json")
    assert len(recording.records) == 3
    assert list(replay(recording.config, recording.records)) == []


def test_a_changed_decision_is_found(tmp_path):
    tracer = Tracer(0)
    config = small_run(tracer).config()
    chunk = next(a for _, _, actions in tracer.steps for a in actions if isinstance(a, RunChunk))
    tracer.save(tmp_path / "t.json", config, {})
    recording = read_recording(tmp_path / "t.json")
    text = json.dumps(recording.records).replace(chunk.reason, "whim")
    found = list(replay(recording.config, json.loads(text)))
    assert [difference.index for difference in found] == [1]


def test_what_the_cpu_does_at_the_same_time_is_in_lanes_of_its_own(tmp_path):
    tracer = Tracer(0)
    for name, start_ns, end_ns in (("a", 0, 9000), ("b", 4000, 12000), ("c", 9000, 11000)):
        tracer.span("cpu", name, start_ns, end_ns, {})
    tracer.save(tmp_path / "t.json", {}, {})
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    placed = {e["name"]: lanes[e["tid"]] for e in events if e["ph"] == "X"}
    assert placed == {"a": "cpu", "b": "cpu-1", "c": "cpu"}


def test_spans_are_complete_events_in_their_lane_in_microseconds(tmp_path):
    tracer = Tracer(start_ns=1000)
    tracer.span("gpu", "detect", 3000, 9000, {"reason": "deadline"})
    tracer.save(tmp_path / "t.json", {}, {})
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    span = next(e for e in events if e["ph"] == "X")
    assert lanes[span["tid"]] == "gpu"
    assert (span["ts"], span["dur"], span["args"]) == (2.0, 6.0, {"reason": "deadline"})


DEEP = '{"a":' + "[" * 100_000


@pytest.mark.parametrize("text", ["", "{", "[]", '{"traceEvents": []}', '{"heimdall": {}}', DEEP])
def test_a_damaged_file_is_refused_by_name(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"broken\.json is not a trace"):
        read_recording(path)


@pytest.mark.parametrize(("config", "records"), [({}, 3), ({}, None), ([], []), (None, [])])
def test_a_recording_is_a_table_and_a_list(tmp_path, config, records):
    content = {"schema": SCHEMA, "config": config, "records": records}
    (tmp_path / "odd.json").write_text(json.dumps({"heimdall": content}))
    with pytest.raises(ConfigError, match=r"odd\.json (is|are) damaged"):
        read_recording(tmp_path / "odd.json")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read trace .*none\.json"):
        read_recording(tmp_path / "none.json")


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("old")
    tracer = Tracer(0)
    with pytest.raises(TypeError):
        tracer.save(path, {"bad": object()}, {})
    with pytest.raises(ConfigError, match="cannot write trace"):
        tracer.save(tmp_path / "t.json" / "deeper.json", {}, {})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_trace_that_is_full_says_so_once_and_keeps_what_it_has(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(trace, "MOST", 4)
    tracer = Tracer(0)
    config = small_run(tracer).config()
    for number in range(1, 4):
        tracer.span("gpu", "eye", number * MS, (number + 1) * MS, {})
    tracer.step(9 * MS, None, [])
    assert (len(tracer.steps), len(tracer.spans)) == (3, 1)
    assert caplog.text.count("the trace is full after 0 s (4 entries)") == 1
    tracer.save(tmp_path / "t.json", config, {"app": "test"})
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["otherData"] == {"app": "test", "full_s": 0.003}
    recording = read_recording(tmp_path / "t.json")
    assert list(replay(recording.config, recording.records)) == []
