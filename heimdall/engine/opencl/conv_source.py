"""Kernel source from the ``.cl`` templates in kernels/: register tiles are unrolled by jinja2."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from heimdall.engine.opencl.launch import Kernel

KERNELS = Path(__file__).parent / "kernels"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(KERNELS),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


@cache
def _render(name: str, variables: tuple[tuple[str, Any], ...]) -> Kernel:
    source = _environment().get_template(f"{name}.cl").render(dict(variables))
    return Kernel(re.sub(r"\n\s*\n+", "\n", source), name)


def render(name: str, **variables: Any) -> Kernel:
    """The kernel ``name`` of template ``name.cl``. Equal variables give the same object."""
    return _render(name, tuple(sorted(variables.items())))
