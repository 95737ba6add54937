"""Somebody tells the shopping app what to do, headless: networks, sound and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from apps.content.orders import COLOURS
from apps.shopping import Shopping
from heimdall import Session
from heimdall.system import paths

pytestmark = pytest.mark.slow

CLIP = paths.ASSETS / "media" / "words.ogg"  # "next", "red", "bigger", then other words


def test_it_does_what_is_said(clip):
    app, heard = Shopping(), list[str]()

    def listen(dnn, value, frame):
        if dnn == "words":
            heard.extend(label.name for label in value)

    frames = [clip("room.mp4", number) for number in (0, 10, 20)]
    options: dict[str, Any] = {"device": "onnxruntime", "overlay": "off", "sound": str(CLIP)}
    with Session(app, size=(320, 240), on_result=listen, **options) as session:
        scale = app.room.scale
        for number in range(600):
            session.push(frames[number % len(frames)])
            session.step()
            if len(heard) >= 3:
                break
    assert heard == ["next", "red", "bigger"]
    assert (len(app.room.pieces), app.wanted) == (2, COLOURS.index("red"))
    assert app.room.scale == pytest.approx(1.1 * scale)


def test_without_sound_it_has_no_such_network():
    assert [dnn.name for dnn in Shopping.dnns] == ["detect", "segment", "hand", "style"]
    with Session(Shopping, device="onnxruntime", overlay="off", size=(320, 240)) as session:
        session.push(np.full((240, 320, 3), 128, np.uint8))
        assert [dnn.name for dnn in session.app.dnns] == [dnn.name for dnn in Shopping.dnns]
