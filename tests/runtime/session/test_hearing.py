"""An app that listens: every window of its sound is an inference, in order."""

from __future__ import annotations

import time
import wave
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from heimdall import DNN, App, Hearing
from heimdall.capture.sound import SoundReader, SoundSource
from heimdall.errors import ConfigError, DeviceError
from heimdall.runtime.session.session import Session
from tests.graph.models import model

GREY = np.full((48, 64, 3), 128, np.uint8)
RATE, WINDOW, WINDOWS = 16000, 1600, 20


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Loudness, and how many windows there were."""
    nodes = [
        helper.make_node("Abs", ["sound"], ["a"]),
        helper.make_node("ReduceMax", ["a"], ["loud"], axes=[1], keepdims=1),
        helper.make_node("Add", ["count_in", "one"], ["count_out"]),
        helper.make_node("Mul", ["count_out", "one"], ["count"]),
    ]
    shapes = {"sound": [1, WINDOW], "count_in": [1, 1]}
    made = model(nodes, shapes, ["loud", "count", "count_out"], {"one": np.float32(1)})
    path = tmp_path_factory.mktemp("hearing") / "loud.onnx"
    onnx.save(made, path)
    return str(path)


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    """Two seconds that get louder from window to window."""
    path = tmp_path_factory.mktemp("sound") / "steps.wav"
    levels = np.repeat(np.arange(WINDOWS) / WINDOWS, WINDOW)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((levels * 32767).astype(np.int16).tobytes())
    return str(path)


def listener(network, decoding_s=0.0):
    def decode(outputs, context):
        time.sleep(decoding_s)
        return outputs["count"].item(), outputs["loud"].item()

    return DNN(
        "ear",
        model=network,
        hears=Hearing(RATE, WINDOW),
        state={"count_out": "count_in"},
        preprocess=lambda sound: {"sound": sound.samples[None]},
        decode=decode,
    )


@pytest.mark.parametrize("decoding_s", [0.0, 0.12])
@pytest.mark.parametrize("device", ["onnxruntime", None])
def test_every_window_is_heard_once_and_in_order(network, steps, device, decoding_s):
    """Slow decoding: the next window is there before the last one's state is."""
    found = []
    listen = lambda dnn, value, frame: found.append(value)  # noqa: E731
    options = {"device": device, "sound": steps, "overlay": "off"}

    class Hear(App):
        dnns = (listener(network, decoding_s),)

    with Session(Hear, size=(64, 48), on_result=listen, **options) as session:
        session.push(GREY)
        for _ in range(300):
            session.step()
            if len(found) >= 12:
                break
    assert [count for count, _ in found[:12]] == list(range(1, 13))
    np.testing.assert_allclose([loud for _, loud in found[:12]], np.arange(12) / WINDOWS, atol=1e-3)


class Unplugged(SoundReader):
    """A tone that breaks off again and again."""

    opened = 0

    def __init__(self):
        type(self).opened += 1
        self._left = 4

    def read(self):
        if not self._left:
            raise DeviceError("unplugged")
        self._left -= 1
        return np.full(WINDOW, 0.5, np.float32), RATE, time.perf_counter_ns()


def test_frames_go_on_where_a_microphone_vanishes_and_it_is_heard_again(network, monkeypatch):
    found = []

    def opened(name):
        return SoundSource(Unplugged, name)

    monkeypatch.setattr("heimdall.runtime.opening.setup.open_sound", opened)

    class Hear(App):
        dnns = (listener(network),)

    options: dict[str, Any] = {"device": "onnxruntime", "sound": "microphone", "overlay": "off"}
    listen = lambda dnn, value, frame: found.append(value)  # noqa: E731
    with Session(Hear, size=(64, 48), on_result=listen, **options) as session:
        session.push(GREY)
        steps = 0
        while len(found) < 6 and steps < 600:
            session.step()
            steps += 1
        assert session.summary().errors == []
    assert Unplugged.opened >= 2
    assert [count for count, _ in found[:6]] == list(range(1, 7))


class Optional(App):
    dnns = (DNN("people", model="selfie"),)


@pytest.mark.parametrize("sound", [False, True])
def test_what_is_for_runs_with_sound_is_there_in_those_alone(network, steps, sound):
    class Hear(Optional):
        sound_dnns = (listener(network),)

    app = Hear()
    for given in (sound, not sound):  # the same app, run again
        options = {"sound": steps if given else None, "overlay": "off", "device": "onnxruntime"}
        with Session(app, size=(64, 48), **options) as session:
            session.push(GREY)
            assert [dnn.name for dnn in app.dnns] == ["people", "ear"][: 1 + given]
    assert [dnn.name for dnn in Hear.dnns] == ["people"]


def test_what_is_for_runs_with_sound_must_hear():
    class Deaf(App):
        sound_dnns = (DNN("people", model="selfie"),)

    with pytest.raises(ConfigError, match="'people' does not hear"):
        Session(Deaf, device="onnxruntime").open()


def test_its_rate_is_that_of_the_windows(network):
    dnn = listener(network)
    assert dnn.rate_hz == 10
    assert dnn.constraint_ms == 100
    assert dnn.on_event


def test_a_file_that_is_not_there_is_refused(network):
    with pytest.raises(ConfigError, match="no sound"):
        Session([listener(network)], device="onnxruntime", sound="nowhere.wav").open()


def test_no_microphone_is_turned_on_in_somebody_elses_program(network, monkeypatch):
    def opened(*arguments):
        raise AssertionError("a microphone")

    monkeypatch.setattr("heimdall.capture.sound.MicrophoneReader", opened)
    with Session([listener(network)], device="onnxruntime") as session:
        session.push(GREY)


def test_sound_that_nobody_hears_is_told_of(steps, caplog):
    with Session([DNN("people", model="selfie")], device="onnxruntime", sound=steps):
        pass
    assert "no DNN of" in caplog.text
