"""Options as people write them, and what follows from them."""

from __future__ import annotations

import pytest

from heimdall.app.options import RunOptions, parse_serve
from heimdall.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", ("127.0.0.1", 8080)),
        ("0", ("127.0.0.1", 0)),
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        ("localhost:65535", ("localhost", 65535)),
        ("[::1]:80", ("::1", 80)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
        (" board.lan:8080 ", ("board.lan", 8080)),
    ],
)
def test_an_address_to_serve_at_is_read(text, address):
    assert parse_serve(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "x", ":8080", "65536", "-1", "1:2:3", "::1:80", "[::1]", "a b:80", "http://x:80", "8080/"],
)
def test_another_notation_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match=r"0\.0\.0\.0:8080"):
        parse_serve(text)


@pytest.mark.parametrize("address", [("", 80), ("127.0.0.1", 65536), ("127.0.0.1", -1)])
def test_an_address_that_cannot_be_is_refused(address):
    with pytest.raises(ConfigError, match="--serve"):
        RunOptions(serve=address)


def test_who_serves_has_no_window_and_a_person_at_the_controls():
    window, headless = RunOptions(), RunOptions(headless=True)
    served = RunOptions(headless=True, serve=("127.0.0.1", 0))
    assert (window.windowless, window.scripted) == (False, False)
    assert (headless.windowless, headless.scripted) == (True, True)
    assert (served.windowless, served.scripted) == (True, False)
    assert RunOptions(serve=("127.0.0.1", 0)).windowless
