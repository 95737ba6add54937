"""Less to compile for tests: PoCL's compiler spends 0.15 s of a small program's 0.2 s on the 18,000
lines that declare all built-in functions, and tests build thousands of programs of one or two small
kernels. Here a program is given those declarations that our kernels need, as they stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyopencl as cl
import pytest

from heimdall.engine.opencl.launch import Kernel
from heimdall.engine.opencl.program import Programs

_HEADERS = (Path("/usr/share/pocl/include"), Path("/usr/local/share/pocl/include"))
_READ = "-D_OPENCL_H_"  # the header of all functions takes it that it was read before
_KERNELS = Path(__file__).resolve().parents[1] / "heimdall" / "engine" / "opencl"
_NAME = re.compile(r"(\w+)\s*\(")
_CONVERTED = re.compile(r"convert_(float|half|int|uint|uchar)(4|8|16)?")
_OTHER = re.compile(r"\b(double|half|u?long|u?short)\d*\b")  # types that they do not have on PoCL
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Have programs that are not kept built so: what is kept must be found again by processes that
    know nothing of this. Other drivers' are built as they are."""
    whole = Programs._translate

    def translate(self: Programs, context: cl.Context, kernel: Kernel) -> cl.Program:
        needed = "" if self._keep else _declarations(context.devices[0].platform.name)
        if needed:
            source, options = needed + kernel.source, (*kernel.options, _READ)
            kernel = replace(kernel, make_source=lambda: source, options=options)
        return whole(self, context, kernel)

    patch.setattr(Programs, "_translate", translate)


@cache
def _declarations(platform: str) -> str:
    """Empty where there are none to be had."""
    if platform != "Portable Computing Language":
        return ""
    for folder in _HEADERS:
        found = folder / "opencl-c.h"
        if found.exists():
            text = _COMMENT.sub("", found.read_text(encoding="utf-8"))
            base = f'"{folder / "opencl-c-base.h"}"'  # types: no folder is searched here
            kept = "".join(_kept(text, _names())).replace('"opencl-c-base.h"', base)
            return kept.replace("_OPENCL_H_", "_DECLARED_") + "#line 1\n"
    return ""


def _names() -> set[str]:
    """The words of our kernels' sources, and of what writes them; without a width, as in
    ``vload{width}``."""
    files = (path for path in _KERNELS.rglob("*") if path.suffix in {".py", ".cl"})
    return {
        word.rstrip("0123456789")
        for path in files
        for word in re.findall(r"[a-zA-Z_]\w+", path.read_text(encoding="utf-8"))
    }


def _kept(text: str, names: set[str]) -> Iterator[str]:
    """Directives, and the declarations of functions that are named."""
    statement = ""
    for line in text.replace("\\\n", "").splitlines(keepends=True):
        if line.lstrip().startswith("#"):
            yield line
            continue
        statement += line
        if line.rstrip().endswith(";"):
            found = _NAME.search(statement)
            if found is None or (_is_named(found[1], names) and not _OTHER.search(statement)):
                yield statement
            statement = ""


def _is_named(function: str, names: set[str]) -> bool:
    if function.startswith("convert_"):
        return bool(_CONVERTED.fullmatch(function))
    return function.startswith("as_") or function.rstrip("0123456789") in names
