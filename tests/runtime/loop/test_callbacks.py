"""The app's own errors are reported and contained."""

from __future__ import annotations

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
