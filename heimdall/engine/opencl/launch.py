"""What the planners hand to the engine: kernels to build and launches to enqueue, as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Traits:
    """What kernels need to know about a device.

    ``block`` is the lane count of NCHWc tensors: 16 with AVX-512, 8 with AVX2, 4 with NEON and
    on GPUs. ``registers`` vectors of that width fit in the register file (32 with AVX-512 and
    NEON, 16 with AVX2): it bounds the register tiles. ``storage`` is how tensors and weights lie in
    memory; what kernels compute is float in any case.
    """

    kind: Literal["cpu", "gpu"]
    block: int = 16
    compute_units: int = 1
    registers: int = 32
    storage: Literal["float", "half"] = "float"

    def __post_init__(self) -> None:
        if self.block not in (4, 8, 16):
            raise ValueError(f"block width must be 4, 8 or 16, not {self.block}")

    @property
    def dtype(self) -> np.dtype:
        """The type of tensors and weights in memory."""
        return np.dtype(np.float16 if self.storage == "half" else np.float32)


@dataclass(frozen=True)
class Kernel:
    """An entry point in OpenCL C source. Kernels of one identity are built once.

    ``identity`` changes whenever the source does. The source itself is made when it must be
    compiled: an app has 80 kernels, all kept as binaries, and rendering them takes 0.2 s.
    """

    name: str
    identity: str = field(repr=False)
    make_source: Callable[[], str] = field(repr=False, compare=False)
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: str, name: str) -> Kernel:
        """A kernel whose source is at hand."""
        return cls(name, source, lambda: source)

    @cached_property
    def source(self) -> str:
        return self.make_source()


@dataclass(frozen=True)
class Ref:
    """A buffer bound when the network is loaded: "x", "y", "w", "b", "residual", "scratch"..."""

    name: str


@dataclass(frozen=True)
class Place:
    """Where in the buffer behind ``Ref("scratch")`` the op's own memory begins, in numbers of
    ``size`` bytes, and ``base`` of these beyond. The pointer alone does not tell: a job's scratch
    memory is a part of its arena. (Sub-buffers would tell, but NVIDIA's driver crashes when it
    releases some of those that overlap: 580.159.04, clReleaseMemObject.)"""

    base: int = 0
    size: int = 4

    def at(self, scratch_bytes: int) -> np.int32:
        """The number for memory that begins ``scratch_bytes`` into the buffer."""
        return np.int32(self.base + scratch_bytes // self.size)


Arg = Ref | Place | np.int32 | np.float32


def begin(ref: Ref, base: int, size: int) -> Arg:
    """Where a tensor begins that lies ``base`` numbers of ``size`` bytes into what ``ref`` is."""
    return Place(base, size) if ref.name == "scratch" else np.int32(base)


@dataclass(frozen=True)
class Launch:
    """One enqueue of a kernel. ``global_size`` is a multiple of ``local_size``."""

    kernel: Kernel
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    args: tuple[Arg, ...]

    def bound(self, buffer: Callable[[str], Any], scratch_bytes: int = 0) -> list[Any]:
        """The arguments: ``buffer(name)`` for each Ref, and numbers; ``scratch_bytes`` is where
        the op's memory begins in ``buffer("scratch")``."""

        def resolve(arg: Arg) -> Any:
            if isinstance(arg, Ref):
                return buffer(arg.name)
            return arg.at(scratch_bytes) if isinstance(arg, Place) else arg

        return [resolve(arg) for arg in self.args]


@dataclass(frozen=True)
class Plan:
    """The launches of one op, in order, and what they need beside its inputs and outputs.

    ``constants`` maps Ref names to arrays uploaded once and shared by all jobs.
    ``scratch_floats`` is the size of the buffer behind ``Ref("scratch")``, private to a job
    and free again after the op; its contents are undefined before.
    """

    launches: tuple[Launch, ...]
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    scratch_floats: int = 0
