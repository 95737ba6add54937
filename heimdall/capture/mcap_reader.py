"""Reads a captured session: its messages, and its pictures as a source that plays them.

Files are read from the beginning on, as a stream, so one that was cut off gives what it has.
"""

from __future__ import annotations

import itertools
import json
import logging
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
from heimdall.errors import ConfigError, DeviceError

log = logging.getLogger(__name__)

MAGIC = b"\x89MCAP0\r\n"
LONGEST_S = 5.0  # a camera that was away longer is waited for no longer
_LOOKED_AT = 60  # pictures, for the rate and for states
_SANE_FPS = (0.1, 1000.0)


@dataclass(frozen=True)
class Message:
    """One message of a file: ``at_ns`` since 1970."""

    topic: str
    schema: str
    at_ns: int
    data: bytes


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
            yield Message(channel.topic, schema, record.log_time, record.data)
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
        self.session = _session(self._path)
        self.fps = self._rate()
        self._pictures = _pictures(self._path)
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
        self._pictures = _pictures(self._path)
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
        pictures = _pictures(self._path)
        times = [each.stored.at_ns for each, _ in zip(pictures, range(_LOOKED_AT), strict=False)]
        pictures.close()
        if not times:
            raise DeviceError(f"{self._path} holds no picture: {_topics_of(self._path)}")
        gaps = [after - before for before, after in itertools.pairwise(times)]
        usual_ns = statistics.median(gaps) if gaps else 0
        least, most = _SANE_FPS
        return min(max(1e9 / usual_ns, least), most) if usual_ns > 0 else 30.0


def _pictures(path: Path) -> Generator[_Picture]:
    topic: str | None = None
    camera: Camera | None = None
    motion: Motion | None = None
    device: DevicePose | None = None
    inputs: list[dict[str, Any]] = []
    last: _Picture | None = None
    for message in read_messages(path):
        if message.schema == messages.IMAGE_SCHEMA and topic in (None, message.topic):
            topic = message.topic  # the first camera, of several
            if last is not None:
                yield last
            by = replace(camera, motion=motion, device=device) if camera is not None else None
            last = _Picture(messages.read_image(message.data), by, tuple(inputs))
            inputs, motion, device = [], None, None
        elif message.schema == messages.CAMERA_SCHEMA:
            camera = messages.read_camera(message.data)
        elif message.topic == messages.MOTION:
            motion = messages.read_motion(as_json(message))
        elif message.topic == messages.DEVICE:
            device = messages.read_device(as_json(message))
        elif message.topic == messages.INPUTS:
            inputs.append(as_json(message))
    if last is not None:  # what was done after it has no other picture to come with
        yield replace(last, inputs=(*last.inputs, *inputs))


def _session(path: Path) -> dict[str, Any]:
    """What run it was, which is told first; empty in files of others. A part of a session has
    states near its beginning, a whole one none before its networks have run."""
    found: dict[str, Any] = {}
    pictures = 0
    for number, message in enumerate(read_messages(path)):
        if message.topic == messages.RUN and number == 0:
            found = as_json(message)
        elif message.topic == messages.STATES:
            return {**found, "states": as_json(message)}
        pictures += message.schema == messages.IMAGE_SCHEMA
        if pictures == _LOOKED_AT:
            break
    return found


def _topics_of(path: Path) -> str:
    found = sorted({f"{each.topic} ({each.schema})" for each in read_messages(path)})
    return f"pictures are messages of {messages.IMAGE_SCHEMA}, it has {', '.join(found) or 'none'}"
