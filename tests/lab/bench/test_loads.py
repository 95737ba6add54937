"""Input sizes that give a network its load: the search by arithmetic, and once for real."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.app.options import RunOptions
from heimdall.engine.null import NullEngine
from heimdall.errors import ConfigError
from heimdall.graph.graph import load_graph
from heimdall.lab.bench import loads
from heimdall.lab.bench.loads import SIDES, WITHIN, Load, fit, nearest_size
from heimdall.lab.bench.scenario import load_scenario
from heimdall.models.catalog import open_pipeline


class Machine:
    """Takes ``fixed_ms``, and ``ms`` for a million pixels; remembers what it was asked."""

    def __init__(self, ms: float, fixed_ms: float = 0.0) -> None:
        self.ms, self.fixed_ms = ms, fixed_ms
        self.tried: list[tuple[int, int]] = []

    def __call__(self, size: tuple[int, int]) -> float:
        self.tried.append(size)
        return self.fixed_ms + self.ms * math.prod(size) / 1e6


def test_a_size_that_fits_is_kept():
    machine = Machine(100)
    assert nearest_size(machine, (1000, 1000), 8, 95) == (1000, 1000)
    assert machine.tried == [(1000, 1000)]


def test_a_slow_machine_gets_a_smaller_picture_of_the_same_shape():
    machine = Machine(200)
    height, width = nearest_size(machine, (704, 1248), 32, 95)
    assert len(machine.tried) == 2
    assert machine((height, width)) == pytest.approx(95, rel=WITHIN)
    assert height % 32 == width % 32 == 0
    assert width / height == pytest.approx(1248 / 704, rel=0.05)


def test_what_every_size_takes_costs_one_more_try():
    machine = Machine(100, fixed_ms=40)
    size = nearest_size(machine, (1024, 1024), 32, 60)
    assert len(machine.tried) == 3
    assert machine(size) == pytest.approx(60, rel=WITHIN)


def test_two_times_that_differ_by_chance_do_not_lead_astray():
    """As measured once: a smaller picture takes nearly as long, a much smaller one half."""
    seen = {(312, 416): 79.2, (272, 360): 72.8}

    def measure(size):
        return seen.setdefault(size, Machine(800)(size))

    assert measure(nearest_size(measure, (312, 416), 8, 60)) == pytest.approx(60, rel=WITHIN)


def test_a_larger_picture_that_took_less_time_does_not_turn_the_search_around():
    seen = {(800, 800): 120.0, (896, 896): 118.0}

    def measure(size):
        return seen.setdefault(size, Machine(150)(size))

    assert measure(nearest_size(measure, (800, 800), 32, 80)) == pytest.approx(80, rel=WITHIN)


@given(
    ms=st.floats(100, 1000),
    fixed_ms=st.floats(0, 20),
    wanted_ms=st.floats(60, 300),
    height=st.integers(16, 60),
    ratio=st.floats(0.5, 2),
)
def test_whatever_the_machine_the_size_found_takes_what_was_asked_for(
    ms, fixed_ms, wanted_ms, height, ratio
):
    machine, begin = Machine(ms, fixed_ms), (8 * height, 8 * max(1, round(height * ratio)))
    size = nearest_size(machine, begin, 8, wanted_ms)
    assert size in machine.tried
    assert len(machine.tried) <= loads.MOST_TRIES
    assert SIDES[0] <= min(size) <= max(size) <= SIDES[1]
    assert machine(size) == pytest.approx(wanted_ms, rel=2 * WITHIN)


def test_where_sizes_lie_far_apart_the_nearest_is_taken():
    """64 x 64 takes 4.1 ms, 96 x 96 takes 9.2."""
    size = nearest_size(Machine(1000), (64, 64), 32, 6)
    assert size == (64, 96)
    assert not Load(size, 6.9, 0.0, 6.0).is_near


@pytest.mark.parametrize(
    ("wanted_ms", "bound"),
    [
        (1, "96x96 takes 10.9 ms, and 64x64, the smallest, 4.9 at least"),
        (5000, "640x640 takes 51.0 ms, and 4096x4096, the largest, 2087.3 at most"),
    ],
)
def test_a_load_that_no_size_reaches_is_an_error_that_names_the_bound(wanted_ms, bound):
    with pytest.raises(ConfigError, match=f"no input size takes {wanted_ms} ms alone.*{bound}"):
        nearest_size(Machine(100, fixed_ms=10), (640, 640), 32, wanted_ms)


class Ops(NullEngine):
    """Each op takes as long as its network's input has pixels, in ns."""

    def load(self, graph, **how):
        self._op_ns = math.prod(graph.inputs[0].shape[2:])
        return super().load(graph, **how)


def write(folder: Path, wanted_ms: float) -> str:
    app = "from heimdall import DNN, App\n\n\nclass Tiny(App):\n    size = (320, 180)\n"
    app += '    dnns = (DNN("face", model="centerface"), DNN("mask", model="selfie"))\n'
    (folder / "tiny.py").write_text(app)
    path = folder / "tiny.toml"
    path.write_text(
        f'app = "tiny.py"\n[dnns.face]\noptions = {{ size = [96, 160] }}\nalone_ms = {wanted_ms}'
    )
    return str(path)


def engine_ms(engine: NullEngine, size: tuple[int, int]) -> float:
    network = open_pipeline("centerface", size=size).networks[0]
    loaded = engine.load(load_graph(network.path, network.shapes))
    return len(loaded.ops) * math.prod(size) / 1e6


def test_a_scenario_gets_the_size_that_its_profiles_show(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    engine = Ops()
    wanted_ms = 2 * engine_ms(engine, (96, 160))
    scenario = load_scenario(write(tmp_path, wanted_ms))
    options = RunOptions(headless=True, device=engine)
    fitted, found = fit(scenario, options)
    (load,) = found.values()
    assert list(found) == ["face"]
    assert load.is_near
    face, mask = fitted.declared()
    assert face.options == {"size": list(load.size)}
    assert load.alone_ms == pytest.approx(engine_ms(engine, load.size), rel=0.2)
    assert mask == scenario.declared()[1]

    def measured(*_, **__):
        raise AssertionError("measured again")

    monkeypatch.setattr("heimdall.analyzer.store.measure_ops", measured)
    assert fit(scenario, options)[1] == found  # by what was kept


def test_a_scenario_that_asks_for_no_load_opens_no_device():
    scenario = load_scenario("shopping")
    assert fit(scenario, RunOptions(device="no such device")) == (scenario, {})


def test_an_impossible_load_names_the_dnn(tmp_path):
    scenario = load_scenario(write(tmp_path, 9000))
    with pytest.raises(
        ConfigError, match=r"DNN 'face' \(centerface\): no input size takes 9000 ms"
    ):
        fit(scenario, RunOptions(headless=True, device=NullEngine(op_ns=1000)))
