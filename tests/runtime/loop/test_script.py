"""An app's script plays its user, step by step, on the runtime's clock."""

from __future__ import annotations

import pytest

from heimdall.app import App
from heimdall.runtime.loop.callbacks import Callbacks, Script

S = 1_000_000_000


def playing(*steps):
    """A script of (seconds to wait, note) and its notes, callbacks and player."""
    notes: list[object] = []

    class Mine(App):
        def demo_events(self):
            for wait_s, note in steps:
                notes.append(note)
                yield wait_s

    callbacks = Callbacks()
    return notes, callbacks, Script(Mine(), callbacks)


def test_each_step_waits_for_the_time_it_asked_for():
    notes, _, script = playing((2, "one"), (0.5, "two"), (1, "three"))
    script.play(10 * S)
    assert notes == ["one"]
    script.play(12 * S - 1)
    assert notes == ["one"]
    script.play(12 * S)
    assert notes == ["one", "two"]
    script.play(12 * S + S // 2)
    assert notes == ["one", "two", "three"]


def test_a_script_that_is_over_stays_over():
    notes, callbacks, script = playing((1, "one"))
    for second in range(0, 20_000, 10):
        script.play(second * S)
    assert notes == ["one"]
    assert callbacks.errors == []


def test_no_wait_is_a_step_at_every_call():
    notes, _, script = playing(*((0, number) for number in range(5)))
    for _ in range(3):
        script.play(7 * S)
    assert notes == [0, 1, 2]


def test_an_app_without_script_does_nothing():
    callbacks = Callbacks()
    Script(App(), callbacks).play(0)
    assert callbacks.errors == []


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf")])
def test_a_wait_that_is_no_time_is_the_apps_error_and_ends_it(wait):
    notes, callbacks, script = playing((wait, "one"), (1, "two"))
    script.play(0)
    script.play(S)
    (error,) = callbacks.errors
    assert error.startswith("Mine.")
    assert "seconds to wait" in error
    assert notes == ["one"]
