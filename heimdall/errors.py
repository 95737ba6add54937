"""Every error Heimdall raises on purpose: each says what was wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_NEAR = 0.75  # of 1: so alike a name must be to be suggested


class HeimdallError(Exception):
    """Base of every deliberate error; the command line prints it and exits with status 2."""


class AppError(HeimdallError):
    """The user's app file, class or callback is at fault."""


class ModelError(HeimdallError):
    """An ONNX file cannot be read, is invalid, or does not fit its declaration."""


class ConfigError(HeimdallError):
    """A profile, scenario, flag or declared value is wrong."""


class ArgumentError(ConfigError):
    """A value is outside the range of its argument: ``fps=0: must be above 0``.

    ``argument``, ``value`` and ``problem`` are kept apart, because the command line says
    ``--fps 0: ...`` instead.
    """

    def __init__(self, problem: str, *, argument: str = "", value: object = None) -> None:
        super().__init__(problem)
        self.argument, self.value, self.problem = argument, value, problem

    def __str__(self) -> str:
        if not self.argument:  # made from another one's words, to say where that happened
            return self.problem
        return f"{self.argument}={say_value(self.value)}: {self.problem}"


class DeviceError(HeimdallError):
    """OpenCL, OpenGL, a camera or another device is missing or failed."""


class RequestError(DeviceError):
    """The processors have no answer to a request: it was refused, dropped, or failed there."""


def say_value(value: object) -> str:
    """A value as it is typed: no quotes around a path, no zeros behind a whole number."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def unknown(kind: str, name: str, valid: Iterable[object]) -> str:
    """The sentence for an unknown name: what it was, the nearest one, and which are valid."""
    names = sorted(map(str, valid))
    near = nearest(name, names, _NEAR)
    meant = f" (did you mean {near!r}?)" if near else ""
    return f"unknown {kind} {name!r}{meant}; choose one of: {', '.join(names)}"


def nearest(name: str, valid: Sequence[str], alike: float = 0.6) -> str:
    """The valid name that is most like ``name``, at least so ``alike`` (of 1); empty: none is."""
    import difflib  # here: no run that goes well needs it

    return next(iter(difflib.get_close_matches(name, valid, 1, alike)), "")
