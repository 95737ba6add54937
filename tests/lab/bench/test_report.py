"""Timelines from traces, and the page about a comparison."""

from __future__ import annotations

import json
from math import isnan, nan
from pathlib import Path
from xml.etree import ElementTree

import pytest

from heimdall.coordinator.coordinator import Coordinator
from heimdall.errors import ConfigError
from heimdall.lab.bench import charts
from heimdall.lab.bench.report import write_report, write_simulation
from heimdall.lab.bench.timeline import Span, Timeline, read_timeline
from heimdall.runtime.telemetry.jobs import Outcome, request_figures, violations
from heimdall.runtime.telemetry.statistics import over_runs
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.vocabulary.events import ChunkFinished, FrameRendered, InputReady, RunChunk
from heimdall.vocabulary.plans import DnnPlan, StagePlan, Utility

MS = 1_000_000
PLAN = DnnPlan(
    "eye", (StagePlan((2 * MS, 3 * MS), (False, False), 9 * MS, 0, ((0, 2),)),), 100 * MS,
    Utility(l0=100.0**2),
)  # fmt: skip
COORDINATED = Timeline(
    (Span("render", "frame 1", 0.0, 5.0), Span("gpu", "eye", 5.0, 6.0, "0-2", reason="<utility>")),
    {"eye": [(0.0, nan), (1.0, 1.0), (10.0, 0.5)]},
    {"eye": 0.2},
)
BASELINE = Timeline((Span("eye", "eye", 0.0, 50.0),), {}, {})


def run(fps: float) -> dict[str, object]:
    latency = {"mean": 20.0, "p50": 19.0, "p99": 30.0, "max": 31.0}
    dnn = {"inferences": 9, "latency_ms": latency, "gpu": 9, "cpu": 0, "chunks": 2.0}
    dnn["utility"] = 0.5
    return {
        "fps_target": 30,
        "fps": {"mean": fps, "min": fps - 1, "max": fps + 1},
        "frame_interval_ms": {"p50": 33.3, "p99": 34.0, "max": 40.0},
        "late_frames": 0,
        "gap_utilization": None,
        "decision_us": {"p50": None, "p99": None},
        "device": {"gpu": "Chip & Co", "mode": "hardware", "renderer": "GL"},
        "dnns": {"eye": {**dnn, "deadline_misses": 0}},
    }


def result(**systems: dict[str, object]) -> dict[str, object]:
    machine = {"processor": "CPU", "cores": 2, "memory_mb": 1000, "platform": "Linux"}
    found = {"title": "Room", "machine": machine, "systems": systems}
    return {**found, "failures": [], "interrupted": False}


def requests_run(latency_ms: float) -> dict[str, object]:
    ms = 1_000_000
    outcomes = [Outcome("net", at * ms, (at + round(latency_ms)) * ms, 30 * ms) for at in range(9)]
    alone = {"net": 10.0 * ms, "idle": 5.0 * ms}
    return {
        "device": {"gpu": "Chip", "cpu": "Cores", "mode": "simulated", "renderer": None},
        "requests": request_figures([*outcomes, Outcome("net", 0, None, 30 * ms)], alone),
        "violations": violations(outcomes, alone),
        "throughput_hz": 9.0,
        "processors": {"npu": {"busy": 0.25, "busy_s": 1.5}},
        "errors": [],
    }


REQUESTS = requests_run(25.0)


def page(tmp_path: Path, found: dict[str, object], timelines: dict[str, Timeline]) -> str:
    path = tmp_path / "page.html"
    write_report(path, found, timelines, "heimdall bench room")
    return path.read_text(encoding="utf-8")


def test_the_page_holds_every_chart_and_loads_nothing(tmp_path: Path):
    timelines = {"multithread": BASELINE, "best": COORDINATED}
    text = page(tmp_path, result(multithread=run(12.0), best=run(29.9)), timelines)
    assert text.count("<svg") == 4  # frame rate, latency, overhead, coordination of one system
    assert "Chip &amp; Co" in text
    assert "heimdall bench room" in text
    assert "src=" not in text
    assert 'href="http' not in text


def test_a_dnn_has_one_colour_and_a_system_one_shade_on_the_whole_page(tmp_path: Path):
    timelines = {"multithread": BASELINE, "best": COORDINATED}
    text = page(tmp_path, result(multithread=run(12.0), best=run(29.9)), timelines)
    eye = charts.colours(["eye"])["eye"]
    assert f'{{"eye":"{eye}"}}' in text  # the timelines of both systems
    assert f"stroke: {eye.lower()}" in charts.coordination_chart(COORDINATED)
    best = charts.shades(["multithread", "best"])["best"]
    assert f"fill: {best}" in charts.fps_chart({"multithread": run(12.0), "best": run(30.0)})
    assert f"fill: {best}" in charts.overhead_chart(timelines)


def test_requests_have_charts_and_tables_and_nothing_is_drawn(tmp_path: Path):
    found = {**result(fcfs=requests_run(25.0), best=requests_run(12.0)), "machine": None}
    text = page(tmp_path, found, {"best": Timeline((Span("npu", "net", 0, 9.0),), {}, {})})
    assert text.count("<svg") == 3  # violations, jitter, latency
    assert "Frame rate" not in text
    assert "npu 25% (1.5 s)" in text
    row = text[text.index('<th rowspan="2">net</th>') :].split("</tr>")[0]
    assert "<td>10.0</td><td>10</td><td>1</td><td>25.0</td>" in row  # alone, asked, dropped, mean
    assert "–" in text[text.index('<th rowspan="2">idle</th>') :].split("</tr>")[0]
    net = charts.colours(["net", "idle"])["net"]
    assert f'"net":"{net}"' in text


def test_requests_of_several_runs_are_means(tmp_path: Path):
    runs = [requests_run(12.0), requests_run(18.0)]
    found = {**result(best=runs[0]), "machine": None, "seeds": [0, 1]}
    found["over_runs"] = {"best": over_runs(runs)}
    text = page(tmp_path, found, {})
    assert "Means of 2 runs" in text
    assert "<td>15.0 ± " in text


def test_a_figure_that_could_not_be_taken_is_a_dash(tmp_path: Path):
    text = page(tmp_path, result(best=run(30.0)), {})
    assert "<td>30.00</td>" in text
    assert "<td>–</td></tr>" in text  # no decision was timed


def test_the_input_sizes_that_were_found_are_on_the_page(tmp_path: Path):
    load = {"size": [512, 928], "alone_ms": 93.19, "fallback_ms": 0.0, "wanted_ms": 95.0}
    loaded = {**run(30.0), "loads": {"eye": load}}
    text = page(tmp_path, result(worse=loaded, best=loaded), {})
    assert text.count("eye takes 93.2 ms alone at 512×928 (95 were asked for).") == 1


def test_what_a_trace_says_cannot_end_the_script(tmp_path: Path):
    text = page(tmp_path, result(best=run(30.0)), {"best": COORDINATED})
    assert "\\u003cutility>" in text
    assert "<utility>" not in text


def test_a_page_without_systems_says_so_and_nothing_breaks(tmp_path: Path):
    text = page(tmp_path, {**result(), "failures": ["best: no GPU"], "interrupted": True}, {})
    assert "Failed: best: no GPU" in text
    assert "Interrupted" in text


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write report .*page\.html"):
        write_report(tmp_path / "file" / "page.html", result(), {}, "")


@pytest.mark.parametrize(
    "picture",
    [
        charts.fps_chart({"a": run(12.0), "b": run(30.0)}),
        charts.latency_chart({"a": run(12.0), "b": run(30.0)}),
        charts.overhead_chart({"b": COORDINATED}),
        charts.coordination_chart(COORDINATED),
        charts.violation_chart({"a": over_runs([REQUESTS, REQUESTS]), "b": over_runs([REQUESTS])}),
        charts.jitter_chart({"a": over_runs([REQUESTS])}),
    ],
)
def test_charts_are_well_formed(picture):
    assert ElementTree.fromstring(picture).tag.endswith("svg")


def test_a_run_without_coordination_has_neither_overhead_nor_utility():
    assert charts.overhead_chart({"a": BASELINE}) is None
    assert charts.coordination_chart(BASELINE) is None


def test_a_timeline_replays_utilities_and_compares_chunks_with_the_profile(tmp_path: Path):
    coordinator = Coordinator(
        [PLAN], scheduler="max-total", frame_interval_ns=33 * MS, offload=False
    )
    tracer = Tracer(0)

    def tell(event, now_ms: int):
        actions = coordinator.receive(event, now_ms * MS)
        tracer.step(now_ms * MS, event, actions)
        return actions

    (prepare,) = tell(FrameRendered(0, 30 * MS), 0)
    (chunk,) = tell(InputReady(prepare.job), 1)
    assert isinstance(chunk, RunChunk)
    details = {"ops": f"{chunk.start_op}-{chunk.end_op}", "stage": 0, "reason": chunk.reason}
    tracer.span("gpu", "eye", 1 * MS, 7 * MS, details)
    tell(ChunkFinished(chunk.job, "gpu", chunk.start_op, chunk.end_op, 6 * MS), 7)
    tracer.span("else", "other", 8 * MS, 9 * MS, {})
    tracer.save(tmp_path / "trace.json", coordinator.config(), {})
    timeline = read_timeline(tmp_path / "trace.json")
    assert timeline.lanes == ["gpu", "else"]
    assert timeline.spans[0] == Span("gpu", "eye", 0.0, 6.0, "0-2", 0, chunk.reason)
    assert timeline.overhead == {"eye": pytest.approx(0.2)}
    assert set(timeline.utility) == {"eye"}
    *before, (last_ms, last) = timeline.utility["eye"]
    assert before
    assert all(isnan(value) for _, value in before)  # nothing was enqueued
    assert (last_ms, last) == (7.0, pytest.approx(1 - 6**2 / 100**2))


def test_a_damaged_trace_is_named(tmp_path: Path):
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [{"ph": "X"}]}))
    with pytest.raises(ConfigError, match=r"trace\.json cannot be read"):
        read_timeline(tmp_path / "trace.json")


def test_a_simulated_run_has_a_page_of_its_own(tmp_path: Path):
    from heimdall.lab.simulator.simulate import simulate

    trace, path = tmp_path / "trace.json", tmp_path / "page.html"
    summary = simulate("shopping", "lg-v50", "max-total", seconds=2, trace=trace)
    write_simulation(path, summary, trace, "heimdall simulate shopping")
    text = path.read_text(encoding="utf-8")
    assert "<h1>shopping, simulated lg-v50</h1>" in text
    assert "CPU: Kryo 485 Gold." in text
    assert "GPU: Adreno 640" in text
    assert text.count("<svg") == 4
