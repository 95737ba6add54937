"""Packages that only some work needs: they come with an extra of Heimdall's."""

from __future__ import annotations

import importlib.util

from heimdall.errors import ConfigError


def need(package: str, extra: str, what: str) -> None:
    """Raise ConfigError, with the line to type, where ``package`` is not installed. ``what``
    needs it: a flag or a command. Asked before slow work begins."""
    if importlib.util.find_spec(package) is None:
        raise ConfigError(f"{what} needs {package}: pip install 'heimdall-ar[{extra}]'")
