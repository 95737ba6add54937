"""Reads a captured session: its messages, and its pictures as a source that plays them.

Files are read from the beginning on, as a stream, so one that was cut off gives what it has.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import re
import statistics
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np

from heimdall.capture import mcap_messages as messages
from heimdall.capture.device_pose import DevicePose
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.mcap_cameras import Belonging
from heimdall.errors import ConfigError, DeviceError

log = logging.getLogger(__name__)

MAGIC = b"\x89MCAP0\r\n"
LONGEST_S = 5.0  # a camera that was away longer is waited for no longer
_LOOKED_AT = 60  # pictures, for the rate and for states
_SANE_FPS = (0.1, 1000.0)
_READ = (messages.PROTOBUF, messages.JSON)
# Of schemas' last names: pictures as other messages have them.
_OTHER_PICTURES = ("CompressedImage", "RawImage", "Image", "CompressedVideo")


@dataclass(frozen=True)
class Message:
    """One message of a file: ``at_ns`` since 1970, its data in an ``encoding`` ("protobuf",
    "json", or one that is not read)."""

    topic: str
    schema: str
    at_ns: int
    data: bytes
    encoding: str = messages.JSON

    @property
    def is_image(self) -> bool:
        """True for a picture that can be read."""
        return self.schema == messages.IMAGE_SCHEMA and self.encoding in _READ

    @property
    def is_camera(self) -> bool:
        """True for a calibration that can be read."""
        return self.schema == messages.CAMERA_SCHEMA and self.encoding in _READ


def read_messages(path: str | Path) -> Iterator[Message]:
    """The messages of an MCAP file, in its order. Where it ends too soon, or is damaged, that is
    logged, and what came before counts. Raises ConfigError for a file that cannot be read, or is no
    MCAP file."""
    path = Path(path)
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
    with file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ConfigError(f"{path} is no MCAP file, as `heimdall run --capture` writes them")
        yield from _messages(path, file)


def _messages(path: Path, file: IO[bytes]) -> Iterator[Message]:
    from mcap.records import Channel, Footer, Schema
    from mcap.records import Message as Record
    from mcap.stream_reader import StreamReader

    schemas: dict[int, str] = {0: ""}
    channels: dict[int, Channel] = {}
    reader = StreamReader(
        file, skip_magic=True, validate_crcs=True, record_size_limit=messages.LARGEST
    )
    records = reader.records
    while True:
        try:
            record = next(records)
        except Exception as error:  # whatever half a record makes the library do
            log.warning("%s was cut off, or is damaged: what came before is used", path)
            log.debug("it ends so: %r", error)
            return
        if isinstance(record, Schema):
            schemas[record.id] = record.name
        elif isinstance(record, Channel):
            channels[record.id] = record
        elif isinstance(record, Record) and (channel := channels.get(record.channel_id)):
            schema = schemas.get(channel.schema_id, "")
            coding = channel.message_encoding
            yield Message(channel.topic, schema, record.log_time, record.data, coding)
        elif isinstance(record, Footer):
            return


def as_json(message: Message) -> dict[str, Any]:
    """The data of a JSON message. Raises ConfigError where it is none."""
    try:
        found = json.loads(message.data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"a message of {message.topic} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"a message of {message.topic} is no JSON object: {found!r}")
    return found


@dataclass(frozen=True)
class _Picture:
    """A picture that has not been decoded, with what there was between the last one and it."""

    stored: messages.Compressed
    camera: Camera | None
    inputs: tuple[dict[str, Any], ...]


class McapReader:
    """The pictures of a captured session, as a clip that keeps the times at which they were taken.
    Raises ConfigError or DeviceError for a file that has none.

    ``session``: what run it was, as far as known, and under "states" those of recurrent networks
    near the first picture. ``camera``: of the picture read last, None where it is not told;
    ``inputs``: what the user did before that, and taking them empties it.
    """

    live = False

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self.camera: Camera | None = None
        self.inputs: list[dict[str, Any]] = []
        self._at_ns = self._began_ns = 0
        self.session, self._cameras = _looked_at(self._path)
        self._noted: set[str] = set()
        self.fps = self._rate()
        self._pictures = self._read()
        self._next = next(self._pictures, None)

    def read(self) -> np.ndarray | None:
        """The next picture, BGR uint8; one that cannot be decoded is left out."""
        while (picture := self._step()) is not None:
            encoded = np.frombuffer(picture.stored.data, np.uint8)
            image = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if len(encoded) else None
            if image is not None:
                return np.asarray(image)
            log.warning("%s: a picture cannot be decoded, and is left out", self._path)
        return None

    def skip(self) -> bool:
        """Pass over a picture."""
        return self._step() is not None

    @property
    def at_ns(self) -> int:
        """When the last picture was taken, since the first one."""
        return self._at_ns - self._began_ns

    def gap_ns(self) -> int:
        """How long after the last picture the next one was taken."""
        if self._next is None:
            return round(1e9 / self.fps)
        return min(max(self._next.stored.at_ns - self._at_ns, 0), round(LONGEST_S * 1e9))

    def rewind(self) -> bool:
        """Back to the first picture."""
        self.close()
        self._pictures = self._read()
        self._next = next(self._pictures, None)
        return self._next is not None

    def close(self) -> None:
        """Close the file."""
        self._pictures.close()

    def _step(self) -> _Picture | None:
        picture = self._next
        if picture is not None:
            self._at_ns, self._next = picture.stored.at_ns, next(self._pictures, None)
            self._began_ns = self._began_ns or self._at_ns
            self.camera = picture.camera or self.camera
            self.inputs += picture.inputs
        return picture

    def _rate(self) -> float:
        """The usual rate of the file's first pictures."""
        pictures = self._read()
        times = [each.stored.at_ns for each, _ in zip(pictures, range(_LOOKED_AT), strict=False)]
        pictures.close()
        if not times:
            raise DeviceError(f"{self._path} holds no picture: {_topics_of(self._path)}")
        gaps = [after - before for before, after in itertools.pairwise(times)]
        usual_ns = statistics.median(gaps) if gaps else 0
        least, most = _SANE_FPS
        return min(max(1e9 / usual_ns, least), most) if usual_ns > 0 else 30.0

    def _read(self) -> Generator[_Picture]:
        topic: str | None = None
        camera: Camera | None = None
        motion: Motion | None = None
        device: DevicePose | None = None
        inputs: list[dict[str, Any]] = []
        last: _Picture | None = None
        for message in read_messages(self._path):
            is_json = message.encoding == messages.JSON
            if message.is_image and topic in (None, message.topic):
                topic = message.topic  # the first camera, of several
                if last is not None:
                    yield last
                by = replace(camera, motion=motion, device=device) if camera is not None else None
                last = _Picture(_image(message), by, tuple(inputs))
                inputs, motion, device = [], None, None
            elif message.is_camera:
                camera = self._camera(message, camera)
            elif message.topic == messages.MOTION and is_json:
                motion = messages.read_motion(as_json(message))
            elif message.topic == messages.DEVICE and is_json:
                device = messages.read_device(as_json(message))
            elif message.topic == messages.INPUTS and is_json:
                inputs.append(as_json(message))
        if last is not None:  # what was done after it has no other picture to come with
            yield replace(last, inputs=(*last.inputs, *inputs))

    def _camera(self, message: Message, before: Camera | None) -> Camera | None:
        """The camera that is played, by a calibration; ``before`` where that is of another one or
        says nothing, which is noted."""
        played = next(iter(self._cameras.images), None)
        if played is None:
            return before
        try:
            key = _lens_key(message)
            self._cameras.add_lens(key)
            if key == self._cameras.of(played):
                straight = "/image_rect" in played  # as ROS calls them
                return messages.read_camera(message.data, message.encoding, rectified=straight)
            if self._cameras.of(played) is None:
                frame = f" (frame {key[1]})" if key[1] else ""
                own = self._cameras.images[played]
                of = f"{played} (frame {own})" if own else played
                self._note(message.topic, f"the calibration{frame} is not of the camera on {of}")
        except ConfigError as error:
            self._note(message.topic, str(error))
        return before

    def _note(self, topic: str, said: str) -> None:
        if topic not in self._noted:
            self._noted.add(topic)
            log.warning(
                "%s, %s: %s; the lens is guessed unless another calibration says it",
                *(self._path, topic, said),
            )


def _image(message: Message) -> messages.Compressed:
    """The picture of a message, at the time of the file where it has none of its own."""
    found = messages.read_image(message.data, message.encoding)
    return found if found.at_ns else replace(found, at_ns=message.at_ns)


def _lens_key(message: Message) -> tuple[str, str]:
    return message.topic, messages.camera_frame(message.data, message.encoding)


def _looked_at(path: Path) -> tuple[dict[str, Any], Belonging]:
    """What run it was, which is told first; empty in files of others. A part of a session has
    states near its beginning, a whole one none before its networks have run. And which cameras a
    file has."""
    found: dict[str, Any] = {}
    cameras = Belonging()
    pictures = 0
    for number, message in enumerate(read_messages(path)):
        is_json = message.encoding == messages.JSON
        if message.topic == messages.RUN and number == 0 and is_json:
            found = as_json(message)
        elif message.topic == messages.STATES and is_json and "states" not in found:
            found = {**found, "states": as_json(message)}
        elif message.is_image:
            if message.topic not in cameras.images:
                cameras.add_image(message.topic, _image(message).frame)
            pictures += 1
        elif message.is_camera:
            with contextlib.suppress(ConfigError):  # it is noted when it is played
                cameras.add_lens(_lens_key(message))
        if pictures == _LOOKED_AT:
            break
    return found, cameras


def _topics_of(path: Path) -> str:
    found = sorted({(each.topic, each.schema, each.encoding) for each in read_messages(path)})
    shown = [
        f"{topic} ({', '.join(filter(None, (schema, encoding)))})"
        for topic, schema, encoding in found
    ]
    said = f"pictures are messages of {messages.IMAGE_SCHEMA} in protobuf or JSON; it has "
    said += ", ".join(shown) or "none"
    for _, schema, encoding in found:
        if re.split(r"\W+", schema)[-1] in _OTHER_PICTURES:
            said += f". {schema} in {encoding} is not read: write it as {messages.IMAGE_SCHEMA}"
            break
    return said
