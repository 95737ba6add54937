"""A live run of shopping (software GPU in real time, two cores) against its simulation."""

from __future__ import annotations

import gzip
import statistics
from pathlib import Path

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.recorded import RecordedRun
from heimdall.lab.simulator.simulate import simulate, simulated_run
from heimdall.runtime.telemetry.trace import Recording, read_recording

DATA = Path(__file__).parent / "data" / "shopping.json.gz"
SEEDS = range(4)


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "shopping.json"
    path.write_bytes(gzip.decompress(DATA.read_bytes()))
    return path


@pytest.fixture(scope="module")
def live(trace) -> RecordedRun:
    return RecordedRun(read_recording(trace))


@pytest.fixture(scope="module")
def simulated(live):
    runs = []
    for seed in SEEDS:
        run = simulated_run(
            live.dnns(), live.machine(), live.system, fps=1e9 / live.interval_ns, seed=seed
        )
        run.run(live.seconds)
        runs.append(run.figures.summary(run.machine.render_ns, None, run.now_ns))
    return runs


@pytest.mark.parametrize("dnn", ["detect", "segment", "hand", "style"])
def test_the_mean_latency_is_within_15_percent_of_the_live_one(live, simulated, dnn):
    means = [run["dnns"][dnn]["latency_ms"]["mean"] for run in simulated]
    assert statistics.fmean(means) == pytest.approx(live.latency_ms(dnn), rel=0.15)


def test_the_frame_rate_is_within_1_percent_of_the_live_one(live, simulated):
    for run in simulated:
        assert run["fps"]["mean"] == pytest.approx(live.fps, rel=0.01)


def test_a_scenario_runs_on_the_machine_of_a_recorded_run(trace):
    summary = simulate("shopping", str(trace), "max-min", seconds=5)
    assert summary["device"]["mode"] == "simulated recorded"
    assert all(dnn["inferences"] for dnn in summary["dnns"].values())


def test_a_baseline_needs_to_know_the_drivers_turns(trace):
    with pytest.raises(ConfigError, match="heimdall bench"):
        simulate("shopping", str(trace), "multithread")


def test_dnns_that_were_not_recorded_are_named(trace):
    with pytest.raises(ConfigError, match=r"another app: it has detect, hand.* and not faces"):
        simulate("criminal", str(trace), "max-total")


def test_a_recording_that_is_damaged_or_too_short_is_refused(trace):
    whole = read_recording(trace)
    with pytest.raises(ConfigError, match="damaged"):
        RecordedRun(Recording({}, whole.records))
    with pytest.raises(ConfigError, match="too short"):
        RecordedRun(Recording(whole.config, whole.records[:100]))
