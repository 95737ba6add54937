"""Pipelines of GStreamer as sources: played for real where its Python bindings are installed."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing

import cv2
import numpy as np
import pytest

from heimdall.capture import open_source
from heimdall.capture.gstreamer import open_pipeline
from heimdall.errors import DeviceError

PATIENCE_S = 20.0
SMALL = "video/x-raw,width=34,height=25,framerate=20/1"  # its rows do not fill words


def _why_not():
    try:
        import gi

        gi.require_version("Gst", "1.0")
        gi.require_version("GstApp", "1.0")
        from gi.repository import Gst

        Gst.init(None)
    except (ImportError, ValueError) as error:
        return f"no GStreamer for Python: {error}"
    needed = ("videotestsrc", "videoconvert", "appsink")
    missing = [name for name in needed if Gst.ElementFactory.find(name) is None]
    return f"GStreamer lacks {', '.join(missing)}" if missing else ""


WHY_NOT = _why_not()
real = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "GStreamer is here")


def opened(pipeline):
    return closing(open_pipeline(pipeline, size=None, fps=None))


def take(reader, count):
    for _ in range(count):
        assert reader.read() is not None


@real
def test_a_pipeline_gives_pictures_in_bgr():
    with opened(f"videotestsrc pattern=red num-buffers=3 ! {SMALL}") as reader:
        assert (reader.live, reader.fps) == (False, 20.0)
        image = reader.read()
        assert image.shape == (25, 34, 3)
        assert image.dtype == np.uint8
        np.testing.assert_array_equal(image, np.broadcast_to([0, 0, 255], image.shape))


@real
def test_it_ends_and_begins_again():
    with opened(f"videotestsrc num-buffers=3 ! {SMALL}") as reader:
        for _ in range(2):
            first = reader.read()
            assert first is not None
            assert reader.skip()
            assert reader.read() is not None
            assert reader.read() is None
            assert not reader.skip()
            assert reader.rewind()


@real
def test_a_live_pipeline_is_read_as_a_camera():
    with opened(f"videotestsrc is-live=true ! {SMALL}") as reader:
        assert (reader.live, reader.fps) == (True, 0.0)
        assert reader.read().shape == (25, 34, 3)


@real
def test_an_appsink_of_ones_own_is_used():
    tail = "videoconvert ! appsink name=mine drop=true"
    with opened(f"videotestsrc num-buffers=1 ! {SMALL} ! {tail}") as reader:
        assert reader.read().shape == (25, 34, 3)


@real
def test_as_a_source_it_is_paced_and_looped():
    spec = f"gst: videotestsrc num-buffers=2 ! {SMALL}"
    with closing(open_source(spec)) as source:
        assert source.wait_first(PATIENCE_S).image.shape == (25, 34, 3)
        assert "gst videotestsrc" in source.name
        assert "at 20 fps, looped" in source.describe()
        end = time.monotonic() + PATIENCE_S
        while source.latest().sequence < 4:
            assert source.error is None
            assert time.monotonic() < end
            time.sleep(0.005)


@real
@pytest.mark.parametrize(
    ("pipeline", "problem"),
    [
        ("videotestsrc ! nonsense", 'no element "nonsense"'),
        ("videotestsrc ! video/x-raw,format=I420 ! appsink", "put `videoconvert` in front"),
        ("audiotestsrc", "could not link"),
        ("filesrc location=/nowhere.mp4 ! decodebin", "filesrc.*not found"),
        ("videotestsrc ! tee name=t ! appsink t. ! appsink", "2 appsinks, not one"),
        ("appsink", "nothing feeds"),
    ],
)
def test_what_does_not_play_is_refused_with_its_reason(pipeline, problem):
    with pytest.raises(DeviceError, match=problem):
        open_pipeline(pipeline, size=None, fps=None)


@real
def test_an_element_that_fails_while_playing_is_named():
    failing = f"videotestsrc ! {SMALL} ! identity name=cable error-after=3"
    with opened(failing) as reader, pytest.raises(DeviceError, match="cable: Failed after"):
        take(reader, 10)


@real
def test_drivers_may_fail_beside_it_as_before():
    """GStreamer's libunwind must not catch the exceptions of C++ libraries that come later."""
    pytest.importorskip("pyopencl")
    code = (
        "from heimdall.capture.gstreamer import open_pipeline\n"
        "open_pipeline('videotestsrc', size=None, fps=None).close()\n"
        "import pyopencl\n"
        "context = pyopencl.Context(pyopencl.get_platforms()[0].get_devices())\n"
        "try: pyopencl.Buffer(context, 0, size=0)\n"
        "except pyopencl.Error: print('caught')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "caught\n", done.stderr


def test_nothing_is_no_pipeline():
    with pytest.raises(DeviceError, match="needs a pipeline"):
        open_pipeline(" ", size=None, fps=None)


def test_without_gstreamer_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gi", None)
    monkeypatch.setattr(cv2.videoio_registry, "getBackends", lambda: [cv2.CAP_FFMPEG])
    with pytest.raises(DeviceError, match=r"apt-get install python3-gi .*--system-site-packages"):
        open_source("gst: videotestsrc")


def test_without_its_bindings_an_opencv_that_has_gstreamer_reads_it(monkeypatch):
    asked: list = []

    class Capture:
        def __init__(self, *arguments):
            asked.extend(arguments)

        def isOpened(self):  # noqa: N802
            return True

        def read(self):
            return True, np.zeros((2, 3, 3), np.uint8)

        def release(self):
            pass

    monkeypatch.setitem(sys.modules, "gi", None)
    monkeypatch.setattr(cv2.videoio_registry, "getBackends", lambda: [cv2.CAP_GSTREAMER])
    monkeypatch.setattr(cv2, "VideoCapture", Capture)
    with opened("videotestsrc") as reader:
        assert reader.read().shape == (2, 3, 3)
        assert reader.live
    pipeline = "videotestsrc ! videoconvert ! video/x-raw,format=BGR ! appsink"
    assert asked == [pipeline, cv2.CAP_GSTREAMER, []]
