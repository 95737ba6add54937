"""A scenario as an App: what it changes, and what reaches the app."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from heimdall.errors import AppError, ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.settings import EventProcess
from heimdall.lab.bench.standin import open_standin
from heimdall.lab.bench.workload import as_app, events
from heimdall.models.base import Pipeline

APP = """
from heimdall import DNN, App

class Small(App):
    size = (320, 240)
    dnns = (DNN("mask", model="selfie"), DNN("style", model="multistyle", on_event=True))

    def __init__(self):
        self.heard = []

    def on_result(self, dnn, result, frame):
        self.heard.append((dnn, result))

    def demo_events(self):
        while True:
            yield 2.0
"""


# The app's own pipeline: another object each time that its file is loaded.
OWN = """
from heimdall.models.catalog import open_pipeline

Small.dnns = (DNN("mask", model=open_pipeline("selfie")),)
"""


@pytest.fixture
def workload(tmp_path: Path):
    def make(text: str, more: str = ""):
        (tmp_path / "small.py").write_text(APP + more)
        path = tmp_path / "mine.toml"
        path.write_text('app = "small.py"\n' + text)
        return as_app(load_scenario(str(path)))

    return make


def test_the_scenario_replaces_what_the_app_declares(workload):
    app = workload('fps = 60\nsize = [640, 360]\n[dnns.mask]\nmodel = "nanodet"\nrate_hz = 3')
    assert (app.fps, app.size) == (60, (640, 360))
    mask = app.dnns[0]
    assert (mask.name, mask.rate_hz) == ("mask", 3)
    assert mask.model.networks[0].path.name == "detect_nanodet_416.onnx"
    assert app().name == "mine"


def test_a_pipeline_of_the_apps_own_stays(workload):
    app = workload("fps = 60", OWN)()
    app.on_result("mask", "found", None)
    assert app.heard == [("mask", "found")]


def test_what_is_asked_of_a_dnn_that_is_left_out_is_not_asked(workload):
    app = workload('without = ["style"]')()
    assert [dnn.name for dnn in app.dnns] == ["mask"]
    app.request("style", style=3)
    app.adjust("style", priority="high")
    assert app._requests == []
    assert app._adjusted == set()
    assert app.tracked("style") is None
    assert app.latest("style") is None
    with pytest.raises(AppError, match="unknown DNN 'stile'"):
        app.request("stile")


def test_results_of_a_network_that_stands_in_do_not_reach_the_app(workload):
    app = workload('[dnns.mask]\nmodel = "nanodet"')()
    app.on_result("mask", [], None)
    app.on_result("style", "picture", None)
    assert app.heard == [("style", "picture")]
    found = app.dnns[0].model.combine([[["a box"]]], None)
    assert found is None


def test_a_light_network_becomes_a_pipeline(workload):
    app = workload('[dnns.mask]\nmodel = "light:squeezenet"')
    pipeline = app.dnns[0].model
    assert isinstance(pipeline, Pipeline)
    assert pipeline.networks[0].path.name == "light_squeezenet.onnx"


def test_an_unknown_light_network_lists_those_that_exist():
    with pytest.raises(ConfigError, match=r"'vgg99' .*; choose one of: .*squeezenet"):
        open_standin("light:vgg99")


def test_without_an_event_process_the_app_keeps_its_script(workload):
    assert list(islice(workload("")().demo_events(), 2)) == [2.0, 2.0]


def test_an_event_asks_again_for_what_the_app_asked_for_last(workload):
    app = workload('[dnns.style]\nevent = {process = "periodic", rate_hz = 4}')()
    app.request("style", style=7)
    app._requests.clear()
    script = app.demo_events()
    assert next(script) == 0.25
    assert app._requests == []
    next(script)
    assert app._requests == [("style", {"style": 7})]


def test_events_of_several_processes_come_in_the_order_of_time():
    processes = {
        "a": EventProcess(process="periodic", rate_hz=2),
        "b": EventProcess(process="periodic", rate_hz=4),
    }
    now_s, seen = 0.0, []
    for wait_s, name in islice(events(processes, 0), 6):
        now_s += wait_s
        seen.append((now_s, name))
    assert seen == [(0.25, "b"), (0.5, "a"), (0.5, "b"), (0.75, "b"), (1.0, "a"), (1.0, "b")]
