"""What may be asked of one run, checked before anything is opened."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from heimdall.app.options import (
    MAX_FPS,
    MAX_SIDE,
    MODES,
    OVERLAYS,
    RunOptions,
    check_writable,
    parse_press,
    parse_size,
    parse_source,
)
from heimdall.errors import ConfigError


def test_by_default_nothing_is_asked_for():
    options = RunOptions()
    assert (options.mode, options.overlay) == (MODES[0], OVERLAYS[0])
    assert (options.frames, options.seconds, options.record) == (None, None, None)


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
    assert RunOptions(record=tmp_path / "new" / "clip.mp4").record is not None
    assert (tmp_path / "new").is_dir()


def test_to_try_a_file_changes_nothing_in_it(tmp_path):
    (tmp_path / "a.png").write_text("kept")
    check_writable("--screenshot", tmp_path / "a.png", (".png",))
    check_writable("--screenshot", tmp_path / "b.png", (".png",))
    check_writable("--screenshot", None)
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
