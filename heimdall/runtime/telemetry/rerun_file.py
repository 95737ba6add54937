"""A kept session as a recording of Rerun's viewer (https://rerun.io; the extra ``rerun``).

Pictures with what the networks found in them, each result from when it came; the latency of each
inference; decisions and inputs as lines of text.
"""

from __future__ import annotations

import importlib
import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.capture import mcap_messages as messages
from heimdall.capture.mcap_reader import Message, as_json, read_messages
from heimdall.errors import ConfigError
from heimdall.system.extras import line
from heimdall.system.paths import replace_file

log = logging.getLogger(__name__)

_NAME = "heimdall"
_MEDIA = {"jpeg": "image/jpeg", "jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
_NOTED = ("Move", "Drop", "Finish", "DnnMoved")  # of decisions; the others come hundreds a second
_POINTS = {"Hand": "points", "Body": "joints", "TextRegion": "corners"}
_DEEP = 8  # lists within lists: no result is nested further


def export_rerun(session: Path, output: Path) -> dict[str, Any]:
    """Write ``session`` as the .rrd file ``output``; returns how many messages of which topic it
    has. Raises ConfigError where rerun-sdk is missing, the session cannot be read or has none, or
    the file cannot be written."""
    try:
        rerun: Any = importlib.import_module("rerun")
    except ImportError as error:
        raise ConfigError(f"Rerun's package is not installed: {line('rerun')}") from error
    recording = rerun.RecordingStream(_NAME)
    stream = recording.binary_stream()
    exporter = _Exporter(rerun, recording)
    counted: Counter[str] = Counter()
    for message in read_messages(session):
        exporter.add(message)
        counted[message.topic] += 1
    if not counted:
        raise ConfigError(f"{session} holds no message: there is nothing to export")
    try:
        replace_file(output, stream.read() or b"")
    except OSError as error:
        raise ConfigError(f"cannot write {output}: {error.strerror or error}") from error
    return {"schema": 1, "output": str(output), "messages": dict(sorted(counted.items()))}


class _Exporter:
    """Logs messages to a stream of Rerun."""

    def __init__(self, rerun: Any, recording: Any) -> None:
        self._rerun, self._recording = rerun, recording

    def add(self, message: Message) -> None:
        """Log one, at its time."""
        self._recording.set_time("time", timestamp=np.datetime64(message.at_ns, "ns"))
        if message.is_image:
            self._picture(messages.read_image(message.data, message.encoding))
        elif message.is_camera:
            self._camera(message)
        elif message.topic == messages.RESULTS:
            self._result(as_json(message))
        elif message.topic == messages.DECISIONS:
            self._decisions(as_json(message))
        elif message.topic == messages.INPUTS:
            self._recording.log("inputs", self._rerun.TextLog(_said(as_json(message))))

    def _camera(self, message: Message) -> None:
        try:
            camera = messages.read_camera(message.data, message.encoding)
        except ConfigError as error:
            log.warning("%s is left out: %s", message.topic, error)
            return
        pinhole = self._rerun.Pinhole(image_from_camera=camera.matrix, resolution=camera.size)
        self._recording.log("camera", pinhole)

    def _picture(self, picture: messages.Compressed) -> None:
        media = _MEDIA.get(picture.format.lower(), "image/jpeg")
        image = self._rerun.EncodedImage(contents=picture.data, media_type=media)
        self._recording.log("camera/image", image)

    def _result(self, result: Mapping[str, Any]) -> None:
        """Its boxes and points over the picture; a mask, or a picture, beside it."""
        rerun, log = self._rerun, self._recording.log
        path = f"camera/image/{result.get('dnn', 'result')}"
        found = list(_values(result.get("value")))
        boxes = [each for each in found if each["type"] == "Detection"]
        if boxes or not found:
            shown = rerun.Boxes2D(
                array=[each["box"] for each in boxes],
                array_format=rerun.Box2DFormat.XYXY,
                labels=[f"{each['label']} {each['score']:.2f}" for each in boxes],
            )
            log(path, shown if boxes else rerun.Clear(recursive=True))
        points = [_array(each[_POINTS[each["type"]]]) for each in found if each["type"] in _POINTS]
        if points:
            log(f"{path}/points", rerun.Points2D(np.concatenate([each[:, :2] for each in points])))
        for each in found:
            values = each.get("values") if each["type"] == "Mask" else each.get("image")
            if values is not None:
                array = _array(values)
                pixels = array if array.dtype == np.uint8 else (255 * array).astype(np.uint8)
                log(f"results/{result.get('dnn')}", rerun.Image(pixels))

    def _decisions(self, data: Mapping[str, Any]) -> None:
        for record in data.get("records", ()):
            for action in record.get("actions", ()):
                if action.get("type") in _NOTED:
                    self._recording.log("decisions", self._rerun.TextLog(_said(action)))
                if action.get("type") == "Finish":
                    latency = self._rerun.Scalars(action["latency_ns"] / 1e6)
                    self._recording.log(f"latency_ms/{action['dnn']}", latency)


def _values(value: Any, deep: int = 0) -> Iterator[Mapping[str, Any]]:
    """The values with a type in a result, which may be one, or nested lists of them."""
    if isinstance(value, Mapping) and "type" in value:
        yield value
    elif deep < _DEEP and isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _values(each, deep + 1)


def _array(value: Any) -> np.ndarray:
    """An array that ``kept.plain`` has written."""
    if isinstance(value, list):
        return np.asarray(value, np.float64)
    return messages.read_array(value)


def _said(data: Mapping[str, Any]) -> str:
    """A value with a type as one line."""
    rest = (f"{name}={_short(each)}" for name, each in data.items() if name != "type")
    return f"{data.get('type', '')} {' '.join(rest)}".strip()


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else str(value)
