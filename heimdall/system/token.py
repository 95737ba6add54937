"""The secret that a server asks its clients for: read from a file or the environment, never typed
on a command line, where every user of the machine could see it."""

from __future__ import annotations

import hmac
import os
import re
from pathlib import Path

from heimdall.errors import ConfigError

VARIABLE = "HEIMDALL_TOKEN"
_SHAPE = re.compile(r"[A-Za-z0-9._~-]{16,256}")  # what may stand in an address and in a header


def read_token(file: Path | None = None) -> str | None:
    """The token in ``file``, or else in HEIMDALL_TOKEN; None: there is neither.

    Raises ConfigError for a file that cannot be read, and for what is too short or has signs that
    an address cannot hold."""
    if file is None:
        found = os.environ.get(VARIABLE, "")
        return checked(found, VARIABLE) if found else None
    try:
        return checked(file.read_text(encoding="utf-8").strip(), f"token file {file}")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"token file {file}: {error}") from error


def checked(token: str, where: str = "token") -> str:
    """The token, if it is one. Raises ConfigError that names ``where`` it stood, and not itself."""
    if not _SHAPE.fullmatch(token):
        raise ConfigError(
            f"{where}: a token is 16 to 256 letters, digits, '.', '_', '~' and '-'; this makes "
            "one: python -c 'import secrets; print(secrets.token_urlsafe(24))'"
        )
    return token


def is_same(given: str, token: str) -> bool:
    """Whether a client gave the token; how long that takes says nothing about it."""
    return hmac.compare_digest(given.encode(errors="replace"), token.encode())


def bearer(header: str | None) -> str:
    """What an Authorization header bears; "" where it is none of that kind."""
    kind, _, given = (header or "").strip().partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""
