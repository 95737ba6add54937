"""Compiles the GLSL 330 programs in shaders/ and keeps one of each for a context."""

from __future__ import annotations

from pathlib import Path

import moderngl

from heimdall.errors import DeviceError

_SHADERS = Path(__file__).with_name("shaders")
_VERTEX = dict.fromkeys(("mask", "occlude", "behind"), "background")  # the same full-picture quad


class Programs:
    """``programs["bars"]`` is shaders/bars.vert with shaders/bars.frag, compiled once."""

    def __init__(self, ctx: moderngl.Context):
        self._ctx = ctx
        self._compiled: dict[str, moderngl.Program] = {}

    def __getitem__(self, name: str) -> moderngl.Program:
        if name not in self._compiled:
            self._compiled[name] = self._compile(name)
        return self._compiled[name]

    def _compile(self, name: str) -> moderngl.Program:
        vertex = (_SHADERS / f"{_VERTEX.get(name, name)}.vert").read_text(encoding="utf-8")
        fragment = (_SHADERS / f"{name}.frag").read_text(encoding="utf-8")
        try:
            return self._ctx.program(vertex_shader=vertex, fragment_shader=fragment)
        except moderngl.Error as error:
            raise DeviceError(f"the GL driver rejects shader {name!r}: {error}") from error
