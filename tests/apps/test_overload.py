"""The scenario that asks for more than the GPU has: what it requests."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from heimdall.app import create, load_app


def test_a_restyle_is_requested_every_frame_while_the_overload_lasts():
    app = create(load_app(str(Path(__file__).with_name("overload.py"))))
    assert list(islice(app.demo_events(), 5)) == [1 / app.fps] * 5
    assert [dnn for dnn, _ in app._requests] == ["style"] * 5
