"""Input in its order; only moves of the pointer are left out, and never a press."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from heimdall.render.events import Key, Pointer
from heimdall.render.preview.inbox import ROOM, Inbox

LEFT = frozenset({"left"})
POINTERS = st.builds(Pointer, st.integers(0, 9), st.just(0), st.sampled_from([frozenset(), LEFT]))


def test_of_moves_in_a_row_the_last_is_kept():
    inbox = Inbox()
    inbox.put([Pointer(1, 0), Pointer(2, 0), Pointer(3, 0)])
    assert inbox.take() == [Pointer(3, 0)]
    assert inbox.take() == []


def test_a_press_keeps_its_place():
    inbox = Inbox()
    inbox.put([Pointer(1, 0), Pointer(1, 0, LEFT), Pointer(2, 0, LEFT), Pointer(3, 0, LEFT)])
    assert inbox.take() == [Pointer(1, 0), Pointer(1, 0, LEFT), Pointer(3, 0, LEFT)]


@given(st.lists(st.one_of(POINTERS, st.just(Key("a", True))), max_size=30), st.integers(0, 30))
def test_every_change_of_a_button_is_there_where_it_was(events, middle):
    inbox = Inbox()
    inbox.put(events[:middle])
    taken = inbox.take()
    inbox.put(events[middle:])
    taken += inbox.take()
    buttons: frozenset[str] = frozenset()
    changes = []
    for event in events:
        if not isinstance(event, Pointer) or event.buttons != buttons:
            changes.append(event)
        if isinstance(event, Pointer):
            buttons = event.buttons
    left = iter(taken)
    assert all(any(event is each for each in left) for event in changes)  # in this order
    assert taken[-1:] == events[-1:]


def test_it_has_an_end_but_not_for_what_lets_go():
    inbox = Inbox()
    assert inbox.put([Key("a", True)] * ROOM)
    assert not inbox.put([Key("b", True)])
    assert inbox.put([Key("a", False)], always=True)
    assert inbox.take() == [Key("a", True)] * ROOM + [Key("a", False)]
    assert inbox.put([Key("b", True)])
