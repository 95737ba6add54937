"""The app's own errors are reported and contained."""

from __future__ import annotations

import pytest

from heimdall.runtime.loop.callbacks import FAILURES_UNTIL_DISABLED, Callbacks


class Fragile:
    def __init__(self):
        self.calls = 0
        self.broken = True

    def draw(self, value):
        self.calls += 1
        if self.broken:
            raise ValueError("no couch")
        return value


def test_an_error_is_named_and_the_call_returns_nothing():
    callbacks = Callbacks()
    assert callbacks.call(Fragile().draw, 1) is None
    assert callbacks.message == "Fragile.draw raised ValueError: no couch"
    assert callbacks.errors == [callbacks.message]


def test_a_callback_that_fails_again_and_again_is_disabled_and_says_so(caplog):
    callbacks, app = Callbacks(), Fragile()
    for _ in range(FAILURES_UNTIL_DISABLED + 3):
        callbacks.call(app.draw, 1)
    assert app.calls == FAILURES_UNTIL_DISABLED
    assert "disabled" in callbacks.message
    times = f"({FAILURES_UNTIL_DISABLED} times)"
    assert callbacks.errors == [
        f"Fragile.draw raised ValueError: no couch {times}",
        callbacks.message,
    ]
    assert caplog.text.count("Traceback") == 1


def test_success_in_between_starts_the_count_anew():
    callbacks, app = Callbacks(), Fragile()
    for _ in range(3):
        for _ in range(FAILURES_UNTIL_DISABLED - 1):
            callbacks.call(app.draw, 1)
        app.broken = False
        assert callbacks.call(app.draw, 7) == 7
        app.broken = True
    assert app.calls == 3 * FAILURES_UNTIL_DISABLED


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, MemoryError])
def test_nothing_that_an_app_raises_ends_the_run(error):
    def on_result():
        raise error("out")

    callbacks = Callbacks()
    assert callbacks.call(on_result, name="on_result") is None
    assert callbacks.errors == [f"on_result raised {error.__name__}: out"]


def test_the_user_may_interrupt_a_callback():
    def draw():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Callbacks().call(draw)


def test_a_callback_that_holds_the_frames_is_named():
    now_ns = [0]

    def draw(took_ns):
        now_ns[0] += took_ns

    callbacks = Callbacks(lambda: now_ns[0], frame_ns=33_000_000)
    callbacks.call(draw, 3_000_000_000, name="Mine.draw")
    assert callbacks.errors == ["Mine.draw took 3.0 s: no frame was drawn meanwhile"]
    for _ in range(20):
        for took_ns in (40_000_000, 40_000_000, 1_000_000):  # now and then is no fault
            callbacks.call(draw, took_ns, name="Mine.on_result")
    assert len(callbacks.errors) == 1
    for _ in range(20):
        callbacks.call(draw, 40_000_000, name="Mine.on_result")
    assert "Mine.on_result took 40 ms, 5 times in a row" in callbacks.errors[1]
    assert len(callbacks.errors) == 2
