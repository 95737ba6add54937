"""Scenario files: what they say of networks and of requests, and what is refused."""

from __future__ import annotations

from itertools import accumulate, islice
from pathlib import Path
from random import Random

import pytest

from heimdall.errors import AppError, ConfigError
from heimdall.lab.bench.scenario import load_scenario, scenario_names
from heimdall.lab.bench.settings import EventProcess


@pytest.fixture
def load(tmp_path: Path):
    def write_and_load(text: str):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return load_scenario(str(path))

    return write_and_load


@pytest.mark.parametrize("name", scenario_names())
def test_bundled_scenarios_are_valid(name):
    scenario = load_scenario(name)
    assert scenario.name == name
    assert scenario.title
    assert scenario.draws is bool(scenario.declared())
    assert scenario.draws is not bool(scenario.models)


def test_the_bundled_scenarios_that_draw_can_be_told_from_the_others():
    draw, others = scenario_names(draws=True), scenario_names(draws=False)
    assert {"shopping", "criminal"} <= set(draw)
    assert {"split-1", "band-eagleeye"} <= set(others)
    assert sorted(draw + others) == scenario_names()


def test_what_a_scenario_is_silent_about_stays_the_apps(load):
    scenario = load('app = "shopping"')
    app = scenario.app_class()
    assert (scenario.fps, scenario.size, scenario.scheduler) == (app.fps, app.size, app.scheduler)
    assert scenario.declared() == tuple(app.dnns)


def test_overrides_change_only_what_they_name(load):
    scenario = load('app = "shopping"\n[dnns.hand]\nrate_hz = 4\nmax_rate_hz = inf')
    before = {dnn.name: dnn for dnn in scenario.app_class().dnns}
    after = {dnn.name: dnn for dnn in scenario.declared()}
    assert (after["hand"].rate_hz, after["hand"].max_rate_hz) == (4, None)
    assert after["hand"].model == before["hand"].model
    assert after["detect"] == before["detect"]


def test_another_model_does_not_inherit_the_options_of_the_first(load):
    scenario = load('app = "shopping"\n[dnns.style]\nmodel = "nanodet"')
    assert scenario.declared()[-1].options == {}


def test_a_scenario_without_an_app_declares_its_dnns(load):
    scenario = load('fps = 30\nsize = [640, 480]\n[dnns.a]\nreference = "ArcFace"\nrate_hz = 5')
    (dnn,) = scenario.declared()
    assert (dnn.name, dnn.rate_hz, dnn.constraint_ms) == ("a", 5, 200)
    with pytest.raises(ConfigError, match="can only be simulated"):
        scenario.app_class()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fps = ", "not valid TOML"),
        ('app = "shopping"\nfps = -1', "fps: must be above 0, not -1"),
        ('app = "shopping"\nsize = [0, 5]', "size must be two sides of 1 to"),
        ('app = "shopping"\nspeed = 5', "unknown key 'speed'; did you mean seed"),
        ('app = "shopping"\nscheduler = "max"', "unknown scheduler 'max'"),
        (
            'app = "shopping"\n[dnns.hnd]\nrate_hz = 1',
            "unknown DNN 'hnd' .*'hand'.*; choose one of: .*hand",
        ),
        ('app = "shopping"\n[dnns.hand]\nrate_hz = 0', "dnns.hand.rate_hz: must be above 0"),
        ('app = "shopping"\n[dnns.hand]\nrate_hz = 90', "max_rate_hz 10 is below rate_hz 90"),
        ('app = "shopping"\n[dnns.hand]\npriority = "top"', "unknown priority 'top'"),
        (
            'app = "shopping"\n[dnns.style]\nevent = {process = "gauss", rate_hz = 1}',
            "event.process: must be 'poisson', 'periodic', 'recorded' or 'closed', not 'gauss'",
        ),
        ('app = "shopping"\n[dnns.detect]\nalone_ms = 9', "any size, not nanodet"),
        ('app = "shopping"\n[dnns.hand]\nalone_ms = 0', "alone_ms: must be above 0"),
        (
            'app = "shopping"\n[dnns.detect]\nmodel = "light:squeezenet"\nalone_ms = 9',
            "detect.*any size, not light:squeezenet",
        ),
        (
            'app = "shopping"\n[dnns.detect]\nmodel = "ppocr"\nalone_ms = 9',
            r"alone_ms needs options = { size = \[height, width\] } too",
        ),
        (
            'app = "shopping"\nwithout = ["hnd"]',
            "unknown DNN 'hnd' .*'hand'.*; choose one of: .*hand",
        ),
        ('app = "shopping"\nwithout = "hand"', "without: must be a list .*, not 'hand'"),
        (
            'app = "shopping"\nwithout = ["hand"]\n[dnns.hand]\nrate_hz = 2',
            "unknown DNN 'hand'; choose one of: detect",
        ),
        ("fps = 30\nsize = [640, 480]", "it has no DNN"),
        ("fps = 30\nsize = [640, 480]\n[dnns.a]\nrate_hz = 1", "needs a reference"),
        ('fps = 30\n[dnns.a]\nreference = "ArcFace"', "size: is missing"),
    ],
)
def test_impossible_scenarios_are_refused_by_file_and_field(load, text, message):
    with pytest.raises(ConfigError, match=rf"mine\.toml.*{message}"):
        load(text)


def test_a_dnn_of_the_app_can_be_left_out(load):
    every = [dnn.name for dnn in load('app = "shopping"').declared()]
    fewer = load('app = "shopping"\nwithout = ["hand"]')
    assert [dnn.name for dnn in fewer.declared()] == [name for name in every if name != "hand"]


def test_forced_fallback_ops_can_be_left_out():
    scenario = load_scenario("shopping-phone")
    assert len(scenario.declared()[-1].force_fallback) == 14  # as in Table 2
    before, after = scenario.declared(), scenario.without_fallback().declared()
    assert after[-1].force_fallback == ()
    assert after[:-1] == before[:-1]


def test_input_sizes_can_be_replaced():
    scenario = load_scenario("shopping-phone")
    before, after = scenario.declared(), scenario.with_sizes({"style": (80, 96)}).declared()
    assert after[-1].options == {"size": [80, 96]}
    assert after[-1].force_fallback == before[-1].force_fallback
    assert after[:-1] == before[:-1]


def test_utility_can_be_replaced():
    """What section 9.4 of the paper says that it gave a DNN: a higher gamma, a higher L0."""
    scenario = load_scenario("shopping")
    hand = scenario.settings("hand").model_copy(update={"beta": None, "gamma": 1.5, "l0": 7.0})
    changed = scenario.model_copy(update={"dnns": {"hand": hand}}).declared()
    (found,) = [dnn for dnn in changed if dnn.name == "hand"]
    assert (found.beta, found.gamma, found.l0) == (None, 1.5, 7.0)


def test_the_phones_load_asks_for_the_papers_and_tunes_no_utility():
    scenario = load_scenario("shopping-phone")
    alone_ms = [scenario.settings(dnn.name).alone_ms for dnn in scenario.declared()]
    assert alone_ms == [95, 207, 256, 60]  # Table 2
    assert [dnn.constraint_ms for dnn in scenario.declared()] == [1000, 1000, 500, 100]
    assert all(dnn.beta is dnn.gamma is dnn.l0 is None for dnn in scenario.declared())


def test_an_unknown_scenario_lists_the_bundled_ones():
    with pytest.raises(
        ConfigError, match=r"unknown scenario 'shoping' .*; choose one of: .*shopping"
    ):
        load_scenario("shoping")


def test_a_missing_file_is_named():
    with pytest.raises(ConfigError, match=r"absent\.toml does not exist"):
        load_scenario("absent.toml")


def test_an_unknown_app_is_refused(load):
    with pytest.raises(AppError, match="unknown app 'shoping'"):
        load('app = "shoping"')


def test_events_are_the_same_for_the_same_seed():
    poisson = EventProcess(process="poisson", rate_hz=2)
    first, again, other = (list(islice(poisson.waits_s(seed), 500)) for seed in (1, 1, 2))
    assert first == again != other
    assert sum(first) / len(first) == pytest.approx(0.5, rel=0.15)


def test_periodic_events_are_evenly_spaced():
    periodic = EventProcess(process="periodic", rate_hz=4)
    assert list(islice(periodic.waits_s(0), 3)) == [0.25, 0.25, 0.25]


VALID = """
requests = 10
[models.a]
event = { process = "poisson", rate_hz = 2 }
slo_ms = 100
"""


@pytest.fixture
def load_requests(load):
    return lambda text: load('system = "max-total"\n' + text)


def test_a_model_stands_for_the_network_of_its_name_unless_it_says_otherwise(load_requests):
    found = load_requests(VALID + '[models.b]\nafter = "a"\nreference = "VGG19"\n')
    assert [found.reference(model) for model in found.models] == ["a", "VGG19"]
    assert (found.name, found.title, found.lone) == ("mine", "mine", "mean")


def test_a_loop_is_that_of_whoever_is_before(load_requests):
    closed = 'event = { process = "closed" }\n'
    found = load_requests(
        f'frames = 9\n[models.a]\n{closed}[models.b]\nafter = "a"\n[models.c]\nafter = "b"'
    )
    assert [found.loop_of(model) for model in "abc"] == ["a", "a", "a"]
    assert load_requests(VALID).loop_of("a") is None


@pytest.mark.parametrize(
    ("said", "instead", "message"),
    [
        ("rate_hz = 2", "rate_hz = 0", r"models\.a\.event\.rate_hz: .*above 0"),
        ("rate_hz = 2", "rate_hz = -1", r"models\.a\.event\.rate_hz: .*above 0"),
        ("rate_hz = 2", "rate_hz = nan", r"models\.a\.event\.rate_hz: .*a finite number"),
        ("rate_hz = 2", "rate_hz = inf", r"models\.a\.event\.rate_hz: .*a finite number"),
        (", rate_hz = 2", "", r"models\.a\.event: .*poisson process needs rate_hz"),
        ("poisson", "closed", r"models\.a\.event: .*closed loop has no rate_hz"),
        ("poisson", "recorded", r"models\.a\.event: .*waits are of a recorded process"),
        ("rate_hz = 2", "rate_hz = 2, waits = [1]", r"waits are of a recorded process"),
        ("poisson", "sometimes", r"models\.a\.event\.process: .*'poisson'"),
        ("slo_ms = 100", "slo_ms = 0", r"models\.a\.slo_ms: .*above 0"),
        ("slo_ms = 100", "slo_ms = -5", r"models\.a\.slo_ms: .*above 0"),
        ("slo_ms = 100", "slo_ms = nan", r"models\.a\.slo_ms: .*a finite number"),
        ("slo_ms = 100", "slo_multiplier = nan", r"models\.a\.slo_multiplier: .*a finite number"),
        ("slo_ms = 100", "slo_ms = 1\nslo_multiplier = 2", r"slo_ms and slo_multiplier"),
        ("slo_ms = 100", "slo_ms = 1\ndeadline = 'period'", r"slo_ms and deadline"),
        ("slo_ms = 100", "deadline = 'frame'", r"models\.a\.deadline: .*'period'"),
        ("slo_ms = 100", "deadline = 'period'", r"event must be periodic, with a phase"),
        ("slo_ms = 100", "[models.b]\nafter = 'a'\ndeadline = 'period'", r"a has no such deadline"),
        ("slo_ms = 100", "priority = 'urgent'", r"unknown priority 'urgent'.*high, low, normal"),
        ("slo_ms = 100", "number = -1", r"number must be from 0"),
        ("slo_ms = 100", "number = []", r"number must be from 0"),
        ("slo_ms = 100", "number = 0", r"never be asked for"),
        ("slo_ms = 100", "after = 'a'", r"either event .* or after"),
        ("slo_ms = 100", "[models.b]\nafter = 'c'", r"models\.b\.after: unknown model 'c'"),
        ("slo_ms = 100", "[models.b]\nafter = 'b'", r"models\.b: it comes after itself"),
        ("slo_ms = 100", "[models.b]", r"models\.b: .*either event .* or after"),
        ("slo_ms = 100", "size = 3", r"models\.a: unknown key 'size'; choose one of: after, dead"),
        ("requests = 10", "", r"needs one of requests, seconds and frames"),
        ("requests = 10", "requests = 10\nseconds = 3", r"needs one of"),
        ("requests = 10", "requests = 0", r"requests: must be at least 1"),
        ("requests = 10", "seconds = nan", r"seconds: .*a finite number"),
        ("requests = 10", "frames = 3", r"frames are of closed loops"),
        ("requests = 10", "requests = 10\nfps = 30", r"fps: is of what draws"),
        (
            "requests = 10",
            "requests = 10\naway = [{ processor = 'npu', from_s = 3, for_s = 0 }]",
            r"away\.0\.for_s: .*above 0",
        ),
    ],
)
def test_impossible_requests_are_refused_by_file_and_field(load_requests, said, instead, message):
    assert said in VALID
    with pytest.raises(ConfigError, match=rf"scenario .*mine\.toml: .*{message}"):
        load_requests(VALID.replace(said, instead))


PERIODIC = """
seconds = 1
drop_late = true
[models.a]
event = { process = "periodic", rate_hz = 50, phase = 0.5 }
deadline = "period"
[models.b]
after = "a"
deadline = "period"
"""


def test_a_deadline_may_be_the_end_of_a_period(load_requests):
    found = load_requests(PERIODIC)
    assert found.slo_ns("a", 1e6) == found.slo_ns("b", 1e6) == 20_000_000
    event = found.models["a"].event
    assert [round(event.end_s(at), 3) for at in (0.01, 0.0101, 0.029, 0.03)] == [
        0.03, 0.03, 0.05, 0.05,
    ]  # fmt: skip


def test_what_follows_within_a_period_needs_late_ones_to_be_dropped(load_requests):
    with pytest.raises(ConfigError, match=r"models\.b\.deadline: .*needs drop_late = true"):
        load_requests(PERIODIC.replace("drop_late = true", ""))


def test_an_unknown_system_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('system = "fifo"\n' + VALID, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml: unknown system 'fifo'.*max-total"):
        load_scenario(str(path))


def test_requests_are_of_open_streams(load_requests):
    with pytest.raises(ConfigError, match="a is in a closed loop; give frames or seconds"):
        load_requests('requests = 10\n[models.a]\nevent = { process = "closed" }\n')


BOTH = 'app = "shopping"\n' + VALID


def test_an_app_may_have_requests_beside_it(load):
    both = load(BOTH)
    assert both.draws
    assert both.declared() == load('app = "shopping"').declared()
    assert both.models == load(VALID).models


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (VALID.replace("requests = 10", "requests = 10\nseed = 3"), "seed: is of what draws"),
        ('app = "shopping"\nrequests = 10', "requests: is of requests: declare .models.NAME"),
        ('app = "shopping"\ndevice = "pixel-4"', "device: is of requests"),
        (BOTH.replace("models.a", "models.hand"), "models.hand: a DNN has that name"),
        (
            'app = "shopping"\n[dnns.style]\nevent = {process = "closed"}',
            "closed loop is",
        ),
        ('app = "shopping"\n[dnns.style]\nevent = {process = "poisson"}', "needs rate_hz"),
    ],
)
def test_each_key_is_of_what_the_scenario_has(load, text, message):
    with pytest.raises(ConfigError, match=rf"scenario .*mine\.toml: .*{message}"):
        load(text)


def test_what_needs_frames_or_requests_says_so(load):
    with pytest.raises(ConfigError, match="'mine' draws nothing: name an app"):
        load(VALID).check_draws()
    with pytest.raises(ConfigError, match=r"'mine' has no requests: declare .models\.NAME."):
        load('app = "shopping"').check_asks()
    load(BOTH).check_draws()
    load(BOTH).check_asks()


def test_a_dnns_periodic_events_may_have_a_phase_and_jitter():
    periodic = EventProcess(process="periodic", rate_hz=4, phase=0.5, jitter_ms=20)
    at_s = list(accumulate(islice(periodic.waits_s(0), 50)))
    late_s = [at - (0.125 + index / 4) for index, at in enumerate(at_s)]
    assert 0.01 < max(map(abs, late_s)) <= 0.02 + 1e-9


def test_what_was_recorded_comes_as_it_was_stretched_to_a_rate():
    event = EventProcess(process="recorded", rate_hz=2, waits=(0, 10, 30))
    times = list(event.times_s(Random(0)))
    assert times == pytest.approx([0, 0.375, 1.5])
    assert len(times) / times[-1] == event.rate_hz
