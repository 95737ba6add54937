"""How much a server lets its clients ask for."""

from __future__ import annotations

from dataclasses import dataclass, fields

from heimdall.errors import ArgumentError


@dataclass(frozen=True)
class Limits:
    """``request_bytes``: of one request, unpacked. ``clients``: connections by REST, and calls at
    once by gRPC. ``waiting``: requests that have not been answered, of all clients; a further one
    is refused, and the client may try again. ``running``: those of them that the coordinator knows
    of; the others wait in the order of their priority. ``body_s``: how long a client may take over
    one request. ``regions`` and ``region_bytes``: of shared memory.

    Raises ArgumentError for a limit that lets nothing in.
    """

    request_bytes: int = 64 << 20
    clients: int = 64
    waiting: int = 64
    running: int = 8
    body_s: float = 30.0
    regions: int = 64
    region_bytes: int = 1 << 30

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ArgumentError("must be above 0", argument=field.name, value=value)
