"""The kernels of a network as functions of one program, behind the kernel that walks over them.

Each source is renamed into a namespace of its own by macros, so that kernels are written, tested
and tuned by themselves and stay as they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from heimdall.engine.opencl.conv_source import KERNELS, render
from heimdall.engine.opencl.launch import Kernel

_ALONE = re.compile(r"__attribute__\(\(reqd_work_group_size\(1, 1, 1\)\)\)")
_ENTRY = re.compile(r"__kernel void (\w+)\(")
_NAMES = (
    re.compile(r"^typedef [^;]*?(\w+);", re.M),
    re.compile(r"^static [\w ]+?(\w+)\(", re.M),
    _ENTRY,
)
_MACRO = re.compile(r"^#define (\w+)", re.M)
_COMMENT = re.compile(r"//[^\n]*")


def walker(kernels: Sequence[Kernel], buffers: int, units: int) -> Kernel:
    """The kernel that runs ranges of launches of ``kernels``, for ``units`` cores.

    ``buffers``: how many there are beside the arena and the weights.
    """
    own = Path(__file__).read_bytes() + (KERNELS / "walk.cl").read_bytes()
    parts = [f"{kernel.identity}\0{kernel.name}" for kernel in kernels]
    parts += [str(buffers), str(units == 1), hashlib.sha256(own).hexdigest()]
    identity = "walk " + hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return Kernel("walk", identity, partial(_source, tuple(kernels), buffers, units))


def _source(kernels: tuple[Kernel, ...], buffers: int, units: int) -> str:
    numbers: dict[str, int] = {}
    for kernel in kernels:
        numbers.setdefault(kernel.source, len(numbers))
    text = "\n".join(
        unit(source, number, [each.name for each in kernels if each.source == source])
        for source, number in numbers.items()
    )
    variants = tuple(_runner(each.name, numbers[each.source]) for each in kernels)
    return render("walk", units=text, variants=variants, buffers=buffers, alone=units == 1).source


def _runner(name: str, number: int) -> str:
    return f"run_{name}_{number}"


def unit(source: str, number: int, names: Sequence[str]) -> str:
    """Kernel source as functions: each kernel of ``names`` gets one that runs a range of its
    work-items with the arguments of a row (see kernels/walk.cl)."""
    known = dict.fromkeys(name for each in _NAMES for name in each.findall(source))
    macros = dict.fromkeys(_MACRO.findall(source))
    entry = r"static inline __attribute__((always_inline)) void \1("
    body = _ENTRY.sub(entry + "const int gid0, const int gid1, const int gid2, ", source)
    lines = [f"#define {name} {name}_{number}" for name in known]
    # of an inlined function's arguments `restrict` changes no time, and Oclgrind does not know it
    lines.append(_ALONE.sub("", body).replace("*restrict ", "*"))
    lines += [_run_function(source, name, number) for name in dict.fromkeys(names)]
    lines += [f"#undef {name}" for name in (*known, *macros)]
    return "\n".join(lines)


def _run_function(source: str, name: str, number: int) -> str:
    """Locals have names that no kernel uses, for the arguments are locals too."""
    lines, place = [], 3
    arguments = parameters(source, name)
    for kind, argument in arguments:
        if "*" in kind:
            address = f"buffers_[row_[{place}]] + 64L * row_[{place + 1}]"
            lines.append(f"{kind}{argument} = ({kind.replace('restrict', '')})({address});")
            place += 2
            continue
        value = f"as_float(row_[{place}])" if kind.split()[-1] == "float" else f"row_[{place}]"
        lines.append(f"{kind} {argument} = {value};")
        place += 1
    passed = ", ".join(["x_", "y_", "z_", *(argument for _, argument in arguments)])
    body = "\n    ".join(lines)
    return f"""
static __attribute__((noinline)) void {_runner(name, number)}(
    int from_, int to_, __global const int *row_, __global char **buffers_)
{{
    {body}
    const int wide_ = row_[1], high_ = row_[2];
    int x_ = from_ % wide_, y_ = from_ / wide_ % high_, z_ = from_ / wide_ / high_;
    for (int at_ = from_; at_ < to_; at_++) {{
        {name}({passed});
        if (++x_ < wide_) continue;
        x_ = 0;
        if (++y_ < high_) continue;
        y_ = 0, z_++;
    }}
}}"""


def parameters(source: str, name: str) -> list[tuple[str, str]]:
    """(type, name) of each parameter of a kernel."""
    found = next(match for match in _ENTRY.finditer(source) if match[1] == name)
    end, depth = found.end(), 1
    while depth:
        depth += {"(": 1, ")": -1}.get(source[end], 0)
        end += 1
    text = _COMMENT.sub("", source[found.end() : end - 1])
    split = (re.fullmatch(r"(.*?)(\w+)", " ".join(each.split())) for each in text.split(","))
    return [(match[1], match[2]) for match in split if match]
