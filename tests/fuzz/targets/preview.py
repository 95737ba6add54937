"""What pages send to the preview: its messages, and the frames of their socket."""

from __future__ import annotations

import base64
import os
import socket
import struct
import urllib.request
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import numpy as np

from heimdall.render.preview import protocol
from heimdall.render.preview.hands import Hands
from heimdall.render.preview.inbox import Inbox
from heimdall.render.preview.server import Server
from tests.fuzz.damage import in_bytes, in_json, pick
from tests.fuzz.target import FindingError, Target

SIZES = ((640, 480), (1, 1), None)
PATIENCE_S = 10.0
MESSAGES = (
    {"type": "key", "key": "a", "code": "KeyA", "down": True, "mods": ["shift"]},
    {"type": "pointer", "x": 0.25, "y": 0.75, "buttons": 5},
    {"type": "scroll", "dx": 0.0, "dy": -2.5},
    {"type": "blur"},
    {"type": "watch", "on": True},
    {"type": "shown", "number": 3, "took": 4.5},
)
_TEXT, _CLOSE = 1, 8


class Fuzzed(Target):
    """Each message by itself, and through the server's socket, which must go on serving."""

    suffix = ".json"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._inbox = Inbox()
        self._server = Server(("127.0.0.1", 0), "fuzz", {"a": "b"}, self._inbox)

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        message = pick(MESSAGES, random)
        kind = "text" if random.random() < 0.8 else "frame"
        raw = in_json(message, random)
        return kind, raw if kind == "text" else in_bytes(_frame(_TEXT, raw), random)

    def run(self, name: str, raw: bytes) -> str:
        said = "frame"
        if name == "text":
            said = self._read(raw)
            raw = _frame(_TEXT, raw)
        self.stage = "socket"
        closed = self._send(raw, whole=name == "text")
        if name == "text" and not closed:
            raise FindingError("the server went without a word")
        self._inbox.take()
        self.stage = "page"
        with urllib.request.urlopen(self._server.url, timeout=PATIENCE_S) as page:
            if page.status != 200:
                raise FindingError(f"after it the page's status is {page.status}")
        return f"{said}, closed with {closed}"

    def close(self) -> None:
        self._server.close()

    def _read(self, raw: bytes) -> str:
        self.stage = "read"
        text = raw.decode(errors="replace")
        try:
            message = protocol.read(text)
        except protocol.MessageError:
            return "refused"
        self.stage = "take"
        for size in SIZES:
            hands = Hands()
            events = [*hands.take(message, size), *hands.release()]
            if len(events) > 4:
                raise FindingError(f"one message makes {len(events)} events")
        return "taken"

    def _send(self, raw: bytes, *, whole: bool) -> int:
        """The code that the server closes with, after these bytes and a close of our own; where
        they are no ``whole`` frame, they are the last that it gets."""
        url = urlsplit(self._server.url)
        assert url.hostname is not None
        with socket.create_connection((url.hostname, url.port), PATIENCE_S) as client:
            key = base64.b64encode(os.urandom(16)).decode()
            client.sendall(
                f"GET {url.path}socket HTTP/1.1\r\nHost: {url.netloc}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                f"Sec-WebSocket-Version: 13\r\nOrigin: http://{url.netloc}\r\n\r\n".encode()
            )
            heard = client.makefile("rb")
            status = heard.readline()
            if b" 101 " not in status:
                raise FindingError(f"no socket was opened: {status!r}")
            while heard.readline() != b"\r\n":
                pass
            try:
                client.sendall(raw + _frame(_CLOSE, struct.pack(">H", 1000)))
                if not whole:
                    client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has closed already, and said why
            return _closing(heard)


def _closing(heard: BinaryIO) -> int:
    """The code of the server's close frame; 0 where it goes without one, as it may once the other
    end has gone in the middle of a frame."""
    try:
        while len(head := heard.read(2)) == 2:
            length = head[1] & 127
            if length > 125:
                length = int.from_bytes(heard.read(2 if length == 126 else 8), "big")
            content = heard.read(length)
            if head[0] & 15 == _CLOSE:
                return struct.unpack(">H", content[:2])[0] if len(content) > 1 else 1005
    except TimeoutError as error:
        raise FindingError("the server neither answers nor closes the connection") from error
    except ConnectionResetError:
        return 0
    return 0


def _frame(kind: int, content: bytes) -> bytes:
    """A masked frame, as browsers send them."""
    head = bytes([0x80 | kind])
    if len(content) < 126:
        head += bytes([0x80 | len(content)])
    elif len(content) < 1 << 16:
        head += bytes([0x80 | 126]) + struct.pack(">H", len(content))
    else:
        head += bytes([0x80 | 127]) + struct.pack(">Q", len(content))
    mask = b"\x5a\xa5\x01\xfe"
    masked = bytes(each ^ mask[place % 4] for place, each in enumerate(content))
    return head + mask + masked
