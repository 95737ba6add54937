"""Whose program is at the other end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from heimdall.serve.peers import Peer, of_call, of_transport

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system is asked on Linux")
CLIENT = """
import os, socket, sys
"".encode("idna")  # while its module can be read
if len(sys.argv) > 2:
    os.setuid(int(sys.argv[2]))
raw = socket.create_connection((sys.argv[3], int(sys.argv[1])))
print(flush=True)
sys.stdin.read(1)
"""


def uid_of(host: str, family: int, *user: str) -> tuple[int | None, int | None]:
    """What is said of a client while its connection is open, and after it has closed it."""
    with socket.create_server((host, 0), family=family) as listening:
        listening.settimeout(60)
        port = listening.getsockname()[1]
        user = user or (str(os.getuid()),)
        client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(port), *user, host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        accepted, place = listening.accept()
        with accepted:
            client.stdout.readline()
            peer = Peer(place[:2], (host, port))
            here = peer.uid
            client.communicate(b"x")
            return here, peer.uid


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)]
)
def test_the_system_says_whose_a_connection_is(host, family):
    try:
        assert uid_of(host, family) == (os.getuid(), None)
    except OSError as error:
        pytest.skip(f"this machine has no {host}: {error}")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_is_told_from_root():
    assert uid_of("127.0.0.1", socket.AF_INET, "12345") == (12345, None)


def test_a_connection_that_is_none_is_nobodys():
    assert Peer(("127.0.0.1", 1), ("127.0.0.1", 2)).uid is None
    assert Peer(("nonsense", 1), ("127.0.0.1", 2)).uid is None
    assert of_transport(None) is None


def test_calls_say_where_they_come_from():
    here = ("127.0.0.1", 8001)
    assert of_call("ipv4:127.0.0.1:4000", here) == Peer(("127.0.0.1", 4000), here)
    assert of_call("ipv6:%5B::1%5D:4000", ("localhost", 8001)) == Peer(("::1", 4000), ("::1", 8001))
    for other in ("", "unix:/a/b", "ipv4:127.0.0.1", "ipv4:127.0.0.1:x"):
        assert of_call(other, here) is None
