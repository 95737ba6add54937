"""A machine with another figure in one place runs with it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.simulate import open_machine, simulate, simulated_run
from heimdall.lab.simulator.variations import vary

MS = 1_000_000


@pytest.fixture(scope="module")
def phone() -> tuple[Machine, list[SimulatedDnn]]:
    return open_machine(load_scenario("shopping"), "lg-v50")


def varied(phone, values):
    machine, dnns = phone
    return vary(machine, dnns, values)


def figures(phone, values, system="max-total", seconds=5, seed=1):
    machine, dnns = varied(phone, values)
    run = simulated_run(dnns, machine, parse_system(system), fps=30, seed=seed)
    run.run(seconds)
    summary = run.figures.summary(machine.render_ns, run.gap_utilization(), run.now_ns)
    return {name: summary[name] for name in ("fps", "late_frames", "render_ms", "dnns")}


def test_nothing_varied_is_the_machine_itself(phone):
    assert varied(phone, {}) == phone


@pytest.mark.parametrize(
    ("values", "field", "figure"),
    [
        ({"turn_ms": 12.5}, "batch_ns", 12_500_000),
        ({"switch_ms": 2.5}, "switch_ns", 2_500_000),
        ({"part_cost_ms": 0.4}, "part_cost_ns", 400_000),
        ({"gpu_noise": 0.2}, "gpu_noise", 0.2),
        ({"cpu_noise": 0.1}, "cpu_noise", 0.1),
        ({"render_noise": 0.1}, "render_noise", 0.1),
        ({"cpu_workers": 4}, "cpu_workers", 4),
        ({"throttle": [60, 1.5]}, "throttle", (60.0, 1.5)),
    ],
)
def test_a_figure_of_the_machine(phone, values, field, figure):
    machine, dnns = varied(phone, values)
    assert getattr(machine, field) == figure
    assert dnns == phone[1]


def test_slower_cores_slow_every_network_in_proportion(phone):
    def whole_ns(dnns):
        return [dnn.plan.stages[0].cpu_ns for dnn in dnns]

    machine, dnns = phone
    same, slower = (vary(machine, dnns, {"slowdown": s})[1] for s in (2.72, 5.44))
    assert whole_ns(same) == whole_ns(dnns)
    assert whole_ns(slower) == pytest.approx([2 * ns for ns in whole_ns(dnns)])
    again = varied(varied(phone, {"slowdown": 2.0}), {"slowdown": 2.72})[1]
    assert whole_ns(again) == pytest.approx(whole_ns(dnns), rel=1e-6)


def test_longer_turns_and_switches_cost_a_baseline_frames(phone):
    short, long, switching = (
        figures(phone, values, "multithread")["fps"]["mean"]
        for values in ({"turn_ms": 10}, {"turn_ms": 50}, {"turn_ms": 10, "switch_ms": 3})
    )
    assert long < 0.6 * short
    assert switching < short


def test_rendering_varies_by_itself_and_draws_from_numbers_of_its_own(phone):
    usual, noisy = (figures(phone, {"render_noise": spread}) for spread in (0.0, 0.3))
    assert usual["render_ms"]["p99"] < 1.2 * usual["render_ms"]["p50"]
    assert noisy["render_ms"]["p99"] > 1.5 * noisy["render_ms"]["p50"]
    draws = []
    for spread in (0.0, 0.3):
        machine, dnns = varied(phone, {"render_noise": spread})
        run = simulated_run(dnns, machine, parse_system("multithread"), fps=30, seed=1)
        run.run(0.001)
        run.render_noise()
        draws.append(run.arrivals["style"].next_ns)
    assert draws[0] == draws[1]


def test_what_the_dnns_see_changes_what_runs(phone):
    still, moving = (figures(phone, {"luminance": name})["dnns"] for name in ("none", "desk"))
    assert still == figures(phone, {})["dnns"]
    assert still != moving


def test_differences_are_taken_since_a_dnns_last_picture(phone):
    class Clip:
        def __init__(self):
            self.asked = []

        def difference(self, before_ns, now_ns):
            self.asked.append((before_ns, now_ns))
            return 0.0

    machine, dnns = phone
    (hand,) = (dnn for dnn in dnns if dnn.name == "hand")
    clip = Clip()
    hand = replace(hand, watched=clip)
    simulated_run([hand], machine, parse_system("max-total"), fps=30, seed=0).run(2)
    assert clip.asked[0][0] is None
    assert len(clip.asked) > 10
    assert all(before == last for (_, last), (before, _) in pairwise(clip.asked))


def test_the_changes_of_a_recorded_run(phone, tmp_path):
    path = tmp_path / "trace.json"
    seeing = {"luminance": "desk"}
    simulate("shopping", "lg-v50", "max-total", seconds=2, trace=path, variations=seeing)
    _, dnns = varied(phone, {"luminance": str(path)})
    assert all(max(dnn.luminance_difference) > 0 for dnn in dnns)


def test_a_trace_that_lacks_luminance_is_refused(phone, tmp_path):
    path = tmp_path / "trace.json"
    simulate("shopping", "lg-v50", "max-total", seconds=1, trace=path)
    with pytest.raises(ConfigError, match="the trace lacks luminance"):
        varied(phone, {"luminance": str(path)})


def test_a_trace_of_other_dnns_is_refused(phone, tmp_path):
    path = tmp_path / "trace.json"
    simulate("emoji", "lg-v50", "max-total", seconds=2, trace=path, variations={"luminance": "cup"})
    with pytest.raises(ConfigError, match=r"another app: it has face, .* not detect"):
        varied(phone, {"luminance": str(path)})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("turn", 1, "unknown variation 'turn'; choose one of: cpu_noise, cpu_workers"),
        ("turn_ms", 0, "turn_ms=0: must be above 0"),
        ("turn_ms", None, "must be a number"),
        ("slowdown", -1, "slowdown=-1: must be above 0"),
        ("gpu_noise", 1.5, "at most 1"),
        ("gpu_noise", "much", "must be a finite number"),
        ("cpu_workers", 1.5, "must be a whole number"),
        ("cpu_workers", 0, "at least 1"),
        ("luminance", 3, "must be the name of a clip"),
        ("luminance", "beach", "unknown clip 'beach'"),
        ("luminance", "nothing.json", "cannot read trace"),
        ("throttle", 3, r"must be \[seconds, factor\]"),
        ("throttle", [3, 0], "must be above 0"),
    ],
)
def test_impossible_values_are_refused(phone, name, value, message):
    with pytest.raises(ConfigError, match=message):
        varied(phone, {name: value})


def test_a_varied_machine_can_go_to_another_process(phone):
    for name, value in {"turn_ms": 1, "luminance": "desk", "throttle": [1, 2]}.items():
        changed = varied(phone, {name: value})
        assert pickle.loads(pickle.dumps(changed)) == changed
