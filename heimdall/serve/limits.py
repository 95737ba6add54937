"""How much a server lets its clients ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields

from heimdall.errors import ArgumentError


@dataclass(frozen=True)
class Limits:
    """``request_bytes``: of one request, unpacked. ``json_bytes``: of what of it is JSON, for
    reading that stops every thread of the process: 256 KiB for 3 ms at most. ``clients``:
    connections by REST, and calls at once by gRPC. ``waiting``: requests that have not been
    answered, of all clients; a further one is refused, and the client may try again. ``running``:
    those of them that the coordinator knows of; the others wait in the order of their priority.
    ``header_s``: how long a client may take over the head of a request, ``body_s``: over one
    request, ``idle_s``: until the next one. ``regions``: of shared memory, of one user's programs;
    ``region_bytes``: of one of them.

    Raises ArgumentError for a limit that lets nothing in.
    """

    request_bytes: int = 64 << 20
    json_bytes: int = 256 << 10
    clients: int = 64
    waiting: int = 64
    running: int = 8
    header_s: float = 5.0
    body_s: float = 30.0
    idle_s: float = 300.0
    regions: int = 64
    region_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ArgumentError("must be above 0", argument=field.name, value=value)
