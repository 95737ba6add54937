"""Messages of the page: each becomes what it says, or is refused; no other outcome."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.render.preview import protocol, replies
from heimdall.render.preview.protocol import (
    Blurred,
    MessageError,
    Pointed,
    Pressed,
    Scrolled,
    Shown,
    Watching,
    key_name,
    read,
)

KEY = {"type": "key", "key": "s", "code": "KeyS", "down": True, "mods": []}
POINTER = {"type": "pointer", "x": 0.25, "y": 0.5, "buttons": 0}


def test_each_kind_of_message_is_read():
    def said(**fields):
        return read(json.dumps(fields))

    assert said(**KEY) == Pressed("s", "KeyS", True, frozenset())
    assert said(**POINTER) == Pointed(0.25, 0.5, 0)
    assert said(type="scroll", dx=0, dy=-1.5) == Scrolled(0, -1.5)
    assert said(type="blur") == Blurred()
    assert said(type="watch", on=False) == Watching(False)
    assert said(type="shown", number=7, took=12) == Shown(7, 12)


@pytest.mark.parametrize(
    ("key", "code", "shifted", "name"),
    [
        ("a", "KeyA", False, "a"),
        ("A", "KeyA", True, "a"),
        ("ö", "Semicolon", False, "ö"),
        ("1", "Digit1", False, "1"),
        ("!", "Digit1", True, "1"),
        ("+", "Equal", True, "="),
        (" ", "Space", False, "space"),
        ("Escape", "Escape", False, "escape"),
        ("ArrowLeft", "ArrowLeft", False, "left"),
        ("PageUp", "PageUp", False, "page_up"),
        ("F12", "F12", False, "f12"),
        ("Shift", "ShiftLeft", True, ""),
        ("Dead", "Backquote", False, ""),
        ("AudioVolumeUp", "", False, ""),
        ("\x00", "", False, ""),
    ],
)
def test_keys_have_the_names_a_window_gives_them(key, code, shifted, name):
    assert key_name(key, code, shifted) == name


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0, set()),
        (1, {"left"}),
        (2, {"right"}),
        (4, {"middle"}),
        (3, {"left", "right"}),
        (8, set()),
    ],
)
def test_buttons_are_the_bits_of_a_browser(bits, names):
    message = read(json.dumps({**POINTER, "buttons": bits}))
    assert isinstance(message, Pointed)
    assert message.held == names


def test_a_pointer_outside_the_picture_is_at_its_edge():
    assert read(json.dumps({**POINTER, "x": -3, "y": 1.5})) == Pointed(0, 1, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "[" * 400,
        "{}",
        '{"type": "close"}',
        '{"type": ["key"]}',
        '{"type": "blur", "more": 1}',
        '{"type": "watch"}',
        '{"type": "watch", "on": 1}',
        '{"type": "shown", "number": -1, "took": 1}',
        '{"type": "shown", "number": 1.5, "took": 1}',
        '{"type": "shown", "number": true, "took": 1}',
        '{"type": "shown", "number": 1, "took": -1}',
        '{"type": "scroll", "dx": NaN, "dy": 0}',
        '{"type": "scroll", "dx": Infinity, "dy": 0}',
        '{"type": "scroll", "dx": 0, "dy": 1e9}',
        '{"type": "scroll", "dx": 0, "dy": 1' + "0" * 400 + "}",
        json.dumps({**POINTER, "x": None}),
        json.dumps({**POINTER, "x": "0.5"}),
        json.dumps({**POINTER, "buttons": 64}),
        json.dumps({**POINTER, "buttons": -1}),
        json.dumps({**KEY, "key": "x" * 33}),
        json.dumps({**KEY, "key": 5}),
        json.dumps({**KEY, "down": "yes"}),
        json.dumps({**KEY, "mods": "shift"}),
        json.dumps({**KEY, "mods": ["hyper"]}),
        json.dumps({**KEY, "mods": [[]]}),
    ],
)
def test_a_message_of_a_wrong_shape_is_refused(text):
    with pytest.raises(MessageError):
        read(text)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40)
VALUES = LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(st.text(max_size=8), LEAVES)
FIELDS = st.sampled_from(["key", "code", "down", "mods", "x", "y", "buttons", "dx", "dy", "on"])
KINDS = st.sampled_from(["key", "pointer", "scroll", "blur", "watch", "shown", "?"])


@given(
    st.text(max_size=200)
    | VALUES.map(json.dumps)
    | st.builds(
        lambda kind, rest: json.dumps({"type": kind, **rest}),
        KINDS,
        st.dictionaries(FIELDS, VALUES),
    )
)
def test_whatever_comes_is_a_message_or_refused(text):
    try:
        message = read(text)
    except MessageError:
        return
    if isinstance(message, Pointed):
        assert 0 <= message.x <= 1
        assert 0 <= message.y <= 1
    if isinstance(message, Scrolled):
        assert max(abs(message.dx), abs(message.dy)) <= protocol.MOST_NOTCHES


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 63))
def test_every_place_in_the_picture_is_read_as_it_was_sent(x, y, buttons):
    message = read(json.dumps({"type": "pointer", "x": x, "y": y, "buttons": buttons}))
    assert isinstance(message, Pointed)
    assert (message.x, message.y) == (x, y)


def test_a_picture_has_its_number_and_latency_before_it():
    assert replies.picture(258, 0.0334, b"jpeg") == b"\x00\x00\x01\x02\x00\x21jpeg"
    assert replies.picture(1, None, b"")[4:] == b"\x00\x00"
    assert replies.picture(1, 1e6, b"")[4:] == b"\xff\xff"


def test_what_the_server_says_is_json():
    assert json.loads(replies.hello("Shop", {"s": "sell"})) == {
        "type": "hello",
        "title": "Shop",
        "keys": [["s", "sell"]],
        "phone": None,
    }
    assert json.loads(replies.answer("v=0"))["sdp"] == "v=0"
    assert json.loads(replies.role(False, "why"))["why"] == "why"
    assert json.loads(replies.figures(61.23))["latency"] == 61.2
    assert json.loads(replies.figures(None))["latency"] is None
    assert json.loads(replies.progress("loading", 0.5))["share"] == 0.5
