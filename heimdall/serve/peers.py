"""Whose program is at the other end of a connection within this machine (Linux).

The system knows which user opened a socket, and says so by its socket diagnostics (netlink) to
whoever asks. It is asked anew each time: a port may be another program's by the next request.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from typing import Any, NamedTuple
from urllib.parse import unquote

_SOCK_DIAG = 4  # of netlink
_BY_FAMILY, _REQUEST = 20, 1
_ESTABLISHED = 1
_ANY = 0xFFFFFFFF
_HEAD = struct.Struct("=IHHII")  # length, kind, flags, number, sender
_STATE = struct.Struct("=BB")  # family, state
_OWNER = struct.Struct("=II")  # user, inode
_OWNER_AT = _HEAD.size + 4 + 48 + 12  # behind family to timer, the socket's ends, three counts
_WAIT_S = 1.0


class Peer(NamedTuple):
    """Both ends of a connection: the client's address and port, and the server's."""

    client: tuple[str, int]
    server: tuple[str, int]

    @property
    def client_key(self) -> tuple[str, int]:
        """Tells clients apart: other machines, and connections of this one."""
        host, port = self.client
        return (host, port) if ipaddress.ip_address(host).is_loopback else (host, 0)

    @property
    def uid(self) -> int | None:
        """The user whose program is the client; None where the system does not say, and where
        the program has closed the connection."""
        if sys.platform != "linux":
            return None
        try:
            return _owner(self)
        except (OSError, ValueError, struct.error):
            return None


def of_transport(transport: Any) -> Peer | None:
    """Of a connection by HTTP; None: it is closed."""
    ends = [transport and transport.get_extra_info(end) for end in ("peername", "sockname")]
    return Peer(ends[0][:2], ends[1][:2]) if all(ends) else None


def of_call(client: str, server: tuple[str, int]) -> Peer | None:
    """Of a call by gRPC, from what it says of its ``client``: ``ipv4:127.0.0.1:4000``. ``server``:
    where it was told to listen."""
    kind, _, rest = unquote(client).partition(":")
    host, _, port = rest.rpartition(":")
    if kind not in ("ipv4", "ipv6") or not port.isdecimal():
        return None
    own = "127.0.0.1" if kind == "ipv4" else "::1"  # of a server that listens by a name
    number = server[0] if _version(server[0]) == int(kind[-1]) else own
    return Peer((host.strip("[]"), int(port)), (number, server[1]))


def _version(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def _owner(peer: Peer) -> int | None:
    family = socket.AF_INET6 if ":" in peer.client[0] else socket.AF_INET
    hosts = [socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in peer]
    ports = struct.pack("!HH", peer.client[1], peer.server[1])
    asked = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, _ANY)
    asked += ports + b"".join(hosts) + struct.pack("=III", 0, _ANY, _ANY)
    head = _HEAD.pack(_HEAD.size + len(asked), _BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as system:
        system.settimeout(_WAIT_S)
        system.send(head + asked)
        told = system.recv(4096)
    if _HEAD.unpack_from(told)[1] != _BY_FAMILY:
        return None
    _, state = _STATE.unpack_from(told, _HEAD.size)
    uid, inode = _OWNER.unpack_from(told, _OWNER_AT)
    # One that its program has closed is nobody's, and is said to be user 0's.
    return int(uid) if state == _ESTABLISHED and inode else None
