"""Sound in windows: from files of any rate, and from microphones that come and go."""

from __future__ import annotations

import threading
import time
import wave

import numpy as np
import pytest

from heimdall.capture.sound import FileReader, SoundReader, SoundSource, Windows, open_sound
from heimdall.errors import ConfigError, DeviceError
from heimdall.vocabulary.hearing import Hearing


def tone(rate, seconds, hz=440.0):
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate)).astype(
        np.float32
    )


def saved(path, samples, rate, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        whole = np.repeat((samples * 32767).astype(np.int16), channels)
        file.writeframes(whole.tobytes())
    return path


# --- windows -------------------------------------------------------------------------------------


def test_windows_follow_each_other_whatever_the_blocks_are():
    samples = np.arange(1000, dtype=np.float32)
    windows, found, at = Windows(Hearing(1000, 64)), [], 0
    for size in (1, 300, 7, 500, 192):
        at += size
        found += windows.cut(samples[at - size : at], 1000, at * 1_000_000)
    assert [each.sequence for each in found] == list(range(15))
    np.testing.assert_array_equal(np.concatenate([each.samples for each in found]), samples[:960])
    assert [each.captured_ns for each in found] == [64_000_000 * n for n in range(1, 16)]


def test_windows_may_overlap():
    found = Windows(Hearing(1000, 100, hop=40)).cut(np.arange(300, dtype=np.float32), 1000, 0)
    assert [each.samples[0] for each in found] == [0, 40, 80, 120, 160, 200]


@pytest.mark.parametrize("rate", [8000, 44100, 48000])
def test_sound_of_another_rate_is_resampled(rate):
    windows, found = Windows(Hearing(16000, 512)), []
    for block in np.array_split(tone(rate, 1.0), 50):
        found += windows.cut(block, rate, 0)
    heard = np.concatenate([each.samples for each in found])
    assert 29 <= len(found) <= 31  # a second, but for what the filter still holds
    spectrum = np.abs(np.fft.rfft(heard[2048:10240]))
    assert np.argmax(spectrum) * 16000 / 8192 == pytest.approx(440, abs=2)
    assert np.abs(heard[2048:]).max() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": 0}, "rate"),
        ({"window": 0}, "window"),
        ({"window": 10**9}, "window"),
        ({"hop": 513}, "hop"),
        ({"rate": 16000.5}, "rate"),
    ],
)
def test_a_hearing_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(ConfigError, match=f"{message} of a Hearing"):
        Hearing(**wrong)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "channels"), [(16000, 1), (44100, 2)])
def test_a_file_is_read_as_one_track_at_its_own_pace(tmp_path, rate, channels):
    samples = tone(rate, 0.3)
    reader = FileReader(saved(tmp_path / "tone.wav", samples, rate, channels))
    found, before_ns = [], 0
    while (block := reader.read()) is not None:
        part, found_rate, ended_ns = block
        assert found_rate == rate
        assert ended_ns > before_ns
        assert time.perf_counter_ns() >= ended_ns
        found.append(part)
        before_ns = ended_ns
    reader.close()
    np.testing.assert_allclose(np.concatenate(found), samples, atol=2e-4)


def test_what_is_no_sound_is_refused(tmp_path, assets):
    with pytest.raises(ConfigError, match=r"no sound 'nowhere\.wav'"):
        open_sound("nowhere.wav")
    text = tmp_path / "text.wav"
    text.write_text("this is no sound")
    with pytest.raises(DeviceError, match="cannot read sound"):
        open_sound(str(text))
    with pytest.raises(DeviceError, match="has no sound"):
        open_sound(str(assets / "media" / "cup.mp4"))


def heard(source, hearing, count):
    """The next windows of a source."""
    found, enough = [], threading.Event()

    def hear(sound):
        found.append(sound)
        if len(found) >= count:
            enough.set()

    source.listen(hearing, hear)
    assert enough.wait(20)
    return found[:count]


def test_a_file_begins_anew_where_it_is_to(tmp_path):
    source = open_sound(str(saved(tmp_path / "tone.wav", tone(16000, 0.1), 16000)))
    found = heard(source, Hearing(16000, 160), 15)  # 10 in the file
    source.close()
    assert [each.sequence for each in found] == list(range(15))


def test_one_that_is_played_once_ends(tmp_path):
    file = str(saved(tmp_path / "tone.wav", tone(16000, 0.1), 16000))
    found: list[object] = []
    source = open_sound(file, loop=False)
    assert len(heard(source, Hearing(16000, 160), 10)) == 10
    for _ in range(200):
        if source.ended:
            break
        time.sleep(0.05)
    assert source.ended
    source._thread.join(10)
    source.listen(Hearing(16000, 160), found.append)  # it comes late, and hears nothing
    assert found == []
    source.close()


# --- what comes and goes -------------------------------------------------------------------------


class Flaky(SoundReader):
    """Silence that breaks off after some blocks."""

    opened = 0

    def __init__(self):
        type(self).opened += 1
        self._left = 3

    def read(self):
        if not self._left:
            raise DeviceError("unplugged")
        self._left -= 1
        time.sleep(0.001)
        return np.zeros(160, np.float32), 16000, time.perf_counter_ns()


def test_one_that_vanishes_is_told_of_and_tried_again(caplog):
    source = SoundSource(Flaky, "headset")
    found = heard(source, Hearing(16000, 160), 5)
    assert Flaky.opened >= 2
    assert "headset: unplugged" in source.message
    assert "headset: unplugged" in caplog.text
    assert "is back" in caplog.text
    source.close()
    assert len(found) == 5


class Broken(SoundReader):
    """Samples that are no numbers, or far too loud, among others."""

    def read(self):
        time.sleep(0.001)
        samples = np.full(160, 0.25, np.float32)
        samples[:4] = (np.nan, np.inf, -np.inf, 1e30)
        return samples, 8000, time.perf_counter_ns()


def test_samples_that_are_no_numbers_are_told_of_and_do_not_stay(caplog):
    source = SoundSource(Broken, "headset")
    found = heard(source, Hearing(16000, 320), 5)
    source.close()
    samples = np.concatenate([each.samples for each in found])
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() < 2  # a filter overshoots
    assert np.median(samples) == pytest.approx(0.25, abs=0.01)
    assert "headset: samples that are no numbers are silence" in source.message
    assert caplog.text.count("no numbers") == 1


def test_without_sounddevice_a_microphone_says_what_is_missing(monkeypatch):
    monkeypatch.setattr("heimdall.system.extras.installed", lambda package: False)
    with pytest.raises(ConfigError, match=r"sounddevice.*hear"):
        open_sound("microphone")
