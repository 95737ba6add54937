"""What URLs give: files, which play at their rate and again, and streams, as they come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest

from heimdall.capture import open_source
from heimdall.capture.readers import open_stream
from heimdall.errors import DeviceError
from tests.media import GREEN, make, near, scene

PATIENCE_S = 20.0


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[BaseHTTPRequestHandler], None]], str]]:
    """The URL of what a function answers."""
    servers = []

    def start(answer: Callable[[BaseHTTPRequestHandler], None]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with suppress(OSError):
                    answer(self)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_file_behind_a_url_is_a_clip(tmp_path: Path, serve):
    data = make(tmp_path / "a.mp4", [scene()] * 5, movflags="faststart").read_bytes()

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "video/mp4")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    url = serve(answer) + "/a.mp4"
    reader = open_stream(url)
    assert (reader.live, reader.fps) == (False, 25)
    for _ in range(2):
        count = 0
        while (image := reader.read()) is not None:
            assert near(image[40, 40], GREEN)
            count += 1
        assert count == 5
        assert reader.rewind()
    reader.close()
    with closing(open_source(url)) as source:
        assert source.wait_first(PATIENCE_S) is not None
        assert source.describe() == f"stream {url}, 64x48 at 25 fps, looped"


def test_a_network_camera_is_live(serve):
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        request.end_headers()
        for level in range(0, 250, 5):
            data = cv2.imencode(".jpg", np.full((48, 64, 3), level, np.uint8))[1].tobytes()
            head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}\r\n\r\n"
            request.wfile.write(head.encode() + data + b"\r\n")

    reader = open_stream(serve(answer) + "/video")
    assert (reader.live, reader.fps) == (True, 0)
    assert not reader.skip()
    levels = []
    while (image := reader.read()) is not None:
        levels.append(round(float(image.mean()) / 5) * 5)
    assert levels[:3] == [0, 5, 10]
    assert len(levels) == 50
    reader.close()


def test_an_answer_that_is_no_video_is_named(serve):
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(404)
        request.end_headers()

    with pytest.raises(DeviceError, match="is it reachable"):
        open_stream(serve(answer) + "/none")
