"""A run that is kept can be run again, replayed, and shown elsewhere."""

from __future__ import annotations

import json
from unittest.mock import MagicMock

import numpy as np
import pytest

from heimdall import Detection, Mask
from heimdall.app.options import RunOptions
from heimdall.capture import mcap_messages as messages
from heimdall.capture.mcap_reader import as_json, read_messages
from heimdall.coordinator.replay import replay
from heimdall.errors import ArgumentError, ConfigError
from heimdall.lab.cli.schemas import json_schema
from heimdall.render import Key, Pointer, Scroll
from heimdall.runtime.run import run_app
from heimdall.runtime.telemetry.kept import input_data, plain, read_input
from heimdall.runtime.telemetry.rerun_file import export_rerun
from heimdall.runtime.telemetry.trace import read_recording
from heimdall.system import paths
from tests.docs.json_schemas import wrong

APP = """
from heimdall import DNN, App

class Mine(App):
    dnns = (DNN("segment", model="selfie", rate_hz=5),)
    keys = {"up": "count"}

    def on_key(self, key):
        print("pressed" if key.pressed else "released")
        if not key.pressed:
            raise KeyboardInterrupt  # ends the run
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    file = tmp_path_factory.mktemp("kept") / "mine.py"
    file.write_text(APP)
    return file


def options(**changes):
    usual = {"headless": True, "size": (320, 180), "device": "onnxruntime", "seconds": 20}
    return RunOptions(**{"source": str(paths.ASSETS / "media" / "cup.mp4"), **usual, **changes})


@pytest.fixture(scope="module")
def session(app):
    """A short run that is kept, with a key pressed in it, and its summary."""
    path = app.with_name("run.mcap")
    return path, run_app(str(app), options(capture=path, press=((0.4, "up"),)))


def test_a_run_keeps_frames_inputs_results_and_decisions(session):
    path, summary = session
    kept = summary["outputs"]["capture"]
    assert (kept["path"], kept["error"]) == (str(path), None)
    topics = [each.topic for each in read_messages(path)]
    assert topics[0] == messages.RUN
    assert topics.count(messages.PICTURES) == kept["frames"] > 10
    assert topics.count(messages.INPUTS) == 2  # down and up
    assert {messages.CAMERAS, messages.RESULTS, messages.DECISIONS} <= set(topics)
    result = next(as_json(each) for each in read_messages(path) if each.topic == messages.RESULTS)
    assert result["dnn"] == "segment"
    assert result["value"]["type"] == "Mask"


def test_its_decisions_are_those_of_a_fresh_coordinator(session):
    recording = read_recording(session[0])
    assert recording.records
    assert list(replay(recording.config, recording.records)) == []


def test_a_run_on_it_does_again_what_its_user_did(app, session, capfd):
    summary = run_app(str(app), options(source=str(session[0])))
    assert summary["source"].startswith("session run.mcap, 640x480")
    assert "pressed\nreleased" in capfd.readouterr().out
    assert summary["seconds"] < 20


def test_a_run_on_it_may_decline_that(app, session, capfd):
    run_app(str(app), options(source=str(session[0]), inputs=False, frames=40, seconds=None))
    assert "pressed" not in capfd.readouterr().out


def test_it_can_be_shown_by_rerun(session, tmp_path):
    pytest.importorskip("rerun")
    found = export_rerun(session[0], tmp_path / "out.rrd")
    assert found["messages"][messages.PICTURES] == session[1]["outputs"]["capture"]["frames"]
    assert (tmp_path / "out.rrd").read_bytes()[:3] == b"RRF"
    with pytest.raises(ConfigError, match="is no MCAP file"):
        export_rerun(paths.ASSETS / "media" / "cup.mp4", tmp_path / "out.rrd")


def test_what_was_exported_is_told_as_its_schema_says(session, tmp_path, monkeypatch):
    rerun = MagicMock()
    rerun.RecordingStream().binary_stream().read.return_value = b"RRF"
    monkeypatch.setitem(__import__("sys").modules, "rerun", rerun)
    found = export_rerun(session[0], tmp_path / "out.rrd")
    assert wrong(json_schema("export"), found) == []


def test_without_rerun_it_is_said_what_to_install(session, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rerun", None)
    with pytest.raises(ConfigError, match=r"pip install 'heimdall-ar\[rerun\]'"):
        export_rerun(session[0], tmp_path / "out.rrd")


def test_a_session_of_others_has_no_decisions(tmp_path):
    (tmp_path / "run.mcap").write_bytes(b"\x89MCAP0\r\n")
    with pytest.raises(ConfigError, match="has no decisions"):
        read_recording(tmp_path / "run.mcap")


def test_a_session_cannot_overwrite_its_source(tmp_path):
    with pytest.raises(ArgumentError, match="is the source"):
        RunOptions(source=str(tmp_path / "run.mcap"), capture=tmp_path / "run.mcap")
    with pytest.raises(ArgumentError, match="goes with capture"):
        RunOptions(lossless=True)


@pytest.mark.parametrize(
    "event",
    [
        Key("up", True, frozenset({"shift"})),
        Pointer(3.0, 4.5, frozenset({"left", "right"})),
        Scroll(0.0, -1.0),
    ],
)
def test_inputs_come_back(event):
    assert read_input(json.loads(json.dumps(input_data(event)))) == event


@pytest.mark.parametrize("data", [{}, {"type": "Close"}, {"type": "Key", "colour": 3}])
def test_what_is_no_input_is_none(data):
    assert read_input(data) is None


def test_results_become_plain_data():
    found = [Detection("cup", 0.5, (1.0, 2.0, 3.0, 4.0)), Mask(np.ones((64, 64), np.float32))]
    box, mask = json.loads(json.dumps(plain(found)))
    assert box == {
        "type": "Detection", "label": "cup", "score": 0.5, "box": [1.0, 2.0, 3.0, 4.0],
        "points": None, "id": None,
    }  # fmt: skip
    assert mask["values"]["shape"] == [64, 64]
    assert plain({"a": np.int64(3), 4: (np.arange(2), object())}) == {
        "a": 3,
        "4": [[0, 1], {"type": "object"}],
    }
