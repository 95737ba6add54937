"""Scenarios without rendering: what a file may say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from heimdall.bench.request_scenario import load_requests
from heimdall.bench.scenario import load_scenario, request_scenario_names, scenario_names
from heimdall.errors import ConfigError

SYSTEM = 'system = "max-total"\n'
VALID = """
requests = 10
[models.a]
event = { process = "poisson", rate_hz = 2 }
slo_ms = 100
"""


@pytest.fixture
def load(tmp_path: Path):
    def write_and_load(text: str):
        path = tmp_path / "mine.toml"
        path.write_text(SYSTEM + text, encoding="utf-8")
        return load_requests(str(path))

    return write_and_load


@pytest.mark.parametrize("name", request_scenario_names())
def test_bundled_scenarios_are_valid(name):
    assert load_requests(name).name == name


def test_a_scenario_draws_or_asks():
    assert not set(request_scenario_names()) & set(scenario_names())


def test_a_model_stands_for_the_network_of_its_name_unless_it_says_otherwise(load):
    found = load(VALID + '[models.b]\nafter = "a"\nreference = "VGG19"\n')
    assert [found.reference(model) for model in found.models] == ["a", "VGG19"]
    assert (found.name, found.title, found.lone) == ("mine", "mine", "mean")


def test_a_loop_is_that_of_whoever_is_before(load):
    closed = 'event = { process = "closed" }\n'
    found = load(
        f'frames = 9\n[models.a]\n{closed}[models.b]\nafter = "a"\n[models.c]\nafter = "b"'
    )
    assert [found.loop_of(model) for model in "abc"] == ["a", "a", "a"]
    assert load(VALID).loop_of("a") is None


@pytest.mark.parametrize(
    ("said", "instead", "message"),
    [
        ("rate_hz = 2", "rate_hz = 0", r"models\.a\.event\.rate_hz: .*greater than 0"),
        ("rate_hz = 2", "rate_hz = -1", r"models\.a\.event\.rate_hz: .*greater than 0"),
        ("rate_hz = 2", "rate_hz = nan", r"models\.a\.event\.rate_hz: .*a finite number"),
        ("rate_hz = 2", "rate_hz = inf", r"models\.a\.event\.rate_hz: .*a finite number"),
        (", rate_hz = 2", "", r"models\.a\.event: .*poisson process needs rate_hz"),
        ("poisson", "closed", r"models\.a\.event: .*closed loop has no rate_hz"),
        ("poisson", "sometimes", r"models\.a\.event\.process: .*'poisson'"),
        ("slo_ms = 100", "slo_ms = 0", r"models\.a\.slo_ms: .*greater than 0"),
        ("slo_ms = 100", "slo_ms = -5", r"models\.a\.slo_ms: .*greater than 0"),
        ("slo_ms = 100", "slo_ms = nan", r"models\.a\.slo_ms: .*a finite number"),
        ("slo_ms = 100", "slo_multiplier = nan", r"models\.a\.slo_multiplier: .*a finite number"),
        ("slo_ms = 100", "slo_ms = 1\nslo_multiplier = 2", r"slo_ms and slo_multiplier"),
        ("slo_ms = 100", "priority = 'urgent'", r"unknown priority 'urgent'.*high, low, normal"),
        ("slo_ms = 100", "number = -1", r"number must be from 0"),
        ("slo_ms = 100", "number = []", r"number must be from 0"),
        ("slo_ms = 100", "number = 0", r"never be asked for"),
        ("slo_ms = 100", "after = 'a'", r"either event .* or after"),
        ("slo_ms = 100", "[models.b]\nafter = 'c'", r"models\.b\.after: unknown model 'c'"),
        ("slo_ms = 100", "[models.b]\nafter = 'b'", r"models\.b: it comes after itself"),
        ("slo_ms = 100", "[models.b]", r"models\.b: .*either event .* or after"),
        ("slo_ms = 100", "size = 3", r"models\.a\.size: Extra inputs are not permitted"),
        ("requests = 10", "", r"needs one of requests, seconds and frames"),
        ("requests = 10", "requests = 10\nseconds = 3", r"needs one of"),
        ("requests = 10", "requests = 0", r"requests: .*greater than or equal to 1"),
        ("requests = 10", "seconds = nan", r"seconds: .*a finite number"),
        ("requests = 10", "frames = 3", r"frames are of closed loops"),
        ("requests = 10", "requests = 10\nfps = 30", r"fps: Extra inputs are not permitted"),
        (
            "requests = 10",
            "requests = 10\naway = [{ processor = 'npu', from_s = 3, for_s = 0 }]",
            r"away\.0\.for_s: .*greater than 0",
        ),
    ],
)
def test_what_is_impossible_is_refused_by_file_and_field(load, said, instead, message):
    assert said in VALID
    with pytest.raises(ConfigError, match=rf"scenario .*mine\.toml: .*{message}"):
        load(VALID.replace(said, instead))


def test_an_unknown_system_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('system = "fifo"\n' + VALID, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml: unknown system 'fifo'.*max-total"):
        load_requests(str(path))


def test_requests_are_of_open_streams(load):
    with pytest.raises(ConfigError, match="a is in a closed loop; give frames or seconds"):
        load('requests = 10\n[models.a]\nevent = { process = "closed" }\n')


def test_a_scenario_of_the_other_kind_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(VALID, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"draws nothing.*\[models\]"):
        load_scenario(str(path))
    with pytest.raises(ConfigError, match=r"no models that are asked for"):
        load_requests("shopping")
