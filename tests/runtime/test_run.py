"""``run``: a class, an instance, a path or a name, and the summary as values."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from heimdall import DNN, App, AppError, ConfigError, Greedy, RunOptions, open_source, run
from heimdall.engine import open_engine
from heimdall.runtime.run import _say_when_counted
from heimdall.runtime.session.session import as_app

SMALL = RunOptions(headless=True, size=(160, 90), frames=8, device="onnxruntime")


class Oldest(Greedy):
    name = "oldest"
    reason = "oldest"
    asked = 0

    def prefer(self, view, now_ns, jobs):
        return min(jobs, key=lambda job: job.arrival_ns)

    def select(self, view, now_ns):
        type(self).asked += 1
        return super().select(view, now_ns)


class People(App):
    people = DNN(model="selfie")
    found = 0

    def on_result(self, dnn, result, frame):
        assert self.people.latest is result
        assert self.people.frame is frame
        self.found += 1


@pytest.fixture(scope="module")
def ran():
    """An instance and the summary of its run, under a scheduler that is an object, on an engine
    and a source that are objects."""
    from heimdall.system import paths, softgpu

    with softgpu.restored_afterwards():
        app, engine = People(), open_engine("onnxruntime")
        source = open_source(paths.ASSETS / "media" / "box.mp4")
        summary = run(app, SMALL, scheduler=Oldest(), device=engine, source=source, frames=20)
        yield app, summary
        engine.close()


def test_a_run_takes_an_instance_and_objects_where_names_go(ran):
    app, summary = ran
    assert summary.app == "people"
    assert summary.scheduler == "oldest"
    assert Oldest.asked > 0
    assert summary.frames == 20
    assert summary.errors == []
    assert summary.source.startswith("video box.mp4")
    assert app.found > 0
    assert summary.dnns["people"].inferences > 0
    assert summary.dnns["people"].latency_ms.p50 > 0


def test_the_summary_is_the_object_that_json_prints(ran):
    _, summary = ran
    data = summary.to_dict()
    assert list(data)[:5] == ["schema", "app", "startup_s", "ready_s", "source"]
    assert list(data)[-3:] == ["given_up", "outputs", "wall_s"]
    assert data["size"] == [160, 90]
    assert type(summary).from_dict(data) == summary
    assert data["fps"]["mean"] == summary.fps.mean


def test_what_is_no_app_is_refused():
    wrongs: list[Any] = [5, dict, None]
    for wrong in wrongs:
        with pytest.raises(AppError, match="is no app: give a name, a file, an App class"):
            as_app(wrong)
    assert type(as_app("shopping")).__name__ == "Shopping"
    assert isinstance(as_app(People), People)


def test_an_unknown_option_is_named():
    with pytest.raises(ConfigError, match=r"run\(\): .*second"):
        run(People, second=1)  # type: ignore[call-arg]


def test_a_run_that_ends_by_itself_says_when_counting_has_not_begun(caplog):
    caplog.set_level(logging.INFO, "heimdall")
    over = threading.Event()
    first_start: Any = SimpleNamespace(setup=SimpleNamespace(building=SimpleNamespace(over=over)))
    _say_when_counted(first_start, RunOptions())
    assert caplog.messages == []
    _say_when_counted(first_start, RunOptions(seconds=3))
    assert "networks are still being built: --frames and --seconds count from" in caplog.text
    over.set()
    _say_when_counted(first_start, RunOptions(frames=3))
    first_start.setup.building = None
    _say_when_counted(first_start, RunOptions(frames=3))
    assert len(caplog.messages) == 1
