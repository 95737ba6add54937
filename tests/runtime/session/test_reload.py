"""An app's file is saved while the app runs: its class begins anew, the run goes on."""

from __future__ import annotations

import logging
import re
import textwrap
from typing import Any

import cv2
import pytest

from heimdall.app import RunOptions, app_names, load_app
from heimdall.errors import AppError
from heimdall.render import Key
from heimdall.runtime.run import open_run, run_app
from heimdall.runtime.session import reload
from heimdall.runtime.session.reload import Reloading, _become, _declarations
from heimdall.runtime.session.session import as_app

SIZE = (320, 180)
# Without OpenCL: what is at stake surrounds networks.
OPTIONS: dict[str, Any] = {
    "device": "onnxruntime",
    "offload": False,
    "headless": True,
    "size": SIZE,
    "overlay": "off",
}
APP = """
import numpy as np
from heimdall import DNN, App

class Mine(App):
    {dnns}
    keys = {keys}

    def __init__(self):
        self.begun = 0
        {init}

    def on_start(self):
        self.begun += 1

    def draw(self, scene):
        width, height = scene.picture_size
        corners = np.array([(0, 0), (width, 0), (width, height), (0, height)])
        scene.picture(np.full((8, 8, 3), {colour}, np.uint8), corners)
"""
RED, GREEN = (255, 0, 0), (0, 255, 0)


def source(colour=RED, dnns="dnns = ()", keys="{}", init="pass"):
    return APP.format(colour=colour, dnns=dnns, keys=keys, init=init)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(source())
    return path


@pytest.fixture
def app(path):
    return as_app(path)


@pytest.fixture
def run(path, app, monkeypatch):
    monkeypatch.setattr(reload, "_LOOK_S", 0)
    monkeypatch.chdir(path.parent)
    reloading = Reloading(str(path), app)
    with open_run(app, RunOptions(**OPTIONS)) as run:
        reloading.follow(run)
        run.turn()
        yield run


def seen(run):
    """The colour in the middle of the next frame but one: the file is looked at after each."""
    run.turn()
    run.turn()
    return tuple(run.picture()[SIZE[1] // 2, SIZE[0] // 2])


def test_a_file_that_is_saved_is_drawn(run, app, path, caplog):
    caplog.set_level(logging.INFO, "heimdall")
    assert seen(run) == RED
    assert app.begun == 1
    app.begun = 7
    path.write_text(source(GREEN))
    assert seen(run) == GREEN
    assert app.begun == 1
    assert caplog.messages[-1] == "mine.py was saved: Mine begins anew"
    assert run.errors == []


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (source(GREEN) + "def (", r"mine.py, line \d+: SyntaxError: "),
        ("import nothing_of_this_name", "mine.py, line 1: ModuleNotFoundError"),
        ("x = 1", "must define one App subclass"),
        (source(GREEN, init="1 / 0"), r"Mine\(\): ZeroDivisionError"),
        (source(GREEN, dnns="fps = -1"), "fps must be above 0"),
        (source(GREEN, dnns="fps = 15"), "mine.py: fps has changed: that needs a new run"),
        (source(GREEN, dnns='face = DNN(model="centerface")'), "DNN 'face' is new: that needs"),
    ],
)
def test_one_that_cannot_be_run_is_told_and_the_class_before_goes_on(
    run, app, path, caplog, broken, said
):
    app.begun = 7
    path.write_text(broken)
    assert seen(run) == RED
    assert app.begun == 7
    assert run.onlooker.message.endswith("; the app goes on as it was")
    assert re.search(said, run.onlooker.message)
    assert caplog.messages[-1] == run.onlooker.message
    path.write_text(source(GREEN))
    assert seen(run) == GREEN
    assert run.onlooker.message == ""


def test_a_file_that_is_gone_for_a_moment_is_waited_for(run, path):
    path.unlink()
    assert seen(run) == RED
    path.write_text(source(GREEN))
    assert seen(run) == GREEN


def test_a_callback_that_had_failed_is_called_again(run, path):
    path.write_text(source("nothing"))
    for _ in range(8):
        run.turn()
    assert "disabled" in run._callbacks.message
    path.write_text(source(GREEN))
    assert seen(run) == GREEN
    assert run._callbacks.message == ""


def test_its_keys_are_those_of_the_new_class(run, path):
    assert run._controls.handle(Key("c", True))  # saves a picture
    path.write_text(source(keys="{'p': 'purple'}"))
    run.turn()
    assert not run._controls.handle(Key("p", True))
    assert ("P", "purple") in [(keys.upper(), says) for keys, says in run._controls._rows]


def test_what_was_wanted_otherwise_is_wanted_as_declared(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(source(dnns='people = DNN(model="selfie")'))
    app = as_app(path)
    app.adjust("people", rate_hz=5)
    app._adjusted.clear()  # the run has heard
    app._keep("people", "a result", None)
    thread = app.in_background(int)
    thread.result(5)
    _become(app, load_app(str(path)))
    assert app._adjusted == {"people"}
    assert app._wanted["people"].rate_hz == 1
    assert app.latest("people") == "a result"
    assert app._background is None


def test_a_class_that_cannot_be_made_leaves_all_as_it_was(app, path):
    kind, before = type(app), dict(vars(app))
    path.write_text(source(init="1 / 0"))
    with pytest.raises(AppError, match="ZeroDivisionError"):
        _become(app, load_app(str(path)))
    assert type(app) is kind
    assert vars(app) == before


OWN = """
from heimdall import DNN, App, Boxes, ImageInput, Marker, World
{more}
def decode(outputs, context):
    return [each for each in outputs if {kept}]

class Mine(App):
    own = DNN(model="own.onnx", preprocess=ImageInput(), decode=decode)
    boxes = DNN(model="b.onnx", preprocess=ImageInput(), decode=Boxes("yolov8", {names}))
    world = World(Marker("DICT_4X4_50", 7, {side}))
"""


def own(path, **changes):
    path.write_text(textwrap.dedent(OWN).format(
        **{"more": "", "kept": "each > 1", "names": ["cat"], "side": 0.1, **changes}
    ))  # fmt: skip
    return _declarations(load_app(str(path)))


def test_networks_are_the_same_if_their_code_is(path):
    first = own(path)
    assert own(path, more="# a remark\n\n") == first
    for changes, name in (
        ({"kept": "each > 2"}, "DNN 'own'"),
        ({"names": ["dog"]}, "DNN 'boxes'"),
        ({"side": 0.2}, "world"),
    ):
        after = own(path, **changes)
        assert {each for each in after if after[each] != first[each]} == {name}


@pytest.mark.parametrize("name", app_names())
def test_an_app_that_was_not_changed_is_the_same(name):
    assert _declarations(load_app(name)) == _declarations(load_app(name))


def test_a_run_of_a_file_looks_at_it(path, tmp_path):
    """The app saves its own file, and the last picture is the new class's."""
    saving = f"self.on_start = lambda: open({str(path)!r}, 'w').write({source(GREEN)!r})"
    path.write_text(source(init=saving))
    picture = tmp_path / "last.png"
    options = RunOptions(**OPTIONS, seconds=1.5, screenshot=picture)
    summary = run_app(str(path), options, reload=True)
    assert summary["errors"] == []
    assert tuple(cv2.imread(str(picture))[SIZE[1] // 2, SIZE[0] // 2, ::-1]) == GREEN
