"""Which versions of GL are asked for, in which order, and how moderngl gets at one of them.

Desktop OpenGL 3.3 first, then OpenGL ES 3.0: GPUs of boards (Raspberry Pi, Mali) have the second
only. ``HEIMDALL_GL=gl`` or ``es`` asks for one of the two and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import moderngl

from heimdall.errors import ConfigError, DeviceError, unknown

_VARIABLE = "HEIMDALL_GL"
_NEEDS_GL = (
    "{versions} is not available here; on Debian or Ubuntu install what is missing with "
    "`sudo apt-get install libegl1 libgl1-mesa-dri libgl1 libgles2`. Refused were:"
)


@dataclass(frozen=True)
class Version:
    """A kind of GL, and the oldest version of it that will do."""

    word: str  # in HEIMDALL_GL
    name: str
    major: int
    minor: int

    @property
    def es(self) -> bool:
        """OpenGL ES: other shaders, fewer functions."""
        return self.word == "es"

    @property
    def code(self) -> int:
        """The version as moderngl counts: 330 for 3.3."""
        return 100 * self.major + 10 * self.minor


DESKTOP = Version("gl", "OpenGL 3.3", 3, 3)
EMBEDDED = Version("es", "OpenGL ES 3.0", 3, 0)
VERSIONS = (DESKTOP, EMBEDDED)


def wanted() -> tuple[Version, ...]:
    """The versions to try, in order. Raises ConfigError for an unknown word in HEIMDALL_GL."""
    word = os.environ.get(_VARIABLE, "")
    if not word:
        return VERSIONS
    chosen = tuple(version for version in VERSIONS if version.word == word)
    if not chosen:
        raise ConfigError(unknown(_VARIABLE, word, [version.word for version in VERSIONS]))
    return chosen


def is_es(ctx: moderngl.Context) -> bool:
    """True if a context, whatever made it, is one of OpenGL ES."""
    return bool(ctx.info["GL_VERSION"].startswith("OpenGL ES"))


def none_left(refused: Sequence[str]) -> DeviceError:
    """Nothing that was tried gave a context; ``refused``: what it was, and why."""
    only = os.environ.get(_VARIABLE)
    asked = [f"{_VARIABLE}={only} allows no other"] if only else []
    needs = _NEEDS_GL.format(versions=" or ".join(version.name for version in wanted()))
    return DeviceError("\n  - ".join([needs, *(refused or ["nothing to try"]), *asked]))
