"""What a client is told that does not get what it asked for: a status by REST, a code by gRPC."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """Why: the status of HTTP, and the name of gRPC's code."""

    WRONG = 400, "INVALID_ARGUMENT"
    UNAUTHORIZED = 401, "UNAUTHENTICATED"
    FORBIDDEN = 403, "PERMISSION_DENIED"
    UNKNOWN = 404, "NOT_FOUND"
    SLOW = 408, "DEADLINE_EXCEEDED"
    EXISTS = 409, "ALREADY_EXISTS"
    TOO_LARGE = 413, "RESOURCE_EXHAUSTED"
    UNSUPPORTED = 501, "UNIMPLEMENTED"
    BUSY = 503, "UNAVAILABLE"
    FAILED = 500, "INTERNAL"

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def code(self) -> str:
        return self.value[1]


class RefusedError(Exception):
    """The request is answered with ``reason`` and a sentence that says what to do."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def wrong(text: str) -> RefusedError:
    """A request that cannot be understood or does not fit, which is the commonest."""
    return RefusedError(Reason.WRONG, text)
