"""Sessions in MCAP files: what is written is read again, and whatever is left of a file is used."""

from __future__ import annotations

import base64
import json
import logging
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from mcap.writer import Writer

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
    with pytest.raises(DeviceError, match="protobuf or JSON; it has /heimdall/run"):
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


# --- files of other programs ------------------------------------------------------------------

START = 1_700_000_000_000_000_000
K = [40.5, 0, 15, 0, 41.5, 12, 0, 0, 1]


def image(at_ns: int, frame: str = "", **changes) -> dict:
    """A picture as Foxglove's JSON schema has it; the first pixel says when it is from."""
    seconds, nanos = divmod(START + at_ns, 10**9)
    level = at_ns // (50 * MS)
    data = cv2.imencode(".png", np.full((24, 32, 3), level, np.uint8))[1].tobytes()
    return {
        "timestamp": {"sec": seconds, "nsec": nanos},
        "frame_id": frame,
        "format": "png",
        "data": base64.b64encode(data).decode(),
        **changes,
    }


def lens(focal: float = 40.5, frame: str = "", **changes) -> dict:
    """A calibration as Foxglove's JSON schema has it."""
    k = [focal, *K[1:]]
    said = {"width": 32, "height": 24, "distortion_model": "plumb_bob", "D": [0.1] * 5, "K": k}
    return {"timestamp": {"sec": 1, "nsec": 2}, "frame_id": frame, **said, **changes}


def foreign(path: Path, *entries: tuple[str, str, object], encoding: str = "json") -> Path:
    """A file with messages of topics and schemas, 50 ms apart. As protobuf, from the same data."""
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        channels: dict[tuple[str, str], int] = {}
        for number, (topic, schema, data) in enumerate(entries):
            if (topic, schema) not in channels:
                kind = writer.register_schema(schema, encoding, b"{}")
                channels[topic, schema] = writer.register_channel(topic, encoding, kind)
            raw = data if isinstance(data, bytes) else json.dumps(data).encode()
            if encoding == messages.PROTOBUF:
                raw = messages._from_json(schema, raw).SerializeToString()
            at_ns = START + number * 50 * MS
            writer.add_message(channels[topic, schema], at_ns, raw, at_ns)
        writer.finish()
    return path


def film(topic: str = "/camera/image", frame: str = "", count: int = 4) -> list:
    """Pictures, 50 ms apart."""
    name = messages.IMAGE_SCHEMA
    return [(topic, name, image(number * 50 * MS, frame)) for number in range(count)]


def calibration(topic: str = "/camera/calibration", **said) -> tuple:
    return topic, messages.CAMERA_SCHEMA, lens(**said)


def camera_of(path: Path) -> Camera | None:
    """The camera of the first picture; None: it is guessed."""
    with closing(McapReader(path)) as reader:
        assert reader.read() is not None
        return reader.camera


@pytest.mark.parametrize("encoding", [messages.JSON, messages.PROTOBUF])
def test_pictures_and_cameras_of_foxglove_are_read_in_both_encodings(tmp_path, encoding):
    path = foreign(tmp_path / "a.mcap", calibration(), *film(), encoding=encoding)
    with closing(McapReader(path)) as reader:
        levels = []
        while (found := reader.read()) is not None:
            levels.append(int(found[0, 0, 0]))
        assert reader.fps == pytest.approx(20)
        assert reader.camera == replace(CAMERA, distortion=(0.1,) * 5)
    assert levels == [0, 1, 2, 3]


def test_json_may_be_that_of_protobuf(tmp_path):
    stamps = ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20.100Z", "2023-11-14T22:13:20.200Z"]
    shown = [("/i", messages.IMAGE_SCHEMA, image(0, timestamp=each)) for each in stamps]
    with closing(McapReader(foreign(tmp_path / "a.mcap", *shown))) as reader:
        assert reader.fps == pytest.approx(10)


def test_pictures_without_a_time_have_that_of_the_file(tmp_path):
    shown = [("/i", messages.IMAGE_SCHEMA, image(0, timestamp=None))] * 3
    with closing(McapReader(foreign(tmp_path / "a.mcap", *shown))) as reader:
        assert reader.fps == pytest.approx(20)


@pytest.mark.parametrize("names", [("sec", "nanosec"), ("secs", "nsecs"), ("seconds", "nanos")])
def test_json_times_may_be_as_ros_names_them(tmp_path, names):
    stamps = [dict(zip(names, divmod(START + 125 * MS * k, 10**9), strict=True)) for k in range(3)]
    shown = [("/i", messages.IMAGE_SCHEMA, image(0, timestamp=each)) for each in stamps]
    with closing(McapReader(foreign(tmp_path / "a.mcap", *shown))) as reader:
        assert reader.fps == pytest.approx(8)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[1]", "no foxglove.CompressedImage: it is no JSON object"),
        (b"{", "no foxglove.CompressedImage: Expecting"),
        (image(0, data=5), "no foxglove.CompressedImage: Failed to parse data"),
        (image(0, timestamp={"sec": "now"}), "no foxglove.CompressedImage: invalid literal"),
        (image(0, timestamp={"sec": 1 << 70}), "no foxglove.CompressedImage"),
        (image(0, timestamp="now"), "no foxglove.CompressedImage"),
    ],
)
def test_json_that_is_no_picture_is_named(tmp_path, data, said):
    path = foreign(tmp_path / "a.mcap", ("/i", messages.IMAGE_SCHEMA, data))
    with pytest.raises(ConfigError, match=said):
        McapReader(path)


@pytest.mark.parametrize(
    ("schema", "encoding"),
    [
        ("sensor_msgs/msg/CompressedImage", "cdr"),
        ("sensor_msgs/Image", "ros1"),
        ("foxglove_msgs/msg/CompressedImage", "cdr"),
        ("foxglove.CompressedImage", "flatbuffer"),
        ("foxglove.RawImage", "protobuf"),
        ("foxglove.CompressedVideo", "json"),
    ],
)
def test_pictures_in_other_messages_are_named(tmp_path, schema, encoding):
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        kind = writer.register_schema(schema, encoding, b"")
        writer.add_message(writer.register_channel("/cam", encoding, kind), 0, b"abc", 0)
        writer.finish()
    said = rf"it has /cam \({schema}, {encoding}\)\. {schema} in {encoding} is not read: write"
    with pytest.raises(DeviceError, match=said):
        McapReader(path)


def test_other_messages_on_our_topics_are_no_error(tmp_path):
    strange = [(topic, "imu", b"\x00\x01") for topic in (messages.MOTION, messages.RUN)]
    path = tmp_path / "a.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        kind = writer.register_schema(messages.IMAGE_SCHEMA, "jsonschema", b"{}")
        channels = [writer.register_channel(topic, "cdr", 0) for topic, _, _ in strange]
        for channel in channels:
            writer.add_message(channel, 0, b"\x00\x01", 0)
        shown = writer.register_channel("/i", "json", kind)
        writer.add_message(shown, 0, json.dumps(image(0)).encode(), 0)
        writer.finish()
    with closing(McapReader(path)) as reader:
        assert reader.read() is not None
        assert reader.session == {}


# --- their cameras ----------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [messages.JSON, messages.PROTOBUF])
@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({"K": [0] * 9}, "not calibrated: its matrix is absent or zero"),
        ({"K": [0] * 9, "D": [], "width": 0, "height": 0}, "not calibrated"),
        ({"K": []}, "not calibrated"),
        ({"K": [1, 2, 3]}, "has the matrix"),
        ({"K": [-40.5, *K[1:]]}, "has the matrix"),
        ({"width": 0}, "has no size"),
        ({"distortion_model": "mei", "D": [1.8, 0.1, 0.2, 0, 0]}, "lens model 'mei' is not known"),
        ({"distortion_model": "kannala_brandt", "D": []}, "has 4 coefficients, not 0"),
        ({"D": [0.1, 0.2]}, "coefficients, not 2"),
    ],
)
def test_a_camera_that_says_no_lens_is_guessed_with_a_note(tmp_path, caplog, said, note, encoding):
    path = foreign(tmp_path / "a.mcap", calibration(**said), *film(), encoding=encoding)
    assert camera_of(path) is None
    assert caplog.text.count(note) == 1
    assert "the lens is guessed" in caplog.text


def test_a_later_calibration_counts(tmp_path):
    name = messages.CAMERA_SCHEMA
    path = foreign(tmp_path / "a.mcap", ("/c/i", name, lens(K=[])), ("/c/i", name, lens()),
                   *film("/c/image"))  # fmt: skip
    assert camera_of(path).fx == 40.5


@pytest.mark.parametrize(
    ("model", "numbers", "bent", "fisheye"),
    [
        ("plumb_bob", [0.1, 0.2, 0.01, 0.02, 0.3], (0.1, 0.2, 0.01, 0.02, 0.3), False),
        ("plumb_bob", [0.1, 0.2, 0.01, 0.02], (0.1, 0.2, 0.01, 0.02, 0.0), False),
        ("radtan", [0.1, 0.2, 0.01, 0.02], (0.1, 0.2, 0.01, 0.02, 0.0), False),
        ("", [], (0.0,) * 5, False),
        ("rational_polynomial", [8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9],
         (8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9), False),
        ("kannala_brandt", [-0.01, 0.05, -0.04, 0.01], (-0.01, 0.05, -0.04, 0.01), True),
        ("equidistant", [-0.01, 0.05, -0.04, 0.01], (-0.01, 0.05, -0.04, 0.01), True),
        ("fisheye", [-0.01, 0.05, -0.04, 0.01], (-0.01, 0.05, -0.04, 0.01), True),
    ],
)  # fmt: skip
def test_the_model_of_a_lens_is_obeyed(tmp_path, model, numbers, bent, fisheye):
    said = calibration(distortion_model=model, D=numbers)
    camera = camera_of(foreign(tmp_path / "a.mcap", said, *film(), encoding="protobuf"))
    assert (camera.distortion, camera.fisheye) == (bent, fisheye)
    point = np.array([[0.5, 0.3, 1.0]])
    project = cv2.fisheye.projectPoints if fisheye else cv2.projectPoints
    wanted = project(point[None], np.zeros(3), np.zeros(3), np.reshape(K, (3, 3)).astype(float),
                     np.array(numbers or [0.0] * 4))[0]  # fmt: skip
    assert camera.pixels(point) == pytest.approx(np.ravel(wanted)[None])


@pytest.mark.parametrize("encoding", [messages.JSON, messages.PROTOBUF])
def test_pictures_that_were_rectified_have_the_lens_of_p(tmp_path, encoding):
    said = calibration("/c/camera_info", P=[44, 0, 16, -3, 0, 45, 11, 0, 0, 0, 1, 0])
    rect = foreign(tmp_path / "a.mcap", said, *film("/c/image_rect/compressed"), encoding=encoding)
    straight = Camera(32, 24, 44, 45, 16, 11)
    assert camera_of(rect) == straight
    raw = foreign(tmp_path / "b.mcap", said, *film("/c/image_raw/compressed"), encoding=encoding)
    assert camera_of(raw).fx == 40.5
    none = foreign(tmp_path / "c.mcap", calibration(P=[0] * 12), *film("/camera/image_rect"))
    assert camera_of(none).fx == 40.5


@pytest.mark.parametrize(
    "camera",
    [
        replace(CAMERA, distortion=(8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9)),
        replace(CAMERA, distortion=(0.01,) * 14),
        replace(CAMERA, distortion=(-0.01, 0.05, -0.04, 0.01), fisheye=True),
    ],
)
def test_every_lens_comes_back(camera):
    assert messages.read_camera(messages.camera_message(5, camera)) == camera


RIGHT = ("/camera/right/calibration", 50.0)


@pytest.mark.parametrize("encoding", [messages.JSON, messages.PROTOBUF])
@pytest.mark.parametrize(
    ("pictures", "lenses", "wanted"),
    [
        # by namespaces
        ([("/camera/left/image", "")], [("/camera/left/calibration", "", 40), (*RIGHT[:1], "", 50)],
         40),
        ([("/camera/left/image", "")], [(*RIGHT[:1], "", 50), ("/camera/left/calibration", "", 40)],
         40),
        ([("/camera/left/image_raw/compressed", ""), ("/camera/right/image_raw/compressed", "")],
         [("/camera/left/camera_info", "", 40), ("/camera/right/camera_info", "", 50)], 40),
        ([("/left_image", ""), ("/right_image", "")],
         [("/right_info", "", 50), ("/left_info", "", 40)], 40),
        ([("/left_image", ""), ("/right_image", "")], [("/right_info", "", 50)], None),
        ([("/camera/left/image", "")], [("/camera/calibration", "", 40)], 40),
        # by frames
        ([("/a", "left"), ("/b", "right")], [("/c", "right", 50), ("/c", "left", 40)], 40),
        ([("/a", "left"), ("/b", "right")], [("/c", "left", 40), ("/c", "right", 50)], 40),
        ([("/x/a", "left")], [("/x/c", "right", 50)], None),
        ([("/x/a", "/left")], [("/y/c", "left", 40)], 40),
        ([("/camera/left/image", "one"), ("/camera/right/image", "two")],
         [("/camera/left/info", "two", 50), ("/camera/right/info", "one", 40)], 40),
        ([("/x/a", "left")], [("/x/b", "", 50), ("/x/c", "left", 40)], 40),
        # the only one
        ([("/image", "")], [("/somewhere/else", "", 40)], 40),
        ([("/image", "")], [("/somewhere/else", "left", 40)], 40),
        ([("/image", "right")], [("/somewhere/else", "left", 40)], None),
        ([("/a/image", ""), ("/b/image", "")], [("/somewhere/else", "", 40)], None),
    ],
)  # fmt: skip
def test_a_calibration_counts_for_the_camera_that_it_is_of(
    tmp_path, caplog, pictures, lenses, wanted, encoding
):
    said = [calibration(topic, focal=focal, frame=frame) for topic, frame, focal in lenses]
    films = zip(*(film(topic, frame) for topic, frame in pictures), strict=True)
    path = foreign(tmp_path / "a.mcap", *said, *(e for each in films for e in each),
                   encoding=encoding)  # fmt: skip
    camera = camera_of(path)
    assert (camera.fx if camera else None) == wanted
    assert ("is not of the camera on" in caplog.text) == (wanted is None)
