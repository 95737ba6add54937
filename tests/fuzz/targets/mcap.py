"""Captured sessions: played, read as recordings, and exported."""

from __future__ import annotations

import base64
import io
import itertools
import json
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from mcap.writer import CompressionType, Writer

from heimdall.capture import mcap_messages as messages
from heimdall.capture.device_pose import DeviceLight, DevicePlane, DevicePose
from heimdall.capture.lens import Camera
from heimdall.capture.mcap_reader import McapReader, Message
from heimdall.capture.pose import Pose
from heimdall.coordinator.replay import replay
from heimdall.errors import HeimdallError
from heimdall.lab.simulator.simulate import Experiment, prepare_any
from heimdall.runtime.telemetry.rerun_file import export_rerun
from heimdall.runtime.telemetry.trace import Recording, read_recording
from heimdall.system.extras import installed
from tests.fuzz.damage import WORDS, in_bytes, in_json, pick
from tests.fuzz.target import FindingError, Target

PICTURES, RECORDS = 5, 12  # decisions with each picture
_STILL = Pose(np.eye(3), np.zeros(3))
_BEGAN_NS = 1_700_000_000_000_000_000
_OTHERS = {  # a calibration as other programs write it
    "timestamp": {"sec": 1, "nsec": 2},
    "frame_id": "camera",
    "width": 16,
    "height": 12,
    "distortion_model": "kannala_brandt",
    "D": [0.01, 0.02, -0.01, 0.0],
    "K": [20.0, 0.0, 8.0, 0.0, 20.5, 6.0, 0.0, 0.0, 1.0],
}
_TIMES = (0, 1, -1, 1 << 62, (1 << 64) - 1, 5_000_000_000)


class Entry(NamedTuple):
    """A message to be written."""

    topic: str
    schema: str
    at_ns: int
    data: bytes
    encoding: str = messages.JSON


class Fuzzed(Target):
    """Files whose container is whole and whose messages are not, and the other way round."""

    suffix = ".mcap"

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        entries = list(_session())
        if random.random() < 0.25:
            crcs = bool(random.random() < 0.5)
            return "bytes", in_bytes(session_file(entries, crcs=crcs), random)
        for _ in range(random.integers(1, 4)):
            place = int(random.integers(len(entries)))
            entries[place] = _changed(entries[place], random)
            if random.random() < 0.15:
                entries.insert(int(random.integers(len(entries))), entries.pop(place))
        return "messages", session_file(entries)

    def run(self, name: str, raw: bytes) -> str:
        file = self.folder / f"damaged{self.suffix}"
        file.write_bytes(raw)
        done = [self._tried("play", lambda: self._play(file))]
        done.append(self._tried("replay", lambda: self._replay(file)))
        if installed("rerun"):
            out = self.folder / "out.rrd"
            done.append(self._tried("export", lambda: export_rerun(file, out)))
        return ", ".join(done)

    def _tried(self, stage: str, work: Callable[[], object]) -> str:
        """A file that one of them refuses may still be of use to another."""
        self.stage = stage
        try:
            work()
        except HeimdallError:
            return f"no {stage}"
        return stage

    def _replay(self, file: Path) -> None:
        recording = read_recording(file)
        for _ in itertools.islice(replay(recording.config, recording.records), 50):
            pass

    def _play(self, file: Path) -> None:
        reader = McapReader(file)
        for _ in range(2):
            for _ in range(4 * PICTURES):
                if (image := reader.read()) is None:
                    break
                if reader.gap_ns() < 0 or image.ndim != 3 or image.dtype != np.uint8:
                    raise FindingError(f"a picture {image.shape} with a gap of {reader.gap_ns()}")
            if not reader.rewind():
                break
        reader.close()
        for said in reader.session.get("states", {}).values():
            for each in said.values() if isinstance(said, dict) else ():
                messages.read_array(each)


@cache
def _session() -> tuple[Entry, ...]:
    camera = Camera(16, 12, 20.0, 20.5, 8.0, 6.0, (0.1, -0.2, 0.0, 0.0, 0.0))
    recording = _recording()
    run = {"schema": 1, "app": "mine", "config": recording.config, "device": "a device"}
    entries = [
        Entry(messages.RUN, "heimdallRun", 0, json.dumps(run).encode()),
        Entry(messages.STATES, "heimdallStates", 0, json.dumps(_states()).encode()),
        Entry(
            messages.CAMERAS,
            messages.CAMERA_SCHEMA,
            0,
            messages.camera_message(0, camera),
            messages.PROTOBUF,
        ),
        Entry(messages.CAMERAS, messages.CAMERA_SCHEMA, 0, json.dumps(_OTHERS).encode()),
    ]
    for number in range(PICTURES):
        at_ns = number * 33_000_000
        pixels = np.full((12, 16, 3), 40 * number, np.uint8)
        jpeg = cv2.imencode(".jpg", pixels)[1].tobytes()
        picture = messages.image_message(_BEGAN_NS + at_ns, jpeg, "jpeg")
        down = json.dumps({"down": [0.1 * number, 1.0, 0.2]}).encode()
        entries.append(Entry(messages.MOTION, "heimdallMotion", at_ns, down))
        plane = DevicePlane(number, _STILL, [[0, 0], [1, 0], [0, 1]], "horizontal")
        light = DeviceLight([0, 1, 0], [1.0, 0.9, 0.8], [0.1 * number] * 3)
        said = DevicePose(_STILL, [plane], light if number else None)
        device = json.dumps(messages.device_data(said)).encode()
        entries.append(Entry(messages.DEVICE, "heimdallDevice", at_ns, device))
        form = messages.PROTOBUF
        if number == 2:  # as other programs write it
            stamp = {"sec": 1_700_000_000, "nsec": at_ns}
            text = base64.b64encode(jpeg).decode()
            fields = {"timestamp": stamp, "data": text, "format": "jpeg", "frame_id": "camera"}
            picture, form = json.dumps(fields).encode(), messages.JSON
        entries.append(Entry(messages.PICTURES, messages.IMAGE_SCHEMA, at_ns, picture, form))
        result: dict[str, Any] = {
            "dnn": "hands",
            "frame": {"sequence": number, "captured_ns": _BEGAN_NS + at_ns},
        }
        result["value"] = [{"type": "Hand", "points": [[1.0, 2.0], [3.0, 4.5]], "score": 0.5}]
        press = {"type": "Key", "name": "up", "pressed": True, "mods": []}
        few = recording.records[number * RECORDS : (number + 1) * RECORDS]
        move = {"records": few}
        notes = {messages.RESULTS: result, messages.INPUTS: press, messages.DECISIONS: move}
        for topic, value in notes.items():
            name = "heimdall" + topic.rpartition("/")[2].capitalize()
            entries.append(Entry(topic, name, at_ns, json.dumps(value).encode()))
    return tuple(entries)


def _states() -> dict[str, Any]:
    return {"hears": {"state": messages.array_data(np.ones((2, 1, 8), np.float32))}}


def _recording() -> Recording:
    """Of a simulated run, which is always the same."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        experiment = prepare_any("emoji", "lg-v50", "max-total", seconds=0.2)
        assert isinstance(experiment, Experiment)
        experiment.run(0, trace)
        return read_recording(trace)


def _changed(entry: Entry, random: np.random.Generator) -> Entry:
    match int(random.choice(4, p=(0.7, 0.1, 0.1, 0.1))):
        case 0 if entry in _session() and entry.encoding == messages.JSON:
            return entry._replace(data=in_json(json.loads(entry.data), random))
        case 0:
            return entry._replace(data=in_bytes(entry.data, random))
        case 1:
            return entry._replace(at_ns=pick(_TIMES, random))
        case 2:
            return entry._replace(topic=pick((messages.PICTURES, messages.RUN, *WORDS), random))
        case _:
            schemas = (messages.IMAGE_SCHEMA, messages.CAMERA_SCHEMA, "other", "")
            return entry._replace(schema=pick(schemas, random))


def session_file(entries: Iterable[Entry | Message], *, crcs: bool = True) -> bytes:
    """As ``McapWriter`` has it; uncompressed where its bytes are to be reached."""
    file = io.BytesIO()
    kind = CompressionType.ZSTD if crcs else CompressionType.NONE
    writer = Writer(file, compression=kind, enable_crcs=crcs)
    writer.start("", "heimdall")
    channels: dict[tuple[str, str, str], int] = {}
    for each in entries:
        key = each.topic, each.schema, each.encoding
        if key not in channels:
            protobuf = each.encoding == messages.PROTOBUF
            known = each.schema in (messages.IMAGE_SCHEMA, messages.CAMERA_SCHEMA)
            content = messages.JSON_SCHEMA
            if protobuf and known:
                content = messages.schema_bytes(each.schema)
            form = "protobuf" if protobuf else "jsonschema"
            schema = writer.register_schema(each.schema, form, content)
            topic = each.topic.encode(errors="replace").decode()
            channels[key] = writer.register_channel(topic, each.encoding, schema)
        at_ns = (_BEGAN_NS + each.at_ns) % (1 << 64)
        writer.add_message(channels[key], at_ns, each.data, at_ns)
    writer.finish()
    return file.getvalue()
