"""Compiles the programs in shaders/ and keeps one of each for a context.

Their one source is both GLSL 330 and GLSL ES 300: version and precision are put before it here,
and files that several shaders share in place of ``#include "NAME"``.
"""

from __future__ import annotations

import re
from pathlib import Path

import moderngl

from heimdall.errors import DeviceError
from heimdall.render.versions import is_es

SHADERS = Path(__file__).with_name("shaders")
_DESKTOP = "#version 330\n#line 1\n"
_EMBEDDED = "#version 300 es\nprecision highp float;\nprecision highp int;\n#line 1\n"
_VERTEX = dict.fromkeys(("mask", "occlude", "behind"), "background")  # the same full-picture quad


def glsl(ctx: moderngl.Context, source: str) -> str:
    """A shader without version, as this context compiles it. ES does not know ``noperspective``:
    there it is left out, which is the same wherever w is 1."""
    if is_es(ctx):
        return _EMBEDDED + source.replace("noperspective ", "")
    return _DESKTOP + source


class Programs:
    """``programs["bars"]`` is shaders/bars.vert with shaders/bars.frag, compiled once;
    ``programs["model+SKIN"]`` is compiled with SKIN defined."""

    def __init__(self, ctx: moderngl.Context):
        self._ctx = ctx
        self._compiled: dict[str, moderngl.Program] = {}

    def __getitem__(self, name: str) -> moderngl.Program:
        if name not in self._compiled:
            self._compiled[name] = self._compile(name)
        return self._compiled[name]

    def _compile(self, name: str) -> moderngl.Program:
        file, *words = name.split("+")
        defined = "".join(f"#define {word}\n" for word in words)
        vertex, fragment = (
            glsl(self._ctx, defined + _source(each))
            for each in (f"{_VERTEX.get(file, file)}.vert", f"{file}.frag")
        )
        try:
            return self._ctx.program(vertex_shader=vertex, fragment_shader=fragment)
        except moderngl.Error as error:
            raise DeviceError(f"the GL driver rejects shader {name!r}: {error}") from error


def _source(name: str) -> str:
    text = (SHADERS / name).read_text(encoding="utf-8")
    return re.sub(r'#include "(.+)"', lambda found: _source(found[1]), text)
