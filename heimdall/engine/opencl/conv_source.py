"""Kernel source from the ``.cl`` templates in kernels/: register tiles are unrolled by jinja2."""

from __future__ import annotations

import hashlib
import re
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heimdall.engine.opencl.launch import Kernel

if TYPE_CHECKING:
    import jinja2

KERNELS = Path(__file__).parent / "kernels"

Variables = tuple[tuple[str, Any], ...]


@cache
def _environment() -> jinja2.Environment:
    import jinja2  # a start that compiles nothing does without

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(KERNELS),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


@cache
def _digest(template: str) -> str:
    """Changes with a template, with those it imports, and with how they are rendered."""
    text = (KERNELS / template).read_text(encoding="utf-8")
    imported = sorted(set(re.findall(r'import "(\w+\.cl)"', text)))
    parts = [text, *map(_digest, imported), Path(__file__).read_text(encoding="utf-8")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _source(name: str, variables: Variables) -> str:
    source = _environment().get_template(f"{name}.cl").render(dict(variables))
    return re.sub(r"\n\s*\n+", "\n", source)


@cache
def _render(name: str, variables: Variables) -> Kernel:
    digest = _digest(f"{name}.cl")
    identity = f"{name} {variables!r} {digest}"
    return Kernel(name, identity, partial(_source, name, variables))


def forget() -> None:
    """Read the templates anew from now on: they, or ``KERNELS``, have changed."""
    for cached in (_environment, _digest, _render):
        cached.cache_clear()


def render(name: str, **variables: Any) -> Kernel:
    """The kernel ``name`` of template ``name.cl``. Equal variables give the same object."""
    return _render(name, tuple(sorted(variables.items())))
