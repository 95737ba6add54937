"""App and DNN declarations, and finding an app by name or file."""

from __future__ import annotations

import pytest

from heimdall import DNN, App, AppError, ConfigError, Marker, World
from heimdall.app import app_names, load_app, validate


def test_constraint_defaults_to_the_period_of_the_wanted_rate():
    assert DNN("a", model="nanodet", rate_hz=4).constraint_ms == 250
    assert DNN("a", model="nanodet", rate_hz=4, latency_constraint_ms=90).constraint_ms == 90


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate_hz": 0}, "rate_hz must be above 0"),
        ({"rate_hz": "5"}, "rate_hz must be a number above 0, not the text '5'"),
        ({"beta": "5"}, "beta must be a number, not the text '5'"),
        ({"rate_hz": float("nan")}, "rate_hz must be above 0"),
        ({"rate_hz": 5, "max_rate_hz": 2}, "max_rate_hz 2 is below rate_hz 5"),
        ({"max_rate_hz": -1, "on_event": True}, "max_rate_hz must be above 0"),
        ({"latency_constraint_ms": -5}, "latency_constraint_ms must be above 0"),
        ({"priority": "urgent"}, "unknown priority 'urgent'; choose one of: high, low, normal"),
    ],
)
def test_impossible_declarations_are_refused_by_name(arguments, message):
    with pytest.raises(ConfigError, match=r"DNN 'eye'") as caught:
        DNN("eye", model="nanodet", **arguments)
    assert message in str(caught.value)


def test_request_for_an_undeclared_dnn_lists_the_declared_ones():
    class One(App):
        dnns = (DNN("eye", model="nanodet"),)

    with pytest.raises(AppError, match="unknown DNN 'ear'; choose one of: eye"):
        One().request("ear")


def test_two_dnns_of_one_name_are_refused():
    class Twice(App):
        dnns = (DNN("eye", model="nanodet"), DNN("eye", model="selfie"))

    with pytest.raises(ConfigError, match="two DNNs named 'eye'"):
        validate(Twice)


def test_each_app_has_a_world_of_its_own():
    class Standing(App):
        world = World(Marker("DICT_4X4_50", 7, 0.08))

    one, other = Standing(), Standing()
    assert one.world.targets == Standing.world.targets
    assert one.world is not other.world
    assert App().world is None


def test_a_world_that_is_none_is_refused():
    class Mistaken(App):
        world = Marker("DICT_4X4_50", 7, 0.08)  # type: ignore[assignment]

    with pytest.raises(AppError, match=r"Mistaken.world must be World\(...\) or None"):
        validate(Mistaken)


def test_bundled_apps_load_and_are_valid():
    assert "shopping" in app_names()
    for name in app_names():
        validate(load_app(name))


def test_unknown_app_lists_the_bundled_ones():
    with pytest.raises(
        AppError,
        match=r"unknown app 'shoping' \(did you mean 'shopping'\?\); choose one of: .*shopping",
    ):
        load_app("shoping")


def test_missing_app_file_is_named():
    with pytest.raises(AppError, match=r"app file nowhere/x\.py does not exist"):
        load_app("nowhere/x.py:X")


def test_a_class_is_picked_by_name_or_when_it_is_the_only_one(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from heimdall import App\nclass A(App): pass\nclass B(App): pass\n")
    assert load_app(f"{file}:B").__name__ == "B"
    with pytest.raises(AppError, match=r"must define one App subclass \(found: A, B\)"):
        load_app(str(file))
    with pytest.raises(AppError, match="unknown app class 'C'; choose one of: A, B"):
        load_app(f"{file}:C")


@pytest.mark.parametrize(
    ("source", "where"),
    [("import heimdall\n1 / 0\n", "line 2: ZeroDivisionError"), ("def (:\n", "line 1: Syntax")],
)
def test_an_app_file_that_fails_to_import_says_where(tmp_path, source, where):
    file = tmp_path / "broken.py"
    file.write_text(source)
    with pytest.raises(AppError, match=where):
        load_app(str(file))


def test_work_in_the_background_leaves_its_answer_in_a_future():
    app = App()
    first, second = app.in_background(sorted, [2, 1]), app.in_background(lambda: 1 / 0)
    assert first.result(timeout=30) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        second.result(timeout=30)
    assert app.in_background(len, "abc").result(timeout=30) == 3  # the thread goes on
    app._end()


def test_an_error_in_the_background_is_logged(caplog):
    app = App()
    with pytest.raises(ZeroDivisionError):
        app.in_background(lambda: 1 / 0).result(timeout=30)
    app._end()  # waits for the thread
    assert "work in the background failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


class Watching(App):
    """Two DNNs, one of them with a constraint of its own."""

    face = DNN(model="centerface", rate_hz=1, max_rate_hz=8)
    style = DNN(model="multistyle", on_event=True, latency_constraint_ms=100, priority="high")


def wanted(app, dnn):
    assert app._adjusted == {dnn}
    app._adjusted.clear()
    return app._wanted[dnn]


def test_what_an_app_wants_of_a_dnn_is_its_declaration_but_for_what_it_says():
    app = Watching()
    app.face.adjust(priority="high", rate_hz=5)
    face = wanted(app, "face")
    assert (face.priority, face.constraint_ms, face.max_rate_hz) == ("high", 200, 8)
    app.adjust("face", latency_constraint_ms=50)
    face = wanted(app, "face")
    assert (face.priority, face.rate_hz, face.constraint_ms) == ("normal", 1, 50)
    app.style.adjust(rate_hz=2)
    assert wanted(app, "style").constraint_ms == 100  # it is declared
    app.face.adjust()
    assert wanted(app, "face") is not None
    assert app._wanted["face"] == Watching.face


def test_wanting_the_same_again_is_no_change():
    app = Watching()
    app.face.adjust()
    app.face.adjust(priority="normal", rate_hz=1)
    assert not app._adjusted
    app.face.adjust(rate_hz=4)
    wanted(app, "face")
    app.face.adjust(rate_hz=4)
    assert not app._adjusted


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"priority": "urgent"}, "unknown priority 'urgent'; choose one of: high, low, normal"),
        ({"rate_hz": 0}, "rate_hz must be above 0, not 0"),
        ({"rate_hz": float("inf")}, "rate_hz must be finite"),
        ({"rate_hz": 9}, "max_rate_hz 8 is below rate_hz 9"),
        ({"latency_constraint_ms": float("inf")}, "latency_constraint_ms must be finite"),
        ({"max_rate_hz": "many"}, "max_rate_hz must be a number above 0, not the text 'many'"),
    ],
)
def test_what_cannot_be_wanted_is_refused_and_changes_nothing(wishes, message):
    app = Watching()
    with pytest.raises(ConfigError, match="DNN 'face'") as caught:
        app.adjust("face", **wishes)
    assert message in str(caught.value)
    assert not app._adjusted
    assert not app._wanted
    with pytest.raises(AppError, match="unknown DNN 'nose'; choose one of: face, style"):
        app.adjust("nose", **wishes)
    with pytest.raises(TypeError, match="model"):
        app.adjust("face", model="selfie")  # type: ignore[call-arg]
