"""Where a server listens, and which requests can have come from a page of its own."""

from __future__ import annotations

import errno
import ipaddress
import socket
import sys
from urllib.parse import urlsplit

from heimdall.errors import DeviceError

Address = tuple[str, int]  # host, port; port 0: any that is free


def listen(address: Address, flag: str = "--serve") -> socket.socket:
    """A socket that listens there. Raises DeviceError that says what to do when it cannot, by the
    ``flag`` that asked for it."""
    host, port = address
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise DeviceError(f"{flag} {host}: this machine knows no such address ({error})") from None
    found = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":  # there it would let two programs share the port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(place)
        found.listen(16)
    except OSError as error:
        found.close()
        raise DeviceError(_refusal(f"{flag} {host}:{port}", host, port, error)) from error
    return found


def is_loopback(host: str) -> bool:
    """True if only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def origin(address: Address, secure: bool = False) -> str:
    """``http://host:port``, or ``https`` if it is ``secure``, as another machine would type it, if
    it can reach ``address``."""
    host, port = address
    if host in ("0.0.0.0", "::"):
        host = _own_address()
    scheme = "https" if secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def own_names(host: str) -> list[str]:
    """What a client may call this machine when a server listens on ``host``."""
    named = socket.gethostname()
    found = {_own_address() if host in ("0.0.0.0", "::") else host}
    return sorted({*found, "localhost", "127.0.0.1", named, f"{named}.local"})


def is_own_host(header: str, bound: str) -> bool:
    """Whether a request's Host header names this machine, when the server listens on ``bound``.

    A foreign page can have its own name lead to this machine (DNS rebinding); it cannot
    do that with a number or with this machine's name. Any port: it may be forwarded by ssh.
    """
    try:
        host = urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        own = socket.gethostname().lower()
        return not is_loopback(bound) and host in (own, f"{own}.local", bound.lower())
    return number.is_loopback or not is_loopback(bound)


def is_same_origin(origin_header: str | None, host_header: str) -> bool:
    """Whether a page of this very server asks. Programs that are no browser name no origin."""
    if origin_header is None:
        return True
    try:
        return urlsplit(origin_header).netloc.lower() == host_header.lower() != ""
    except ValueError:
        return False


def _refusal(where: str, host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{where}: port {port} is in use; choose another one, or 0 for any that is free"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where}: port {port} is not permitted; choose one above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: {host} is no address of this machine; 0.0.0.0 stands for all it has"
    return f"{where}: cannot listen there ({error.strerror or error})"


def _own_address() -> str:
    """The address of this machine on its network; its name where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(("192.0.2.1", 9))  # a reserved address: nothing is sent
            return str(asked.getsockname()[0])
        except OSError:
            return socket.gethostname()
