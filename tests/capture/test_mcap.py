"""Sessions in MCAP files: what is written is read again, and whatever is left of a file is used."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heimdall.capture import DeviceLight, DevicePlane, DevicePose, Frame, Pose, open_source
from heimdall.capture import mcap_messages as messages
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.mcap_reader import McapReader, as_json, read_messages
from heimdall.capture.mcap_writer import McapWriter
from heimdall.errors import ConfigError, DeviceError

PATIENCE_S = 20.0
MS = 1_000_000
CAMERA = Camera(32, 24, 40.5, 41.5, 15.0, 12.0, (0.1, -0.2, 0.001, 0.002, 0.05))
TIMES_MS = (0, 30, 95, 130)  # not even


def picture(level: int) -> np.ndarray:
    """Grey noise: what is lossy shows."""
    grey = np.random.default_rng(level).integers(0, 255, (24, 32, 1), np.uint8)
    return np.repeat(grey, 3, axis=2)


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    monkeypatch.setattr("heimdall.capture.mcap_writer._WAITING", 100)  # none is left out


def keep(path: Path, *, lossless: bool = True, pictures: int = len(TIMES_MS)) -> Path:
    """A session of a few pictures, with a key pressed before the third."""
    began_ns = time.perf_counter_ns()
    writer = McapWriter(path, lossless=lossless)
    writer.note(messages.RUN, began_ns, lambda: {"schema": 1, "app": "mine", "config": None})
    for number in range(pictures):
        at_ns = began_ns + TIMES_MS[number % len(TIMES_MS)] * MS
        if number == 2:
            writer.note(messages.INPUTS, at_ns, lambda: {"type": "Key", "name": "up"})
        writer.frame(Frame(picture(number), number, at_ns, CAMERA))
    writer.close()
    assert (writer.written, writer.dropped) == (pictures, 0)
    return path


def test_what_sensors_said_of_a_picture_comes_with_it_again(tmp_path):
    writer, began_ns = McapWriter(tmp_path / "a.mcap", lossless=True), time.perf_counter_ns()
    said = [Motion((0, 1, 0.5), (0.5, -9, 2)), None, Motion((1, 0, 0))]
    for number, each in enumerate(said):
        at_ns = began_ns + number * MS
        writer.frame(Frame(picture(number), number, at_ns, CAMERA.sensing(each)))
    writer.close()
    kinds = [each.topic for each in read_messages(tmp_path / "a.mcap")]
    assert kinds.count(messages.CAMERAS) == 1
    with closing(McapReader(tmp_path / "a.mcap")) as reader:
        for each in said:
            reader.read()
            assert replace(reader.camera, motion=None) == CAMERA
            if each is None:
                assert reader.camera.motion is None
            else:
                assert reader.camera.motion.down == pytest.approx(each.down)
                assert (reader.camera.motion.acceleration is None) == (each.acceleration is None)
                if each.acceleration is not None:
                    assert reader.camera.motion.acceleration == pytest.approx(each.acceleration)


def test_what_a_device_said_of_a_picture_comes_with_it_again(tmp_path):
    writer, began_ns = McapWriter(tmp_path / "a.mcap", lossless=True), time.perf_counter_ns()
    pose = Pose.of(np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]))
    plane = DevicePlane(7, pose, [[0, 0], [1, 0], [1, 2]], "vertical")
    light = DeviceLight([0.6, 0.8, 0], [1, 0.5, 0.25], [0, 0.125, 2])
    said = [DevicePose(pose, [plane], light), None, DevicePose(None)]
    for number, each in enumerate(said):
        camera = replace(CAMERA, device=each)
        writer.frame(Frame(picture(number), number, began_ns + number * MS, camera))
    writer.close()
    with closing(McapReader(tmp_path / "a.mcap")) as reader:
        found = []
        while reader.read() is not None:
            found.append(reader.camera.device)
    assert found[1] is None
    assert (found[2].pose, found[2].planes) == (None, ())
    assert found[2].light is None
    for name in ("towards", "main", "around"):
        assert getattr(found[0].light, name) == pytest.approx(getattr(light, name))
    assert found[0].pose.rotation == pytest.approx(pose.rotation)
    assert found[0].pose.translation == pytest.approx(pose.translation)
    (again,) = found[0].planes
    assert (again.id, again.kind) == (7, "vertical")
    assert again.outline == pytest.approx(plane.outline)
    assert again.pose.translation == pytest.approx(plane.pose.translation)


def played(path: Path) -> list[np.ndarray]:
    """The pictures of a session."""
    with closing(McapReader(path)) as reader:
        found = []
        while (image := reader.read()) is not None:
            found.append(image)
        return found


def test_pictures_times_camera_and_inputs_come_back(tmp_path):
    reader = McapReader(keep(tmp_path / "run.mcap"))
    gaps = []
    for number in range(len(TIMES_MS)):
        assert (reader.read() == picture(number)).all()
        assert len(reader.inputs) == (number >= 2)
        gaps.append(reader.gap_ns() // MS)
    assert gaps[:-1] == [30, 65, 35]
    assert reader.camera == CAMERA
    assert reader.session["app"] == "mine"
    assert reader.read() is None
    assert reader.rewind()
    assert (reader.read() == picture(0)).all()


def test_jpeg_is_near_and_smaller(tmp_path):
    small = keep(tmp_path / "small.mcap", lossless=False)
    found = played(small)[0].astype(int)
    assert 0 < np.abs(found - picture(0)).mean() < 10
    assert small.stat().st_size < keep(tmp_path / "large.mcap").stat().st_size


def test_a_guessed_camera_is_still_a_guess(tmp_path):
    guess = Camera.guess(32, 24)
    assert messages.read_camera(messages.camera_message(5, guess)) == guess
    strange = messages.camera_message(5, replace(guess, fx=float("nan")))
    with pytest.raises(ConfigError, match="that is none"):
        messages.read_camera(strange)


def test_it_plays_as_a_source_with_its_own_times_and_camera(tmp_path):
    with closing(open_source(str(keep(tmp_path / "run.mcap")), loop=False)) as source:
        frames, inputs = {}, []
        assert source.wait_first(PATIENCE_S) is not None
        deadline = time.monotonic() + PATIENCE_S
        while not source.ended and time.monotonic() < deadline:
            frame = source.latest()
            frames[frame.sequence] = frame
            inputs += source.inputs()
            time.sleep(0.001)
        assert source.ended
        assert source.session["app"] == "mine"
        assert [each["name"] for each in inputs] == ["up"]
        assert {each.camera for each in frames.values()} == {CAMERA}
        if {1, 2} <= frames.keys():  # neither was passed over
            taken = [frames[number].captured_ns for number in (1, 2)]
            assert (taken[1] - taken[0]) // MS == 65


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_file_that_was_cut_off_gives_what_it_has(tmp_path, caplog, monkeypatch, share):
    monkeypatch.setattr("heimdall.capture.mcap_writer.CHUNK_S", 0)
    path = keep(tmp_path / "run.mcap", pictures=40)
    whole = path.read_bytes()
    path.write_bytes(whole[: round(share * len(whole))])
    with caplog.at_level(logging.WARNING):
        found = played(path)
    assert 40 * share - 4 <= len(found) < 40
    assert all((each == picture(number)).all() for number, each in enumerate(found))
    assert "was cut off" in caplog.text


def test_what_is_written_is_in_the_file_before_it_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr("heimdall.capture.mcap_writer.CHUNK_S", 0)
    writer = McapWriter(tmp_path / "run.mcap", lossless=True)
    for number in range(3):
        writer.frame(Frame(picture(number), number, time.perf_counter_ns(), CAMERA))
    deadline = time.monotonic() + PATIENCE_S
    while writer.written < 3 and time.monotonic() < deadline:
        time.sleep(0.005)
    (tmp_path / "killed.mcap").write_bytes((tmp_path / "run.mcap").read_bytes())
    writer.close()
    assert len(played(tmp_path / "killed.mcap")) >= 2  # the last one may be on its way


def test_damage_in_the_middle_costs_what_follows(tmp_path, monkeypatch):
    monkeypatch.setattr("heimdall.capture.mcap_writer.CHUNK_S", 0)
    path = keep(tmp_path / "run.mcap", pictures=20)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    path.write_bytes(data)
    assert 0 < len(played(path)) < 20


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "is empty"),
        (b"not a session at all", "is no MCAP file"),
        (b"\x89MCAP0\r\n", "holds no picture"),
    ],
)
def test_what_is_no_session_is_named(tmp_path, content, error):
    path = tmp_path / "run.mcap"
    path.write_bytes(content)
    with pytest.raises((ConfigError, DeviceError), match=error):
        open_source(str(path))


def test_a_session_without_pictures_says_what_it_has(tmp_path):
    writer = McapWriter(tmp_path / "run.mcap")
    writer.note(messages.RUN, 0, lambda: {"app": "mine"})
    writer.close()
    with pytest.raises(DeviceError, match=r"foxglove\.CompressedImage, it has /heimdall/run"):
        open_source(str(tmp_path / "run.mcap"))


def test_a_picture_that_cannot_be_decoded_is_left_out(tmp_path, monkeypatch):
    broken = iter([False, True, False, False])
    compressed = messages.image_message

    def message(at_ns, data, form):
        return compressed(at_ns, b"nothing" if next(broken) else data, form)

    monkeypatch.setattr(messages, "image_message", message)
    assert len(played(keep(tmp_path / "run.mcap"))) == 3


def test_a_file_that_cannot_be_written_is_named_at_once(tmp_path):
    with pytest.raises(ConfigError, match="cannot write"):
        McapWriter(tmp_path / "nowhere" / "run.mcap")


def test_what_cannot_be_written_stops_it_and_is_told(tmp_path):
    writer = McapWriter(tmp_path / "run.mcap")
    writer.note(messages.RUN, 0, lambda: {"app": object()})
    with pytest.raises(DeviceError, match="stopped after 0 pictures: TypeError"):
        writer.close()


def test_times_are_those_since_1970(tmp_path):
    before_ns = time.time_ns()
    (first, *_) = read_messages(keep(tmp_path / "run.mcap"))
    assert as_json(first)["app"] == "mine"
    assert abs(first.at_ns - before_ns) < 60e9


def test_others_can_read_it(tmp_path):
    from mcap.reader import make_reader

    with keep(tmp_path / "run.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        topics = [channel.topic for _, channel, _ in reader.iter_messages()]
        assert topics.count(messages.PICTURES) == len(TIMES_MS)
        assert reader.get_summary().statistics.chunk_count >= 1
