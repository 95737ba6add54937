"""What may be asked of a run: errors speak of arguments here, of flags on the command line."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from heimdall import ArgumentError, ConfigError, Greedy, RunOptions
from heimdall.app.options import (
    MAX_FPS,
    MAX_SIDE,
    RunArguments,
    check_writable,
    parse_press,
    parse_serve,
    parse_size,
    parse_source,
)
from heimdall.cli import console
from heimdall.schedulers.max_min import MaxMin


@pytest.mark.parametrize(
    ("argument", "value", "said", "typed"),
    [
        ("fps", 0, "fps=0: must be above 0 and at most 1000", "--fps 0: must be above 0"),
        ("fps", float("nan"), "fps=nan: must be above 0", "--fps nan: must"),
        ("fps", "30", "fps=30: must be a finite number above 0", "--fps 30: must"),
        ("seconds", float("inf"), "seconds=inf: must be a finite number", "--seconds inf: must"),
        ("frames", 0, "frames=0: must be at least 1", "--frames 0: must be at least 1"),
        ("gpu_cores", 0, "gpu_cores=0: must be at least 1", "--gpu-cores 0: must be at least 1"),
        ("cpu_workers", 0, "cpu_workers=0: must be at least 1", "--cpu-workers 0: must be at"),
        ("cpu_workers", 1.5, "cpu_workers=1.5: must be a whole number", "--cpu-workers 1.5: must"),
        ("size", (0, 5), "size=(0, 5): sides must be from 1 to", "--size 0x5: sides must"),
        ("size", 5, "size=5: must be (width, height) in pixels", "--size 5: must be"),
        ("record", "x.avi", "record=x.avi: the name must end in .mp4", "--record x.avi: the name"),
    ],
)
def test_a_value_out_of_range_is_named_as_an_argument_and_as_a_flag(argument, value, said, typed):
    with pytest.raises(ArgumentError) as caught:
        RunOptions(**{argument: value})
    assert str(caught.value).startswith(said)
    assert console.words(caught.value).startswith(typed)
    assert isinstance(caught.value, ConfigError)


def test_the_command_line_says_the_flag():
    from heimdall.cli import main

    for words, said in (
        (["run", "shopping", "--fps", "0"], "--fps 0: must be above 0"),
        (["simulate", "shopping-phone", "--render-ms", "-1"], "--render-ms -1: must be at least 0"),
    ):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 2
        assert f"error: {said}" in result.output


def test_keyword_arguments_are_the_options():
    options = [field.name for field in dataclasses.fields(RunOptions)]
    assert list(RunArguments.__annotations__) == options


def as_typed(**options: Any) -> dict[str, Any]:
    """Options of types that the type checker would not let pass."""
    return options


def test_a_path_may_be_a_text(tmp_path):
    assert RunOptions(**as_typed(record=str(tmp_path / "a.mp4"))).record == tmp_path / "a.mp4"
    assert isinstance(RunOptions(trace=Path("t.json")).trace, Path)


class Newest(Greedy):
    name = "newest"
    reason = "newest"

    def prefer(self, view, now_ns, jobs):
        return jobs[-1]


def test_a_scheduler_may_be_an_object_or_a_class():
    assert RunOptions(scheduler=Newest).scheduler is Newest
    own = MaxMin()
    assert RunOptions(scheduler=own).scheduler is own
    with pytest.raises(ConfigError, match="must be a name, a Scheduler or its class, not 5"):
        RunOptions(**as_typed(scheduler=5))


def test_a_scheduler_with_another_ones_name_is_refused():
    class Thief(MaxMin):
        pass

    with pytest.raises(ConfigError, match="Thief is called 'max-min', as another; rename it"):
        RunOptions(scheduler=Thief)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", ("127.0.0.1", 8080)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        ("localhost:65535", ("localhost", 65535)),
        ("[::1]:80", ("::1", 80)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
        (" board.lan:8080 ", ("board.lan", 8080)),
    ],
)
def test_an_address_to_serve_at_is_read(text, address):
    assert parse_serve(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "x", ":8080", "65536", "-1", "1:2:3", "::1:80", "[::1]", "a b:80", "http://x:80", "8080/"],
)
def test_another_notation_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0:8080"):
        parse_serve(text)


@pytest.mark.parametrize("address", [("", 80), ("127.0.0.1", 65536), ("127.0.0.1", -1)])
def test_an_address_that_cannot_be_is_refused(address):
    with pytest.raises(ConfigError, match="serve="):
        RunOptions(serve=address)


def test_who_serves_has_no_window_and_a_person_at_the_controls():
    window, headless = RunOptions(), RunOptions(headless=True)
    served = RunOptions(headless=True, serve=("127.0.0.1", 0))
    assert (window.windowless, window.scripted) == (False, False)
    assert (headless.windowless, headless.scripted) == (True, True)
    assert (served.windowless, served.scripted) == (True, False)
    assert RunOptions(serve=("127.0.0.1", 0)).windowless


@pytest.mark.parametrize(
    "change",
    [
        {"fps": 0.0},
        {"fps": MAX_FPS + 1},
        {"fps": math.nan},
        {"seconds": 0.0},
        {"seconds": math.inf},
        {"frames": 0},
        {"gpu_cores": 0},
        {"size": (0, 5)},
        {"size": (5, MAX_SIDE + 1)},
        {"scheduler": "best"},
        {"mode": "best"},
        {"overlay": "best"},
        {"content": "best"},
    ],
)
def test_a_value_out_of_range_is_refused_by_its_name(change):
    (name,) = change
    with pytest.raises(ConfigError, match=name.replace("_", "[-_]")):
        RunOptions(**change)


@pytest.mark.parametrize("change", [{"fps": MAX_FPS}, {"size": (1, MAX_SIDE)}, {"frames": 1}])
def test_the_limits_themselves_are_allowed(change):
    assert RunOptions(**change)


def test_an_unknown_scheduler_lists_the_valid_ones():
    with pytest.raises(ConfigError, match="max-min, max-total"):
        RunOptions(scheduler="best")


def test_a_result_needs_a_file_it_can_be_written_to(tmp_path):
    with pytest.raises(ConfigError, match="is a folder"):
        RunOptions(record=tmp_path)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ConfigError, match="cannot write"):
        RunOptions(trace=tmp_path / "file" / "trace.json")
    with pytest.raises(ConfigError, match=r"must end in \.mp4"):
        RunOptions(record=tmp_path / "clip.avi")
    with pytest.raises(ConfigError, match="cannot write"):
        RunOptions(trace=tmp_path / ("long" * 100) / "trace.json")


def test_a_value_makes_nothing_until_its_run_begins(tmp_path):
    names = {"record": "clip.mp4", "screenshot": "a.png", "trace": "t.json", "capture": "s.mcap"}
    paths = {option: tmp_path / option / "new" / name for option, name in names.items()}
    options = replace(RunOptions(**paths), headless=True)
    assert list(tmp_path.iterdir()) == []
    options.make_room()
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    assert all(path.parent.is_dir() and not path.exists() for path in paths.values())


def test_to_try_a_file_changes_nothing_in_it(tmp_path):
    (tmp_path / "a.png").write_text("kept")
    check_writable("screenshot", tmp_path / "a.png", (".png",))
    check_writable("screenshot", tmp_path / "b.png", (".png",))
    check_writable("screenshot", None)
    assert (tmp_path / "a.png").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_sizes_are_parsed():
    assert parse_size("1280x720") == parse_size(" 1280X720 ") == parse_size("1280×720")
    assert parse_size("1280x720") == (1280, 720)
    for text in ("1280", "-1x5", "axb", "1280x", "1280x720x3", ""):
        with pytest.raises(ConfigError, match="WIDTHxHEIGHT"):
            parse_size(text)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("0", 0),
        ("12", 12),
        ("clip.mp4", "clip.mp4"),
        ("rtsp://camera/1", "rtsp://camera/1"),
        ("20240101", "20240101"),  # a file
        (None, None),
    ],
)
def test_a_camera_is_a_number_and_all_else_a_file_or_stream(text, source):
    assert parse_source(text) == source


def test_key_presses_are_parsed():
    assert parse_press("2.5:F5") == (2.5, "f5")
    assert parse_press("3:space") == (3.0, "space")
    for text in ("f5", "-1:f5", "2.5:", "2.5 f5", "soon:f5"):
        with pytest.raises(ConfigError, match="SECONDS:KEY"):
            parse_press(text)


def test_options_are_a_value():
    assert RunOptions(trace=Path("t.json")) == RunOptions(trace=Path("t.json"))
    assert RunOptions() != RunOptions(headless=True)


def test_a_phone_is_screen_and_camera_unless_there_is_another_source(tmp_path):
    assert not RunOptions().phone
    alone = RunOptions(phone=True)
    assert (alone.windowless, alone.scripted, alone.by_phone) == (True, False, True)
    assert alone.serve == ("0.0.0.0", 8443)
    assert RunOptions(source="phone").by_phone
    screen = RunOptions(phone=True, source="clip.mp4", serve=("127.0.0.1", 0))
    assert (screen.by_phone, screen.serve) == (False, ("127.0.0.1", 0))
    assert (alone.phone, RunOptions(phone=False).phone) == ("video", None)
    assert RunOptions(source="phone", phone="overlay").phone == "overlay"


def test_an_overlay_is_over_the_phones_own_camera():
    with pytest.raises(ConfigError, match="phone"):
        RunOptions(phone="hologram")
    with pytest.raises(ConfigError, match="leave source out"):
        RunOptions(phone="overlay", source="clip.mp4")


@pytest.mark.parametrize("name", ["certificate", "turn"])
def test_what_goes_with_a_phone_needs_one_and_a_password_is_not_shown(name):
    given: dict[str, Any] = {name: "turn:me:secret@host"}
    with pytest.raises(ConfigError, match=f"{name}=") as told:
        RunOptions(**given)
    assert name == "certificate" or "secret" not in str(told.value)
