"""Cameras are asked what they are, without being started."""

from __future__ import annotations

import sys

import pytest

from heimdall.capture import cameras, v4l2
from heimdall.capture.formats import Format, Mode


def test_a_node_is_described_with_its_formats(tmp_path, monkeypatch):
    modes = (Mode((1280, 720), (10.0,)), Mode((640, 480), ()))
    found = v4l2.Camera("Web Cam", (Format("YUYV", False, modes),), by_controller=False)
    monkeypatch.setattr(v4l2, "query", lambda path: found)
    assert cameras.query_camera(tmp_path / "video2") == {
        "source": "2",
        "index": 2,
        "name": "Web Cam",
        "error": None,
        "note": None,
        "formats": [
            {
                "format": "YUYV",
                "compressed": False,
                "sizes": [
                    {"width": 1280, "height": 720, "fps": [10.0]},
                    {"width": 640, "height": 480, "fps": []},
                ],
            }
        ],
    }


@pytest.mark.skipif(sys.platform != "linux", reason="Video4Linux")
def test_a_camera_that_offers_no_format_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    silent = v4l2.Camera("Silent", (), by_controller=False)
    fine = v4l2.Camera("Web Cam", (Format("YUYV", False, ()),), by_controller=False)
    nodes = {tmp_path / "video0": silent, tmp_path / "video1": None, tmp_path / "video2": fine}
    monkeypatch.setattr(cameras, "_video_nodes", lambda: list(nodes))
    monkeypatch.setattr(v4l2, "query", nodes.get)
    first, second = cameras.list_cameras()
    assert "offers no format" in first["error"]
    assert (second["source"], second["error"]) == ("2", None)


@pytest.mark.skipif(sys.platform != "linux", reason="Video4Linux")
def test_a_node_that_is_no_camera_is_reported_with_its_error(tmp_path):
    (tmp_path / "video0").write_bytes(b"")
    camera = cameras.query_camera(tmp_path / "video0")
    assert camera is not None
    assert camera["error"]
    missing = cameras.query_camera(tmp_path / "video1")
    assert missing is not None
    assert "No such file" in missing["error"]


def test_a_probe_that_hangs_or_fails_is_given_up():
    import threading

    forever = threading.Event()
    assert cameras.within(0.01, forever.wait, "nothing") == "nothing"
    forever.set()
    assert cameras.within(5, lambda: 1 / 0, "nothing") == "nothing"
    assert cameras.within(5, lambda: "found", "nothing") == "found"
