"""App and DNN declarations, and finding an app by name or file."""

from __future__ import annotations

import pytest

from heimdall import DNN, App, AppError, ConfigError
from heimdall.app import app_names, load_app, validate


def test_constraint_defaults_to_the_period_of_the_wanted_rate():
    assert DNN("a", model="nanodet", rate_hz=4).constraint_ms == 250
    assert DNN("a", model="nanodet", rate_hz=4, latency_constraint_ms=90).constraint_ms == 90


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate_hz": 0}, "rate_hz must be above 0"),
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


def test_bundled_apps_load_and_are_valid():
    assert "shopping" in app_names()
    for name in app_names():
        validate(load_app(name))


def test_unknown_app_lists_the_bundled_ones():
    with pytest.raises(AppError, match=r"unknown app 'shoping'; choose one of: .*shopping"):
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
