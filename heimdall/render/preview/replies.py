"""What the server says to a page: JSON texts, and pictures: 6 bytes (frame number, latency) and a
JPEG. Nothing here opens a socket."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heimdall.render.panel import Status

UNKNOWN_LATENCY = 0
_INTERVALS = 60  # between frames, that a page is told: more than pass between two of its figures
_HEADER = struct.Struct(">IH")


def hello(title: str, keys: Mapping[str, str], phone: Mapping[str, Any] | None = None) -> str:
    """The first message to a page: what runs, and which keys do what in it. ``phone``: it is to
    be a phone's screen, and how; None: it is not."""
    return json.dumps({"type": "hello", "title": title, "keys": list(keys.items()), "phone": phone})


def answer(sdp: str) -> str:
    """To an offer."""
    return json.dumps({"type": "answer", "sdp": sdp})


def role(drives: bool, why: str = "", ice: Sequence[Mapping[str, str]] = ()) -> str:
    """Whether the page drives; ``why`` it does not, though it would. ``ice``: relays, with which it
    is to offer again."""
    more = {"ice": list(ice)} if ice else {}
    return json.dumps({"type": "role", "drives": drives, "why": why, **more})


def clock(sent_ms: float, now_ms: float) -> str:
    """The server's time, to a page that asked at ``sent_ms`` of its own."""
    return json.dumps({"type": "clock", "sent": sent_ms, "now": now_ms})


def figures(latency_ms: float | None) -> str:
    """From the camera to the screen of the page."""
    rounded = None if latency_ms is None else round(latency_ms, 1)
    return json.dumps({"type": "figures", "latency": rounded})


def drawn(rtp: int, captured_ms: float) -> str:
    """The frame of this RTP time was drawn for the picture that the camera took then, by our
    clock."""
    return json.dumps({"type": "drawn", "rtp": rtp, "captured": round(captured_ms, 3)})


def status(of: Status) -> str:
    """How a run fares, for the page's charts: times in ms, rates a second."""
    dnns = [
        {
            "name": each.name,
            "latency": _short(each.latency_ms),
            "allowed": _short(each.constraint_ms),
            "processor": each.processor,
            "rate": _short(each.rate_hz),
            "misses": each.misses,
        }
        for each in of.dnns
    ]
    said = {
        "type": "status",
        "fps": _short(of.fps),
        "target": of.fps_target,
        "intervals": [_short(each) for each in of.frame_ms[-_INTERVALS:]],
        "late": of.late_frames,
        "age": _short(of.picture_age_ms),
        "gaps": _short(of.gap_utilization, 3),
        "scheduler": of.scheduler,
        "device": of.device,
        "dnns": dnns,
        "problem": of.message,
    }
    return json.dumps(said)


def _short(number: float | None, digits: int = 1) -> float | None:
    return round(number, digits) if number is not None and math.isfinite(number) else None


def progress(what: str, share: float) -> str:
    """How far loading is; ``share`` from 0 to 1."""
    return json.dumps({"type": "progress", "what": what, "share": round(share, 4)})


def picture(number: int, latency_s: float | None, jpeg: bytes) -> bytes:
    """A picture for the page. ``latency_s`` is how old an earlier one was when it was shown."""
    latency_ms = UNKNOWN_LATENCY if latency_s is None else round(1000 * latency_s)
    return _HEADER.pack(number % 2**32, max(0, min(latency_ms, 0xFFFF))) + jpeg
