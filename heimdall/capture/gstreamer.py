"""Pipelines of GStreamer: ``gst: v4l2src ! jpegdec``, or whatever else it can read.

By its Python bindings where they are installed, else by an OpenCV that was built with GStreamer
(pip's is not).
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np

from heimdall.capture.readers import CvReader, Reader, without_password
from heimdall.errors import DeviceError

PATIENCE_S = 8.0  # for which a pipeline may give nothing
_LOOK_S = 0.2  # between looks for an error
_INSTALL = (
    "on Debian `apt-get install python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-good`, "
    "and let the virtual environment see it (python3 -m venv --system-site-packages)"
)
_BGR = "video/x-raw,format=BGR"


def open_pipeline(rest: str, *, size: tuple[int, int] | None, fps: float | None) -> Reader:
    """The pictures of a pipeline in the syntax of gst-launch, which tells its size and rate itself.

    Where it has no appsink, it gets a conversion to BGR and one. A live pipeline is read as a
    camera; another, such as one that reads a file, is paced at its rate, and may begin again.
    Raises DeviceError where it does not give pictures, or GStreamer is missing.
    """
    pipeline = rest.strip()
    if not pipeline:
        raise DeviceError("gst: needs a pipeline, such as 'gst: v4l2src ! videoconvert'")
    if not re.search(r"\bappsink\b", pipeline):
        pipeline += f" ! videoconvert ! {_BGR} ! appsink"
    try:
        library = _library()
    except (ImportError, ValueError) as error:  # ValueError: the bindings lack one of them
        if cv2.CAP_GSTREAMER not in cv2.videoio_registry.getBackends():
            raise DeviceError(
                f"a gst: source needs GStreamer and its Python bindings ({error}): {_INSTALL}"
            ) from error
        name = f"GStreamer pipeline {without_password(pipeline)}"
        return CvReader(pipeline, name, cv2.CAP_GSTREAMER, [])
    return _Pipeline(library, pipeline)


def _library() -> Any:
    if sys.platform == "linux":
        # GStreamer brings libunwind, for all to see, and its _Unwind_Resume is not the compiler's:
        # C++ libraries that are loaded later (pyopencl) then abort at their first exception.
        with contextlib.suppress(OSError):
            ctypes.CDLL("libgcc_s.so.1", mode=ctypes.RTLD_GLOBAL)
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import Gst, GstApp  # noqa: F401  (gives appsink its methods)

    Gst.init(None)
    return Gst


class _Pipeline:
    """A pipeline that plays, and the appsink at its end."""

    def __init__(self, gst: Any, description: str) -> None:
        self._gst = gst
        self._name = f"GStreamer pipeline {without_password(description)}"
        try:
            self._pipeline = gst.parse_launch(description)
        except Exception as error:  # GLib.Error
            raise DeviceError(f"cannot open {self._name}: {_text(error)}") from error
        if not isinstance(self._pipeline, gst.Bin):  # a description of one element
            raise DeviceError(f"cannot open {self._name}: nothing feeds its appsink")
        sinks = [each for each in self._elements() if each.get_factory().get_name() == "appsink"]
        if len(sinks) != 1:
            raise DeviceError(f"cannot open {self._name}: it has {len(sinks)} appsinks, not one")
        self._sink = sinks[0]
        self._sink.set_property("caps", gst.Caps.from_string(_BGR))
        self._sink.set_property("sync", False)  # Heimdall paces it
        self._sink.set_property("max-buffers", 2)
        try:
            self.live = self._play()
            self.fps = 0.0 if self.live else self._rate()
        except DeviceError:
            self.close()
            raise

    def read(self) -> np.ndarray | None:
        sample = self._sample()
        return None if sample is None else _picture(self._gst, sample)

    def skip(self) -> bool:
        return self._sample() is not None

    def rewind(self) -> bool:
        self._pipeline.set_state(self._gst.State.NULL)
        self._play()
        return True

    def close(self) -> None:
        self._pipeline.set_state(self._gst.State.NULL)

    def _elements(self) -> Iterator[Any]:
        found = self._pipeline.iterate_recurse()
        while True:
            result, element = found.next()
            if result != self._gst.IteratorResult.OK:
                return
            yield element

    def _play(self) -> bool:
        """Start it. Returns True if it is live: its pictures do not wait for being fetched."""
        state, change = self._gst.State, self._gst.StateChangeReturn
        self._pipeline.set_state(state.PAUSED)
        result, *_ = self._pipeline.get_state(round(PATIENCE_S * self._gst.SECOND))
        if result not in (change.SUCCESS, change.NO_PREROLL):
            self._raise_error()
            raise DeviceError(f"{self._name} does not start within {PATIENCE_S:.0f} s")
        live = result == change.NO_PREROLL
        self._sink.set_property("drop", live)
        self._pipeline.set_state(state.PLAYING)
        return bool(live)

    def _rate(self) -> float:
        caps = self._sink.get_static_pad("sink").get_current_caps()
        known, numerator, denominator = caps.get_structure(0).get_fraction("framerate")
        return numerator / denominator if known and numerator else 30.0

    def _sample(self) -> Any:
        """The next sample; None at the end. Raises DeviceError for an error, or none in time."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            sample = self._sink.try_pull_sample(round(_LOOK_S * self._gst.SECOND))
            if sample is not None:
                return sample
            self._raise_error()
            if self._sink.is_eos():
                return None
        raise DeviceError(f"{self._name} gives no picture for {PATIENCE_S:.0f} s")

    def _raise_error(self) -> None:
        message = self._pipeline.get_bus().pop_filtered(self._gst.MessageType.ERROR)
        if message is None:
            return
        error, details = message.parse_error()
        missing = next((line for line in details.splitlines() if line.startswith("Missing ")), "")
        why = f" ({missing})" if missing else ""
        if "not-negotiated" in details:
            why = "; an appsink takes BGR only: put `videoconvert` in front of it"
        raise DeviceError(f"{self._name}: {message.src.get_name()}: {_text(error)}{why}")


def _picture(gst: Any, sample: Any) -> np.ndarray:
    """BGR uint8 (h, w, 3): rows of a sample begin at multiples of 4 bytes."""
    layout = sample.get_caps().get_structure(0)
    width, height = layout.get_value("width"), layout.get_value("height")
    stride = (3 * width + 3) // 4 * 4
    buffer = sample.get_buffer()
    mapped, memory = buffer.map(gst.MapFlags.READ)
    if not mapped:
        raise DeviceError("a picture of a GStreamer pipeline cannot be read")
    data = bytes(memory.data)  # a copy, which most versions of the bindings have made already
    buffer.unmap(memory)
    rows = np.frombuffer(data, np.uint8, stride * height).reshape(height, stride)
    return np.ascontiguousarray(rows[:, : 3 * width]).reshape(height, width, 3)


def _text(error: Any) -> str:
    return str(getattr(error, "message", error)).strip().rstrip(".")
