"""What a viewer does, as a window would tell it: every press is released once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from heimdall.render.events import Key, Pointer, Scroll
from heimdall.render.preview.hands import Hands
from heimdall.render.preview.protocol import Blurred, Pointed, Pressed, Scrolled

SIZE = (641, 361)
LEFT = frozenset({"left"})
NONE = frozenset[Any]()
SHIFT = frozenset[Any]({"shift"})


def test_the_pointer_is_in_pixels_of_the_picture():
    hands = Hands()
    assert hands.take(Pointed(0.5, 1, 1), SIZE) == [Pointer(320, 360, LEFT)]
    assert hands.take(Pointed(0, 0, 0), SIZE) == [Pointer(0, 0)]


def test_without_a_picture_there_is_nothing_to_point_at():
    assert Hands().take(Pointed(0.5, 0.5, 1), None) == []


def test_a_key_goes_down_once_and_up_under_the_same_name():
    hands = Hands()
    assert hands.take(Pressed("&", "Digit7", True, SHIFT), SIZE) == [Key("7", True, SHIFT)]
    assert hands.take(Pressed("&", "Digit7", True, SHIFT), SIZE) == []
    assert hands.take(Pressed("/", "Digit7", False, NONE), SIZE) == [Key("7", False)]
    assert hands.take(Pressed("7", "Digit7", False, NONE), SIZE) == []


def test_a_key_without_a_name_is_nothing():
    assert Hands().take(Pressed("Shift", "ShiftLeft", True, SHIFT), SIZE) == []


def test_the_wheel_scrolls():
    assert Hands().take(Scrolled(0, -2), None) == [Scroll(0, -2)]
    assert Hands().take(Scrolled(0, 0), None) == []


def test_without_the_focus_everything_is_let_go():
    hands = Hands()
    hands.take(Pressed("a", "KeyA", True, NONE), SIZE)
    hands.take(Pointed(0, 0, 1), SIZE)
    assert hands.take(Blurred(), SIZE) == [Key("a", False), Pointer(0, 0)]
    assert hands.release() == []


CODES = st.sampled_from([f"K{number}" for number in range(40)])
MESSAGES = st.one_of(
    st.builds(Pressed, st.sampled_from(["a", "b", "Dead"]), CODES, st.booleans(), st.just(NONE)),
    st.builds(Pointed, st.floats(0, 1), st.floats(0, 1), st.sampled_from([1, 0])),
    st.just(Blurred()),
)


@given(st.lists(MESSAGES, max_size=120))
def test_nothing_stays_down(messages):
    hands = Hands()
    events = [event for message in messages for event in hands.take(message, SIZE)]
    events += hands.release()
    held: Counter[str] = Counter()
    for event in events:
        if isinstance(event, Key):
            held[event.name] += 1 if event.pressed else -1
            assert held[event.name] >= 0
    assert not +held
    pointers = [event for event in events if isinstance(event, Pointer)]
    assert not pointers or not pointers[-1].buttons
