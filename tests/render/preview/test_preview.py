"""The preview as a run uses it: frames of a real surface in, input out, nothing left behind."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import socket
import threading
import time
from urllib.parse import urlsplit

import aiohttp
import cv2
import numpy as np
import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.render.events import Key
from heimdall.render.preview import Preview

PLACE = ("127.0.0.1", 0)
WAIT_S = 60.0
ESCAPE = {"type": "key", "key": "Escape", "code": "Escape", "down": True, "mods": []}


@pytest.fixture
def preview():
    opened = Preview(PLACE, "Test", {})
    yield opened
    opened.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("preview")]


class Untouchable:
    """A surface that must not be asked for anything."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} of a surface without viewers")


def watching(preview, body):
    """Runs ``body(socket)`` as a viewer, once it has been greeted."""

    async def run():
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(f"{preview.url}socket") as socket,
        ):
            assert json.loads((await socket.receive(WAIT_S)).data)["type"] == "hello"
            return await asyncio.wait_for(body(socket), WAIT_S)

    return asyncio.run(run())


def test_frames_of_the_surface_arrive_upright_and_the_newest_next(preview, headless):
    headless.framebuffer.clear(0, 0, 1)
    headless.framebuffer.clear(1, 0, 0, viewport=(0, 180, 640, 180))  # GL's upper half

    async def body(socket):
        pictures: list[tuple[int, np.ndarray]] = []
        while len(pictures) < 3:
            preview.frame(headless)
            try:
                message = await socket.receive(0.02)
            except TimeoutError:
                continue
            number = int.from_bytes(message.data[:4], "big")
            jpeg = np.frombuffer(message.data[6:], np.uint8)
            pictures.append((number, cv2.imdecode(jpeg, cv2.IMREAD_COLOR)))
            await socket.send_json({"type": "shown", "number": number, "took": 1})
        return pictures

    pictures = watching(preview, body)
    assert [number for number, _ in pictures] == [1, 2, 3]
    for _, shown in pictures:
        assert shown.shape == (360, 640, 3)
        assert shown[:170, :, 2].min() > 200  # red above, as OpenCV has colours
        assert shown[190:, :, 0].min() > 200
    assert preview.errors == []


def test_who_is_turned_away_is_counted_and_told(preview):
    place = urlsplit(preview.url)
    silent = [socket.create_connection((place.hostname, place.port)) for _ in range(33)]
    end = time.monotonic() + WAIT_S
    while not preview.errors:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert preview.errors == [
        "preview: connections turned away: 1 that were silent gave way to new ones"
    ]
    for each in silent:
        each.close()


def test_a_frame_without_viewers_costs_nothing(preview):
    preview.frame(Untouchable())


def test_input_waits_to_be_taken(preview):
    async def body(socket):
        await socket.send_json(ESCAPE)
        while not (events := preview.poll()):
            await asyncio.sleep(0.005)
        assert events == [Key("escape", True)]
        assert preview.poll() == []

    watching(preview, body)


def test_progress_is_passed_on_and_shown(preview):
    heard = []
    progress = preview.progress(lambda *said: heard.append(said))

    async def body(socket):
        progress("loading", 1, 4)
        told = json.loads((await socket.receive(WAIT_S)).data)
        assert told == {"type": "progress", "what": "loading", "share": 0.25}

    watching(preview, body)
    assert heard == [("loading", 1, 4)]


def test_escape_while_loading_ends_the_program(preview):
    progress = preview.progress(lambda *said: None)

    async def body(socket):
        await socket.send_json(ESCAPE)
        while True:
            try:
                progress("loading", 1, 4)
            except KeyboardInterrupt:
                return True
            await asyncio.sleep(0.005)

    assert watching(preview, body)


def test_the_address_is_told_and_an_open_one_warned_of(caplog):
    with caplog.at_level(logging.INFO, "heimdall.render.preview"):
        closed = Preview(PLACE, "Test", {})
        closed.close()
        assert closed.url in caplog.text
        assert "127.0.0.1" in closed.url
        assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
        opened = Preview(("0.0.0.0", 0), "Test", {})
        opened.close()
    assert opened.url in caplog.text
    assert "other machines can reach the preview" in caplog.text


def test_a_port_in_use_is_refused_and_leaves_nothing_behind(preview):
    port = int(preview.url.split(":")[2].split("/")[0])
    before = threading.active_count()
    with pytest.raises(DeviceError, match=f"port {port} is in use"):
        Preview(("127.0.0.1", port), "Test", {})
    assert threading.active_count() == before


def test_without_aiohttp_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs aiohttp: .* -m pip install 'heimdall-ar.serve.'"):
        Preview(PLACE, "Test", {})


def test_aiohttp_is_loaded_by_those_who_serve_only(run_python):
    assert (
        run_python(
            "import sys, json, heimdall.render.preview; print(json.dumps('aiohttp' in sys.modules))"
        )
        is False
    )


def test_closing_twice_is_allowed_and_frames_after_it_are_nothing(headless):
    preview = Preview(PLACE, "Test", {})
    preview.close()
    preview.close()
    preview.frame(headless)
    assert preview.poll() == []
