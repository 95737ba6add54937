"""The OpenCL engine: networks on any OpenCL 1.2 device, GPU or CPU."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal
from weakref import WeakValueDictionary

import pyopencl as cl

from heimdall.engine.base import Engine, LoadProgress, PassOp, Tried
from heimdall.engine.network import LoadedNetwork
from heimdall.engine.opencl.abilities import Abilities
from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.device import (
    driver,
    explaining,
    finish,
    is_gpu,
    label,
    recompiles,
    select,
    traits_of,
)
from heimdall.engine.opencl.lanes import LEAST_NS, LEAST_SHARED_NS, Lanes
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Module
from heimdall.engine.opencl.network import OpenCLNetwork
from heimdall.engine.opencl.passes import lower_for
from heimdall.engine.opencl.priority import given, open_context, open_queue
from heimdall.engine.opencl.probe import abilities_of, choose, choose_soon
from heimdall.engine.opencl.program import Programs
from heimdall.engine.opencl.transfer import Transfer
from heimdall.engine.opencl.tuner import ROUNDS, tune
from heimdall.engine.opencl.tuning import Choices, Tuning, family
from heimdall.engine.opencl.version import version
from heimdall.engine.together import GroupMember, whole_jobs
from heimdall.errors import ConfigError, DeviceError
from heimdall.graph.graph import Graph
from heimdall.system import forks
from heimdall.vocabulary.driver_priority import NOT_ASKED
from heimdall.vocabulary.enums import Precision
from heimdall.vocabulary.processors import GPU

MOST_LANES = 4  # TOP's blocks of the most networks that gained anything together (its Fig. 18)


class OpenCLEngine(Engine):
    """One device with one in-order queue for chunks, one for copies, and more for ``run_together``.

    ``device``: an index or part of a name as ``heimdall devices`` prints them; by default the
    first GPU that can be used, else the CPU. ``traits`` replaces what is known about the device
    (tests run the kernels for GPUs on PoCL). ``keep_kernels``: what is compiled is kept on disk for
    the next start. ``abilities``: what the device can do; by default that is tried where it is not
    known (``probe``); with ``soon`` only what needs no compiler, and ``completed`` tries the rest.
    ``save_last``: where binaries take a compiler, they are made by ``save_kernels``. ``lanes``: how
    many queues ``run_together`` uses; by default 4, on a CPU as many as it has cores, if fewer.
    ``choices``: those of another engine, instead of what is kept on disk.
    ``low``: the driver, where it can, serves others before these queues.
    Raises DeviceError when there is no such device, or it cannot be used.
    """

    name = "opencl"
    processor = GPU
    computes = True
    cuts_at_any_op = True
    ends_early = True
    times_ops = True
    plans_branches = False

    def __init__(
        self,
        device: str | int | None = None,
        traits: Traits | None = None,
        *,
        keep_kernels: bool = True,
        abilities: Abilities | None = None,
        soon: bool = False,
        save_last: bool = False,
        lanes: int | None = None,
        low: bool = True,
        choices: Choices | None = None,
    ) -> None:
        self._given_choices = choices
        self._complete, self._keeps, self._saves_last = True, keep_kernels, save_last
        if abilities is not None:
            self.device, self.abilities = select(device), abilities
        elif soon:
            self.device, self.abilities, self._complete = choose_soon(device)
        else:
            self.device, self.abilities = choose(device)
        self.hardware = is_gpu(self.device)
        if lanes is not None and lanes < 1:
            raise ConfigError(f"lanes must be at least 1, not {lanes}")
        # a CPU shares its cores out among them, which is at most as many as there are
        most = MOST_LANES if self.hardware else self.device.max_compute_units
        self.lanes = lanes or min(MOST_LANES, most)
        self.times_ops = self.abilities.clock
        self._priority_by = self.abilities.priority if low else ""
        self.driver_priority = given(self.abilities) if low else NOT_ASKED
        with explaining(f"opening {label(self.device)}"):
            self.context = open_context(self.device, self._priority_by)
            self._rely_on(traits or traits_of(self.device, groups=self.abilities.groups))
            self._open_queues()

    def _rely_on(self, traits: Traits) -> None:
        """Plan and compile for these traits, and for the abilities."""
        self.traits, abilities = traits, self.abilities
        self._by_storage: WeakValueDictionary[str, OpenCLEngine] = WeakValueDictionary()
        self.saves_later = self._saves_last and abilities.binaries and recompiles(self.device)
        self.programs = Programs(
            self.context,
            self._keeps and abilities.binaries,
            prefetch=abilities.prefetch,
            later=self.saves_later,
        )
        table = family(traits, hardware=self.hardware)
        self.units = 0 if self.hardware else traits.compute_units
        place = label(self.device), driver(self.device)
        self.tuning = Tuning(*place, traits, table, self._given_choices)
        self._compiled: WeakValueDictionary[tuple[str, tuple[str, ...]], Compiled]
        self._compiled = WeakValueDictionary()

    @property
    def choices(self) -> Choices:
        return self.tuning.own

    @property
    def complete(self) -> bool:
        return self._complete

    def completed(self, stop: threading.Event | None = None) -> OpenCLEngine:
        if self._complete:
            return self
        other = copy.copy(self)
        other.abilities = abilities_of(self.device, yields=True, stop=stop)
        if other.abilities.refused:
            raise DeviceError(f"{label(self.device)} cannot be used: {other.abilities.refused}")
        other._complete = True
        other._rely_on(traits_of(self.device, groups=other.abilities.groups))
        return other

    def keeps(self, graph: Graph, *, force_fallback: Collection[str] = ()) -> bool:
        kernels = self._of(graph, force_fallback).kernels
        return all(map(self.programs.found_again, kernels))

    def save_kernels(self) -> None:
        self.programs.save()

    def _open_queues(self) -> None:
        opened = partial(open_queue, self.context, self.device, extension=self._priority_by)
        profiling = cl.command_queue_properties.PROFILING_ENABLE if self.abilities.clock else 0
        lane = partial(opened, int(profiling))
        self.queue = lane()
        least_ns = LEAST_NS if self.hardware else LEAST_SHARED_NS
        self._lanes = Lanes(self.queue, lane, least_ns)
        way, dtype = self.abilities.ways[0], self.traits.dtype
        self.transfer = Transfer(self.context, self.device, way, dtype, opened())

    def beside(self) -> OpenCLEngine:
        """An engine with queues of its own, that shares everything else with this one."""
        other = copy.copy(self)
        other._by_storage = WeakValueDictionary()
        with explaining(f"opening a queue on {label(self.device)}"):
            other._open_queues()
        return other

    @property
    def for_branches(self) -> OpenCLEngine:
        if self.plans_branches:
            return self
        other = copy.copy(self)
        other.plans_branches = True
        other._by_storage = WeakValueDictionary()
        other._compiled = WeakValueDictionary()
        return other

    def runs(self, network: LoadedNetwork) -> bool:
        return isinstance(network, OpenCLNetwork) and network.loaded_in(self.context)

    def run_together(self, stages: Sequence[Sequence[GroupMember]]) -> int:
        jobs = whole_jobs(self.runs, stages)
        began_ns = time.perf_counter_ns()
        events = self._lanes.run(stages, self.lanes)
        waited_ns = time.perf_counter_ns() - began_ns
        for job in jobs:
            job.state.progress.add(*job.ranges[0])
        if not events or not self.times_ops:
            return waited_ns
        with explaining("running networks together"):  # NVIDIA's driver tells a failure here first
            first_ns = min(int(event.profile.queued) for event in events)
            return min(waited_ns, max(int(event.profile.end) for event in events) - first_ns)

    @property
    def precisions(self) -> tuple[Precision, ...]:
        return (Precision.FP32, Precision.FP16) if self.abilities.half else (Precision.FP32,)

    def in_precision(self, precision: Precision) -> OpenCLEngine:
        """This engine with networks of that precision: device, queues and kernels are shared. As
        long as it is used it is the same one, so that networks share their weights there, too."""
        storage: Literal["float", "half"] = "half" if precision == Precision.FP16 else "float"
        if storage == self.traits.storage:
            return self
        if precision not in self.precisions:
            raise DeviceError(
                f"{label(self.device)} has no half precision (cl_khr_fp16): use precision='fp32'"
            )
        self._by_storage[self.traits.storage] = self
        known = self._by_storage.get(storage)
        if known is not None:
            return known
        other = copy.copy(self)
        other.traits = replace(self.traits, storage=storage)
        other.transfer = self.transfer.holding(other.traits.dtype)
        other._compiled = WeakValueDictionary()
        self._by_storage[storage] = other
        return other

    def load(
        self,
        graph: Graph,
        *,
        force_fallback: Collection[str] = (),
        on_progress: LoadProgress | None = None,
    ) -> OpenCLNetwork:
        """Place a graph on the device. ``on_progress(done, total)`` is told while kernels
        compile, which takes a second or more for a network that this machine never ran.
        Networks of the same graph share their weights."""
        return OpenCLNetwork(self, self._of(graph, force_fallback), on_progress)

    def load_built(
        self, graph: Graph, *, force_fallback: Collection[str] = ()
    ) -> OpenCLNetwork | None:
        if not self._complete:
            return None
        compiled = self._of(graph, force_fallback)
        if self.abilities.binaries and not all(map(self.programs.recall, compiled.kernels)):
            return None
        return OpenCLNetwork(self, compiled)

    def load_beside(
        self, graph: Graph, pause: Callable[[], object], *, force_fallback: Collection[str] = ()
    ) -> OpenCLNetwork:
        def tell(done: int, total: int) -> None:
            pause()

        return OpenCLNetwork(self, self._of(graph, force_fallback), tell, one_by_one=True)

    def _of(self, graph: Graph, force_fallback: Collection[str]) -> Compiled:
        key = graph.sha256, tuple(sorted(force_fallback))
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = Compiled(self, graph, force_fallback)
        return compiled

    def tune(
        self, graph: Graph, on_progress: LoadProgress, *, again: bool = True, rounds: int = ROUNDS
    ) -> dict[str, Tried]:
        """``rounds``: how often each variant is timed."""
        compiled = Compiled(self, graph, ())
        found = tune(self, compiled, on_progress, rounds=rounds, again=again)
        self._compiled.clear()  # planned with the choices of before
        return found

    def passes(
        self, graph: Graph, *, force_fallback: Collection[str] = ()
    ) -> list[tuple[str, list[PassOp]]]:
        found = []

        def note(name: str, module: Module) -> None:
            shapes = module.shapes
            ops = [PassOp(o.kind, o.output, shapes[o.output], o.nodes) for o in module.ops]
            found.append((name, ops))

        lower_for(graph, self.traits, force_fallback, note)
        return found

    def describe(self) -> Mapping[str, str]:
        kind = "GPU" if is_gpu(self.device) else f"{self.traits.compute_units} compute units"
        half = {"precision": str(Precision.FP16)} if self.traits.storage == "half" else {}
        return half | {
            "device": label(self.device),
            "driver": driver(self.device),
            "version": version() + self.tuning.version,
            "mode": kind,
        }

    def close(self) -> None:
        if not forks.forked():  # else the device is its parent's
            finish(self.queue)
