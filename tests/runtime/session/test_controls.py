"""What keys do while an app runs: the commands alone, then a whole run that is driven by them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import cv2
import pytest

from heimdall import App, World
from heimdall.app.options import RunOptions, parse_press
from heimdall.errors import ConfigError
from heimdall.render import Close, Dropped, Key, Pointer
from heimdall.runtime.run import run_app
from heimdall.runtime.session.controls import Controls, after
from heimdall.runtime.session.keys import COMMANDS, GESTURES, commands_by_key, help_rows, key_labels
from heimdall.vocabulary.enums import OverlayView


class Held:
    """A source that can be held."""

    live = held = False
    stepped = 0

    def hold(self):
        self.held = True

    def release(self):
        self.held = False

    def step(self):
        self.stepped += 1


class Run:
    scheduler, mode, fps = "max-total", "elastic", 30.0

    def reconfigure(self, scheduler, mode, fps):
        self.scheduler, self.mode, self.fps = scheduler, mode, fps

    def watch(self, source):
        raise AssertionError("no other source was opened")


@pytest.fixture
def registered_models():
    """Controls over stand-ins: ``press(*keys)``, and what they act on."""

    def make(app=App, elastic=True, **options):
        calls = []
        surface: Any = SimpleNamespace(
            size=(320, 180), toggle_full_screen=lambda: calls.append("full screen")
        )
        gpu = SimpleNamespace(name="onnxruntime")
        setup: Any = SimpleNamespace(
            source=Held(),
            elastic=elastic,
            processors=SimpleNamespace(gpu=gpu),
        )
        run = Run()
        controls = Controls(app(), RunOptions(**options), setup, surface, run)

        def press(*keys):
            return [controls.handle(Key(key, True)) for key in keys]

        return SimpleNamespace(
            controls=controls, press=press, source=setup.source, run=run, calls=calls
        )

    return make


def test_buttons_have_the_apps_keys_first_and_a_free_one_for_each_command():
    class Mine(App):
        keys: ClassVar = {"h": "hello", "x": "no more"}

    labels = key_labels(Mine())
    assert list(labels)[:2] == ["h", "x"]
    assert labels["h"] == "hello"
    assert labels["f1"] == "help"
    assert labels["o"] == "overlay"
    assert "escape" not in labels  # a button that ends the run is not one among many


# --- keys -------------------------------------------------------------------------------------


def test_every_command_has_a_key_of_its_own():
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys))


def test_a_key_the_app_declares_is_the_apps_and_the_function_key_stays():
    class Mine(App):
        keys = {"p": "paint", "f6": "polish"}  # noqa: RUF012

    mine = commands_by_key(Mine.keys)
    assert "p" not in mine
    assert mine["f6"] == "scheduler"
    rows = help_rows(Mine())
    assert rows[0] == ("P", "paint")
    assert ("F6", "next scheduling policy") in rows


def test_the_help_card_lists_what_mouse_and_hands_do_too():
    class Mine(App):
        keys = {"p": "paint"}  # noqa: RUF012
        gestures = {"drag": "move it", "pinch": "grab it"}  # noqa: RUF012

    rows = help_rows(Mine())
    assert rows[:4] == [("P", "paint"), ("drag", "move it"), ("pinch", "grab it"), ("", "")]
    assert help_rows(App())[-1] == ("drop a file", "show that instead")


def test_other_keys_and_the_pointer_are_the_apps(registered_models):
    assert registered_models().press("s", "left") == [False, False]
    assert not registered_models().controls.handle(Pointer(1, 2))
    assert not registered_models().controls.handle(Key("p", True, frozenset({"control"})))


def test_closing_the_window_and_escape_end_the_run(registered_models):
    for event in (Close(), Key("escape", True)):
        controls = registered_models().controls
        assert controls.handle(event)
        assert controls.ended


def test_a_window_that_has_gone_by_itself_ends_the_run_and_is_told(registered_models):
    controls = registered_models().controls
    assert controls.handle(Close("the display has gone away"))
    assert controls.ended
    assert controls.errors == ["the display has gone away: the run ends"]


def test_letting_a_key_go_does_nothing(registered_models):
    controls = registered_models().controls
    assert controls.handle(Key("escape", False))
    assert not controls.ended


# --- commands ---------------------------------------------------------------------------------


def test_the_overlay_goes_through_its_views_and_comes_back(registered_models):
    class Placed(App):
        world = World()

    for app, shown in ((Placed, set(OverlayView)), (App, set(OverlayView) - {"world"})):
        d = registered_models(app)
        seen = []
        for _ in shown:
            d.press("o")
            seen.append(d.controls.view)
        assert sorted(seen) == sorted(shown)
        assert d.controls.view == "panel"


def test_help_shows_and_hides_the_card(registered_models):
    d = registered_models()
    d.press("h")
    assert len(d.controls.help) == len(COMMANDS) + len(GESTURES)
    d.press("f1")
    assert not d.controls.help


def test_pause_and_step_act_on_the_source(registered_models):
    d = registered_models()
    d.press("space", ".")
    assert (d.source.held, d.source.stepped) == (True, 1)
    d.press("f3")
    assert not d.source.held


def test_policy_mode_and_rate_change_one_at_a_time(registered_models):
    d = registered_models()
    d.press("m", "=")
    assert (d.run.mode, d.run.fps) == ("static", 45.0)
    d.press("m", "-", "-")
    assert (d.run.mode, d.run.fps) == ("static-runs", 25.0)
    d.press("m")
    assert d.run.mode == "elastic"
    before = d.run.scheduler
    d.press("p")
    assert d.run.scheduler != before
    assert d.run.scheduler in d.controls.notice


def test_the_rate_stops_at_both_ends(registered_models):
    d = registered_models()
    d.press(*["f8"] * 30)
    assert d.run.fps == 5
    d.press(*["f9"] * 30)
    assert d.run.fps == 120


def test_onnxruntime_in_the_gpus_role_stays_static(registered_models):
    d = registered_models(elastic=False)
    d.press("m")
    assert d.run.mode == "elastic"
    assert "onnxruntime plays the GPU: static chunks only" in d.controls.notice


def test_full_screen_is_the_surfaces_affair_and_an_option(registered_models):
    d = registered_models(full_screen=True)
    d.press("f11")
    assert d.calls == ["full screen"] * 2


def test_the_title_says_what_is_going_on(registered_models):
    d = registered_models()
    status = SimpleNamespace(app="Mine", fps=29.97)
    assert d.controls.title(status) == "Mine · 30 fps"
    d.press("space")
    assert d.controls.title(status) == "Mine · 30 fps · paused"


def test_presses_come_when_they_are_due_and_once(registered_models):
    controls = registered_models(press=((2.0, "h"), (0.5, "x"))).controls
    assert controls.presses(0.4) == []
    assert controls.presses(0.6) == [Key("x", True), Key("x", False)]
    assert controls.presses(9.0) == [Key("h", True), Key("h", False)]
    assert controls.presses(99.0) == []


@pytest.mark.parametrize("text", ["h", "2", "2:", "-1:h", "x:h", "2: "])
def test_a_press_is_seconds_and_key(text):
    with pytest.raises(ConfigError, match="expected SECONDS:KEY"):
        parse_press(text)


def test_after_goes_round():
    assert [after(value, ("a", "b")) for value in ("a", "b", "z")] == ["b", "a", "a"]


# --- another source ---------------------------------------------------------------------------


def test_a_file_that_cannot_be_shown_is_a_line_and_no_more(registered_models, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    d = registered_models()
    assert d.controls.handle(Dropped(str(tmp_path / "notes.txt")))
    assert d.controls.notice.startswith("opening ")
    end = time.monotonic() + 60
    while d.controls.notice.startswith("opening ") and time.monotonic() < end:
        d.controls.frame(0)
        time.sleep(0.005)
    assert "notes.txt" in d.controls.notice
    assert d.controls.handle(Dropped(str(tmp_path / "notes.txt")))  # the next one may be tried
    assert not d.controls.ended


# --- a whole run ------------------------------------------------------------------------------

APP = """
from heimdall import DNN, App

class Mine(App):
    dnns = (DNN("segment", model="selfie", rate_hz=5),)
    keys = {"g": "greet"}
    greeted = 0

    def on_key(self, key):
        if key.pressed and key.name == "g":
            print("greeted")
"""


def test_a_headless_run_can_be_driven_by_keys(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(APP)
    presses = "0.1:g 0.2:f2 0.3:f7 0.4:f6 0.5:f9 0.6:f12 0.7:f3 0.8:f4 0.9:f3 1:f5 1.2:f10 1.5:f10"
    options = RunOptions(
        headless=True,
        size=(160, 90),
        seconds=1.5,  # counted from the last change on
        device="onnxruntime",
        mode="static",
        trace=Path("trace.json"),
        press=tuple(parse_press(press) for press in presses.split()),
    )
    summary = run_app("mine.py", options)
    assert "greeted" in capsys.readouterr().out
    assert summary["errors"] == []
    assert summary["fps_target"] == 45
    assert summary["scheduler"] != "max-total"
    assert "box.mp4" not in summary["source"]
    assert summary["dnns"]["segment"]["inferences"] > 0
    (picture,) = Path.cwd().glob("mine-*.png")
    assert cv2.imread(str(picture)).shape == (90, 160, 3)
    (video,) = Path.cwd().glob("mine-*.mp4")
    assert cv2.VideoCapture(str(video)).get(cv2.CAP_PROP_FRAME_COUNT) > 2
    assert _replays(Path("trace.json"))


def _replays(path):
    from heimdall.coordinator.replay import replay
    from heimdall.runtime.telemetry.trace import read_recording

    recording = read_recording(path)
    kinds = {record["event"]["type"] for record in recording.records if record["event"]}
    assert "Reconfigured" in kinds
    return list(replay(json.loads(json.dumps(recording.config)), recording.records)) == []


def test_policies_are_walked_through_from_ones_own_back_to_it(registered_models):
    """Those for frames, and nothing is imported between two frames."""
    d = registered_models()
    d.controls._first_scheduler = d.run.scheduler = "oldest"
    modules = set(sys.modules)
    seen = []
    for _ in range(4):
        d.press("f6")
        seen.append(d.run.scheduler)
    assert seen == ["max-min", "max-total", "oldest", "max-min"]
    assert not {name for name in set(sys.modules) - modules if "policies" in name}
