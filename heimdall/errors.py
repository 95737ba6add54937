"""Every error Heimdall raises on purpose: each says what was wrong, where, and what to do."""

from __future__ import annotations


class HeimdallError(Exception):
    """Base of every deliberate error; the command line prints it and exits with status 2."""


class AppError(HeimdallError):
    """The user's app file, class or callback is at fault."""


class ModelError(HeimdallError):
    """An ONNX file cannot be read, is invalid, or does not fit its declaration."""


class ConfigError(HeimdallError):
    """A profile, scenario, flag or declared value is wrong."""


class DeviceError(HeimdallError):
    """OpenCL, OpenGL, a camera or another device is missing or failed."""


def unknown(kind: str, name: str, valid: object) -> str:
    """The sentence for an unknown name: what it was, and which names are valid."""
    names = ", ".join(sorted(str(choice) for choice in valid))  # type: ignore[attr-defined]
    return f"unknown {kind} {name!r}; choose one of: {names}"
