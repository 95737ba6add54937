"""Simulated runs are what they say."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from heimdall.coordinator.replay import replay
from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.simulate import open_machine, simulate, simulated_run
from heimdall.runtime.telemetry.trace import read_recording
from heimdall.schedulers import SCHEDULERS

PHONE = "lg-v50"


def timeless(summary):
    return {k: v for k, v in summary.items() if k not in ("wall_s", "times_real_time")}


@pytest.fixture(scope="module")
def baseline():
    return simulate("shopping", PHONE, "multithread", seconds=20)


@pytest.fixture(scope="module")
def coordinated():
    return simulate("shopping", PHONE, "max-total", seconds=20)


# --- a run --------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_run():
    first, again, other = (
        timeless(simulate("shopping", PHONE, "max-total", seconds=5, seed=seed))
        for seed in (3, 3, 4)
    )
    assert first == again
    assert first["dnns"] != other["dnns"]


PLANNED = ("top", "static-plan", "static-plan-free")


@pytest.mark.parametrize("name", PLANNED)
def test_a_system_of_plans_is_for_requests(name):
    with pytest.raises(ConfigError, match=f"{name} needs plans .* top-mixed"):
        simulate("shopping", "pixel-3-xl", name, seconds=3)


@pytest.mark.parametrize("policy", sorted(SCHEDULERS))
def test_no_policy_costs_the_app_its_frame_rate(policy):
    assert simulate("shopping", "pixel-3-xl", policy, seconds=3)["fps"]["mean"] >= 29.9


def test_a_scenario_without_an_app_runs():
    summary = simulate("criminal", PHONE, "max-min", seconds=5)
    assert set(summary["dnns"]) == {"faces", "recognise"}


def test_the_gpu_is_never_busy_for_longer_than_the_run(baseline, coordinated):
    for summary in (baseline, coordinated):
        assert 0 < summary["gpu"]["busy_ms"] <= 1000 * summary["seconds"] * 1.01


def test_a_trace_replays_into_a_fresh_coordinator(tmp_path):
    path = tmp_path / "trace.json"
    simulate("shopping", PHONE, "max-total", seconds=2, trace=path)
    recording = read_recording(path)
    assert len(recording.records) > 100
    assert list(replay(recording.config, recording.records)) == []


def test_a_chunk_on_the_phone_ends_earlier_when_it_yields(tmp_path):
    path = tmp_path / "trace.json"
    simulate("shopping", PHONE, "max-total", seconds=10, trace=path)
    planned: dict[int, int] = {}
    ended: dict[int, int] = {}
    yielding = set()
    for record in read_recording(path).records:
        event = record["event"]
        if event and event["type"] == "ChunkFinished" and event["job"] in yielding:
            ended[event["job"]] = event["end_op"] - planned[event["job"]]
            yielding.discard(event["job"])
        for action in record["actions"]:
            if action["type"] == "RunChunk":
                planned[action["job"]] = action["end_op"]
            elif action["type"] == "Yield":
                yielding.add(action["job"])
    assert min(ended.values()) < 0
    assert max(ended.values()) <= 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere", PHONE, "max-total"), "unknown scenario 'nowhere'"),
        (("shopping", "nothing", "max-total"), "unknown device 'nothing'"),
        (("shopping", PHONE, "magic"), "unknown system 'magic'"),
    ],
)
def test_an_unknown_name_lists_the_valid_ones(arguments, message):
    with pytest.raises(ConfigError, match=message):
        simulate(*arguments)


def test_the_cpu_has_no_more_workers_than_cores():
    with pytest.raises(ConfigError, match="9 workers of the CPU need a core each"):
        simulate("shopping", PHONE, "max-total", seconds=1, variations={"cpu_workers": 9})


@pytest.mark.parametrize(
    "options",
    [{"seconds": 0}, {"seconds": 1e9}, {"render_ms": -1}, {"variations": {"cpu_workers": 0}}],
)
def test_values_out_of_range_are_refused(options):
    with pytest.raises(ConfigError):
        simulate("shopping", PHONE, "max-total", **options)


def test_sessions_on_the_cores_that_play_the_gpu_are_not_simulated():
    machine, dnns = open_machine(load_scenario("shopping"), PHONE)
    software = replace(machine, software_gpu=True)
    with pytest.raises(ConfigError, match="heimdall bench"):
        simulated_run(dnns, software, parse_system("multithread-onnxruntime"), fps=30)


def test_what_a_driver_makes_of_priorities_is_not_simulated():
    with pytest.raises(ConfigError, match="driver-priority cannot be simulated: when a driver"):
        simulate("shopping", PHONE, "driver-priority")


def test_a_dnn_that_is_too_slow_even_alone_is_warned_of(caplog):
    simulate("shopping", PHONE, "max-total", seconds=1, render_ms=20)
    assert [record.message.split()[0] for record in caplog.records] == ["hand", "style"]


def test_rendering_that_takes_longer_than_a_frame_lowers_the_rate():
    summary = simulate("shopping", PHONE, "max-total", seconds=5, render_ms=50)
    assert summary["fps"]["mean"] == pytest.approx(15, abs=0.2)


# --- the command --------------------------------------------------------------------------


def test_the_command_prints_one_json_object(run_command):
    status, output = run_command("shopping", "--seconds", "2", "--json")
    assert status == 0
    assert json.loads(output.out)["simulated"] is True


def test_the_command_prints_a_table(run_command):
    status, output = run_command("shopping", "--seconds", "2", "--system", "multithread")
    assert status == 0
    assert "times faster than real time" in output.out


def test_the_command_writes_a_page(run_command, tmp_path):
    page = tmp_path / "page.html"
    status, _ = run_command("shopping", "--seconds", "1", "--report", str(page))
    assert status == 0
    assert "shopping, simulated lg-v50" in page.read_text()


def test_a_page_that_cannot_be_written_is_refused_before_the_run(run_command, tmp_path):
    status, output = run_command("shopping", "--report", str(tmp_path))
    assert status == 2
    assert f"File '{tmp_path}' is a directory" in output.err


def test_bad_input_ends_the_command_with_one_line(run_command):
    status, output = run_command("shopping", "--device", "nothing")
    assert status == 2
    assert output.err.startswith("error: unknown device")


BOTH = """
title = "Frames, and requests beside them"
fps = 30
size = [1920, 1080]
seconds = 5

[dnns.segment]
reference = "DeepLab-v3"
rate_hz = 1
max_rate_hz = 1

[models.ArcFace]
event = { process = "periodic", rate_hz = 2 }
slo_ms = 5000
"""


@pytest.fixture
def both(tmp_path):
    path = tmp_path / "both.toml"
    path.write_text(BOTH, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("system", ["max-total", "max-min-static", "lst"])
def test_requests_run_beside_frames(both, system):
    found, again = (simulate(both, None, system, seed=3) for _ in range(2))
    assert found["fps"]["mean"] == pytest.approx(30, abs=0.1)
    asked = found["requests"]["ArcFace"]
    assert asked["submitted"] == 10
    assert asked["finished"] == 10
    assert asked["latency_ms"]["mean"] > 149  # what it takes alone, without frames
    assert found["dnns"]["segment"]["inferences"] >= 4
    for name in ("requests", "dnns", "violations", "fps"):
        assert found[name] == again[name]


def test_what_waits_when_a_run_of_both_ends_has_no_answer(both, tmp_path):
    path = tmp_path / "more.toml"
    path.write_text(BOTH.replace("rate_hz = 2", "rate_hz = 20"), encoding="utf-8")
    asked = simulate(str(path), None, "lst")["requests"]["ArcFace"]
    assert asked["submitted"] == 100
    assert 0 < asked["finished"] < 100
    assert asked["finished"] + asked["dropped"] == 100


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"device": "here"}, "on a phone's profile"),
        ({"variations": {"sunshine": 1}}, "sunshine"),
        ({"variations": {"noise": 0.5}}, "vary gpu_noise"),
        ({"variations": {"estimates": 0.5}}, "vary gpu_noise"),
    ],
)
def test_requests_beside_frames_need_a_phone(both, given, match):
    asked = {"device": None, "system": None, **given}
    with pytest.raises(ConfigError, match=match):
        simulate(both, asked.pop("device"), asked.pop("system"), **asked)


def test_both_kinds_of_figures_may_be_varied_in_a_scenario_of_both(both):
    varied = {"rate": 2, "gpu_noise": 0.1}
    found = simulate(both, None, None, variations=varied)
    assert found["requests"]["ArcFace"]["submitted"] == 20


@pytest.mark.parametrize(
    "line", ['away = [{ processor = "gpu", from_s = 1, for_s = 1 }]', 'lone = "p99"', 'actor = "a"']
)
def test_what_is_not_simulated_beside_frames_is_refused(tmp_path, line):
    path = tmp_path / "both.toml"
    path.write_text(BOTH.replace("seconds = 5", f"seconds = 5\n{line}"), encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{line.split()[0]}: is not simulated beside frames"):
        simulate(str(path), None, None)


def test_requests_beside_frames_may_end_by_their_number(tmp_path):
    path = tmp_path / "both.toml"
    path.write_text(BOTH.replace("seconds = 5", "requests = 4"), encoding="utf-8")
    found = simulate(str(path), None, None, variations={"rate": 2, "gpu_noise": 0.1})
    assert found["requests"]["ArcFace"]["submitted"] == 4
