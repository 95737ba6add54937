"""The launches of a network as rows of a table that one kernel walks over (kernels/walk.cl)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.constants import Constants
from heimdall.engine.opencl.launch import Kernel, Launch, Place, Ref
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.placed import Storage
from heimdall.engine.opencl.planning import Bound
from heimdall.engine.opencl.walk_source import walker

LEAST = 8  # launches from which a program of their own pays: it is compiled for them alone
_MOST_BUFFERS = 96  # arguments may take 1024 bytes (OpenCL 1.2, CL_DEVICE_MAX_PARAMETER_SIZE)


@dataclass(frozen=True)
class Stride:
    """One launch in the table: where its row begins, and how many work-items it has."""

    row: int
    tiles: int


@dataclass(frozen=True)
class Walk:
    """``strides``: of each launch of each layer. ``dedicated``: the buffers that the kernel takes
    behind arena and weights."""

    kernel: Kernel
    strides: list[list[Stride]]
    dedicated: list[Storage]
    weights: cl.Buffer
    table: cl.Buffer


def make_walk(
    layers: Sequence[Sequence[Bound]], dedicated: list[Storage], engine: Opened
) -> Walk | None:
    """The walk over all launches of a network; None where it would not pay, or cannot be. Raises
    cl.Error where its constants cannot be uploaded."""
    launches = [launch for layer in layers for bound in layer for launch in bound.plan.launches]
    single = all(prod(launch.local_size) == 1 for launch in launches)
    able = engine.abilities.walk and engine.traits.kind == "cpu" and single
    if not able or len(launches) < LEAST or len(dedicated) > _MOST_BUFFERS:
        return None
    variants: dict[tuple[str, str], tuple[int, Kernel]] = {}
    constants = Constants()
    table: list[int] = []
    strides: list[list[Stride]] = []
    for layer in layers:
        strides.append([])
        for bound in layer:
            places = {name: constants.add(array) for name, array in bound.plan.constants.items()}
            for launch in bound.plan.launches:
                kernel = launch.kernel
                key = kernel.identity, kernel.name
                variant, _ = variants.setdefault(key, (len(variants), kernel))
                strides[-1].append(Stride(len(table), prod(launch.global_size)))
                table += [variant, *(*launch.global_size, 1, 1)[:2]]
                table += _row(launch, bound, places, dedicated, engine.traits.dtype.itemsize)
    if constants.size > engine.device.max_mem_alloc_size:
        return None
    kernels, units = [kernel for _, kernel in variants.values()], engine.traits.compute_units
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    rows = cl.Buffer(engine.context, flags, hostbuf=np.array(table, np.int32))
    weights = constants.upload(engine.queue)
    return Walk(walker(kernels, len(dedicated), units), strides, dedicated, weights, rows)


def _row(
    launch: Launch, bound: Bound, places: dict[str, int], dedicated: list[Storage], itemsize: int
) -> list[int]:
    """The arguments of a launch as numbers."""
    row: list[int] = []
    for arg in launch.args:
        if isinstance(arg, Place):
            row.append(int(arg.at(bound.scratch_bytes(itemsize))))
        elif not isinstance(arg, Ref):
            row.append(int(arg.view(np.int32)))
        elif arg.name in places:
            row += [1, places[arg.name]]
        else:
            storage = bound.storages[arg.name]
            # kernels find their places in the arena by offsets of their own
            row += [2 + dedicated.index(storage) if storage.dedicated else 0, 0]
    return row
