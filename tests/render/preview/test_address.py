"""Where the preview listens, and whom it believes to be its own page."""

from __future__ import annotations

import socket

import pytest

from heimdall.errors import DeviceError
from heimdall.render.preview.address import (
    is_loopback,
    is_own_host,
    is_same_origin,
    listen,
    origin,
)


def test_a_port_in_use_is_named_with_a_way_out():
    with listen(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(DeviceError, match=f"port {port} is in use; choose another"):
            listen(("127.0.0.1", port))


def test_the_port_is_free_again_afterwards():
    with listen(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
    listen(("127.0.0.1", port)).close()


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "x" * 300])
def test_an_address_of_another_machine_is_refused(host):
    with pytest.raises(DeviceError, match=r"--serve"):
        listen((host, 0))


def test_a_port_that_is_not_permitted_is_named(monkeypatch):
    def refuse(self, place):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(DeviceError, match="port 80 is not permitted; choose one above 1023"):
        listen(("127.0.0.1", 80))


def test_only_the_loopback_stays_within_the_machine():
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.5", "board.lan", "")))


def test_the_address_can_be_typed_elsewhere():
    assert origin(("127.0.0.1", 8080)) == "http://127.0.0.1:8080"
    assert origin(("::1", 8080)) == "http://[::1]:8080"
    assert "0.0.0.0" not in origin(("0.0.0.0", 8080))


@pytest.mark.parametrize(
    ("header", "bound", "own"),
    [
        ("127.0.0.1:8080", "127.0.0.1", True),
        ("localhost:9000", "127.0.0.1", True),  # forwarded by ssh
        ("[::1]:8080", "::1", True),
        ("LOCALHOST", "127.0.0.1", True),
        ("evil.example:8080", "127.0.0.1", False),
        ("127.0.0.1.evil.example", "127.0.0.1", False),
        ("10.0.0.5:8080", "127.0.0.1", False),
        ("10.0.0.5:8080", "0.0.0.0", True),
        ("evil.example", "0.0.0.0", False),
        (socket.gethostname(), "0.0.0.0", True),
        ("board.lan:8080", "board.lan", True),
        ("", "0.0.0.0", False),
        ("[", "0.0.0.0", False),
    ],
)
def test_only_names_of_this_machine_are_answered(header, bound, own):
    assert is_own_host(header, bound) is own


@pytest.mark.parametrize(
    ("origin", "same"),
    [
        (None, True),
        ("http://localhost:8080", True),
        ("http://LOCALHOST:8080", True),
        ("http://localhost:8081", False),
        ("http://evil.example", False),
        ("null", False),
        ("http://[", False),
    ],
)
def test_only_the_own_page_connects(origin, same):
    assert is_same_origin(origin, "localhost:8080") is same


def test_no_host_has_no_origin():
    assert not is_same_origin("null", "")
