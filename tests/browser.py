"""A real browser for tests: Chromium without a screen, driven by its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import cv2
import numpy as np

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WAIT_S = 60.0  # the machine may be busy: only a failure takes so long


def installed() -> str | None:
    """Where Chromium is, if it is there."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab. Every call returns when the browser has answered."""

    own_width = 0  # CSS pixels, before any phone's are emulated

    def __init__(self, loop: asyncio.AbstractEventLoop, socket: Any, session: str) -> None:
        self._loop, self._socket, self._session = loop, socket, session
        self._number = 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the protocol; its result."""
        return self._loop.run_until_complete(
            asyncio.wait_for(self._call(method, params, self._session), WAIT_S)
        )

    def value(self, script: str) -> Any:
        """What a JavaScript expression is worth; a promise is waited for."""
        said = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """The first value of the expression that is true."""
        end = time.monotonic() + WAIT_S
        while not (value := self.value(script)):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.02)
        return value

    def navigate(self, url: str) -> None:
        """Open another address; returns when it has loaded."""
        self.call("Page.navigate", url=url)
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            with suppress(AssertionError):  # between two pages there is none to ask
                if self.value("document.readyState === 'complete' && location.href") == url:
                    return
            time.sleep(0.02)
        raise AssertionError(f"{url} never loaded")

    def screenshot(self) -> np.ndarray:
        """What the tab shows, RGB uint8 (h, w, 3)."""
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """``kind``: mousePressed, mouseReleased, mouseMoved or mouseWheel, in CSS pixels."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, key: str, code: str, kind: str = "rawKeyDown", **more: Any) -> None:
        """A key goes down, or up with ``kind="keyUp"``."""
        self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code, **more)

    async def _call(self, method: str, params: dict[str, Any], session: str) -> dict[str, Any]:
        self._number += 1
        number, extra = self._number, {"sessionId": session} if session else {}
        await self._socket.send_json({"id": number, "method": method, "params": params, **extra})
        while True:
            said = json.loads((await self._socket.receive(WAIT_S)).data)
            if said.get("id") == number:
                assert "error" not in said, said
                return said["result"]


@contextmanager
def browser(
    folder: Path, size: tuple[int, int] = (1000, 700), flags: Sequence[str] = ()
) -> Iterator[Callable[..., Page]]:
    """Starts Chromium with a profile of its own in ``folder``, and ``flags`` besides; gives
    ``open(url) -> Page``."""
    process = subprocess.Popen(
        [
            installed() or "chromium",
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--disable-background-networking", "--disable-extensions"),
            *("--remote-debugging-port=0", f"--user-data-dir={folder}"),
            f"--window-size={size[0]},{size[1]}",
            *flags,
            "about:blank",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    loop = asyncio.new_event_loop()
    try:
        assert process.stderr is not None
        line = next((line for line in process.stderr if "DevTools listening on" in line), "")
        assert line, "Chromium did not start"
        client = loop.run_until_complete(_client())
        connecting = client.ws_connect(line.split()[-1], max_msg_size=0)
        socket = loop.run_until_complete(connecting)
        root = Page(loop, socket, "")

        def open_page(url: str) -> Page:
            target = root.call("Target.createTarget", url=url)["targetId"]
            session = root.call("Target.attachToTarget", targetId=target, flatten=True)
            page = Page(loop, socket, session["sessionId"])
            page._number = 1000 * (root._number + 1)  # answers to all pages come in one socket
            page.call("Page.enable")
            page.wait_for("location.href !== 'about:blank' && document.readyState === 'complete'")
            return page

        yield open_page
        loop.run_until_complete(socket.close())
        loop.run_until_complete(client.close())
    finally:
        process.terminate()
        process.wait()
        loop.close()


def as_phone(camera: Path) -> Sequence[str]:
    """Flags with which it plays a phone: ``camera``, a .mjpeg or .y4m file, is what its camera
    sees, and a certificate that nobody has signed is accepted."""
    return (
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-video-capture={camera}",
        "--ignore-certificate-errors",
        "--autoplay-policy=no-user-gesture-required",
    )


async def _client() -> aiohttp.ClientSession:
    return aiohttp.ClientSession()
