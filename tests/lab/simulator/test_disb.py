"""DISB's workloads and XSched's video call, simulated."""

from __future__ import annotations

import pytest

from heimdall.lab.bench.scenario import load_scenario, scenario_names
from heimdall.lab.simulator.simulate import simulate

SCENARIOS = [name for name in scenario_names() if name.startswith("disb-")]
FIVE = {"resnet152", "densenet201", "vgg19", "inception-v3", "distilbert"}
CLIENTS = {  # real-time ones, and the networks of those of best effort
    "disb-a": ({"vgg19"}, {"resnet152"}),
    "disb-b": ({"vgg19"}, {"resnet152"}),
    "disb-c": ({"vgg19"}, FIVE),
    "disb-d": (FIVE, FIVE),
    "disb-e": (FIVE, FIVE),
    "disb-real": (FIVE, FIVE),
}


def run(scenario: str, system: str = "max-min"):
    return simulate(scenario, None, system, seconds=6)


def test_the_workloads_are_those_of_the_benchmark():
    assert CLIENTS.keys() == set(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_clients_of_best_effort_never_rest_and_the_others_come_first(name):
    models = load_scenario(name).models
    urgent, loops = CLIENTS[name]
    assert {each for each, said in models.items() if said.priority == "high"} == urgent
    low = {each: said for each, said in models.items() if said.priority == "low"}
    assert low.keys() == {f"{each}-be" for each in loops}
    assert {said.event.process for said in low.values()} == {"closed"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_order_helps_the_real_time_clients(name):
    requests = {system: run(name, system)["requests"] for system in ("multithread", "max-min")}
    urgent, loops = CLIENTS[name]
    for client in urgent:
        alone, ordered = (requests[system][client] for system in ("multithread", "max-min"))
        assert ordered["dropped"] == 0
        if name != "disb-b":  # which is in a loop, too
            assert ordered["submitted"] == alone["submitted"]
    means = {
        system: sum(
            each[client]["latency_ms"]["mean"] for client in urgent if each[client]["finished"]
        )
        for system, each in requests.items()
    }
    assert means["max-min"] < means["multithread"]
    assert all(requests["max-min"][f"{each}-be"]["finished"] for each in loops)


@pytest.mark.parametrize("system", ["max-min", "lst", "fixed", "multithread"])
def test_all_runs_on_the_one_processor_that_is_named(system):
    for name in ("disb-a", "video-call"):
        busy = run(name, system)["processors"]
        assert busy["gpu"]["busy_s"] > 0
        assert not any(each["busy_s"] for id, each in busy.items() if id != "gpu")


def test_a_call_has_its_frames_and_its_speech():
    requests = run("video-call")["requests"]
    assert requests["background"]["submitted"] == 150
    assert requests["speech"]["submitted"] == 2
    assert requests["speech"]["latency_ms"]["max"] < 3000
