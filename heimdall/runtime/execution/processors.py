"""The processors of a run: the GPU's engine, the CPU's, a server's, and others for requests."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cv2  # noqa: F401  (its threads, and numpy's, must not become the software GPU's)

from heimdall.engine import ENGINES, open_engine
from heimdall.engine.base import Engine
from heimdall.engine.remote import RemoteEngine
from heimdall.errors import ConfigError, DeviceError
from heimdall.runtime.opening import background
from heimdall.system import forks, softgpu
from heimdall.system.priority import cores_awake
from heimdall.vocabulary.enums import ProcessorKind
from heimdall.vocabulary.processors import CPU, GPU, REMOTE, SERVER, Processor, usual

log = logging.getLogger(__name__)

HARDWARE = "hardware"  # a real GPU


@dataclass(frozen=True)
class Processors:
    """The engines, and the software GPU that one of them may run on."""

    gpu: Engine
    cpu: Engine
    software: softgpu.SoftwareGpu | None  # None: a real GPU
    others: Mapping[str, Engine] = field(default_factory=dict)  # by id: for requests alone
    used: tuple[str, ...] = (GPU, CPU)  # by requests: their ids
    remote: RemoteEngine | None = None  # a server that DNNs may run on too
    together: bool = False  # groups of ops run at the same time; else an engine has one lane

    @property
    def by_id(self) -> dict[str, Engine]:
        """The engines of those that requests run on."""
        known = {GPU: self.gpu, CPU: self.cpu, **self.others}
        return {name: known[name] for name in self.used}

    def listed(self, cpu_workers: int) -> tuple[Processor, ...]:
        """As the coordinator knows them. The GPU draws."""
        usually = {each.id: each for each in usual(cpu_workers)}
        found = {
            name: usually.get(name) or Processor(name, _kind_of(engine))
            for name, engine in self.by_id.items()
        }
        if self.remote is not None:
            found = {**usually, **found, REMOTE: SERVER}
        if self.together:
            for name, engine in self.by_id.items():
                if name != CPU:
                    found[name] = replace(found[name], lanes=engine.lanes)
        return tuple(found.values())

    def for_groups(self) -> Processors:
        """These processors ``together``: networks are planned so that their branches may run so."""
        others = {name: engine.for_branches for name, engine in self.others.items()}
        return replace(self, gpu=self.gpu.for_branches, others=others, together=True)

    @property
    def further(self) -> tuple[str, ...]:
        """The ids of those beside the GPU and the CPU."""
        ids = (each.id for each in self.listed(1))
        return tuple(each for each in ids if each not in (GPU, CPU))

    def describe(self) -> str:
        """For people: ``hardware``, or how the software GPU is confined."""
        return self.software.describe() if self.software else HARDWARE

    @property
    def profile_key(self) -> str:
        """What profiles measured on them are kept under, besides device and engine."""
        return self.software.profile_key if self.software else HARDWARE

    @property
    def cores(self) -> tuple[int, ...]:
        """All that this process may use."""
        if self.software:
            return tuple(sorted({*self.software.gpu_cores, *self.software.cpu_cores}))
        return softgpu.plan(confine=False).cpu_cores

    @property
    def cpu_cores(self) -> tuple[int, ...]:
        """The cores that are not a software GPU's: where DNNs on the CPU run."""
        return self.software.cpu_cores if self.software else self.cores

    @property
    def load_limit(self) -> float:
        """The share of its time that the GPU may work (see ``SoftwareGpu.load_limit``)."""
        return self.software.load_limit if self.software else 1.0

    def confined(self) -> contextlib.AbstractContextManager[object]:
        """Create inside this block what else belongs to the GPU, such as a surface."""
        return self.software.confined() if self.software else contextlib.nullcontext()


@contextlib.contextmanager
def open_processors(
    device: str | Engine | None = None,
    software: softgpu.SoftwareGpu | None = None,
    *,
    soon: bool = False,
    remote: str | RemoteEngine | None = None,
    others: Sequence[str | Engine] | None = None,
    prioritized: bool = True,
) -> Iterator[Processors]:
    """Open both engines, and close them when the block ends. ``others``: what requests run on,
    "gpu", "cpu", and further devices or engines; default: those two.

    The GPU's threads are confined by ``software`` (default: ``softgpu.plan()``), unless it
    turns out to be a real one. An Engine that is given plays the GPU, and stays open. Tuning in
    the background makes room. ``soon``: no compiler need run before the GPU is opened, which may
    not be ``complete`` then. ``remote``: the address of a server, or its engine, which stays open.
    ``prioritized``: the GPU's driver is asked to serve who draws before networks.
    Raises DeviceError when the device asked for is not there, ConfigError for an address that is
    none.
    """
    software = software or softgpu.plan()
    background.interrupt(background.TUNING)
    with softgpu.restored_afterwards(software), contextlib.ExitStack() as stack:
        how = {"soon": True, "save_last": True} if soon else {}
        how |= {} if prioritized else {"low": False}
        if isinstance(device, Engine):
            gpu = device
        else:
            with software.confined():
                gpu = stack.enter_context(contextlib.closing(open_gpu(device, **how)))
        if gpu.hardware:
            software.release()
        elif software.realtime:
            stack.enter_context(software.policy.in_force())
            stack.enter_context(cores_awake())
        cpu = stack.enter_context(contextlib.closing(open_engine("onnxruntime", processor=CPU)))
        more: dict[str, Engine] = {}
        used: list[str] = []
        for each in (GPU, CPU) if others is None else others:
            if each in (GPU, CPU):
                used.append(str(each))
                continue
            if isinstance(each, str):
                each = stack.enter_context(contextlib.closing(open_gpu(each)))
            name = _id_of(each, [*more, *used])
            more[name] = each
            used.append(name)
        if isinstance(remote, str):
            remote = stack.enter_context(contextlib.closing(RemoteEngine(remote)))
        software_gpu = None if gpu.hardware else software
        yield Processors(gpu, cpu, software_gpu, more, tuple(used), remote)


def check_others(others: Sequence[str | Engine] | None) -> None:
    """Raise ConfigError for a list that nothing can run on, or that names one twice."""
    if others is None:
        return
    if isinstance(others, str) or not others:
        raise ConfigError(
            "the list of processors is empty, or no list: name at least one, such as 'gpu' or 'cpu'"
        )
    for index, each in enumerate(others):
        if not isinstance(each, str | Engine):
            raise ConfigError(f"{each!r} is no processor: give a name, or an Engine")
        if each in others[:index]:
            raise ConfigError(f"processor {each!r} is listed twice")


def _id_of(engine: Engine, taken: Sequence[str]) -> str:
    """``gpu2``, ``gpu3`` for further devices; other engines go by their names."""
    base, number = (GPU, 2) if engine.name in ("opencl", "provider") else (engine.name, 1)
    name = base if number == 1 else f"{base}{number}"
    while name in taken:
        number += 1
        name = f"{base}{number}"
    return name


def _kind_of(engine: Engine) -> str:
    if engine.name == ProcessorKind.REMOTE:
        return ProcessorKind.REMOTE
    return ProcessorKind.CPU if engine.processor == CPU else ProcessorKind.GPU


def open_gpu(device: str | None = None, **how: Any) -> Engine:
    """The GPU's engine alone: OpenCL's, or what was asked for by name, a provider of onnxruntime or
    an engine of another package (``name``, or ``name:device``). Without any OpenCL, onnxruntime on
    the CPU takes the GPU's role too. ``how``: options of OpenCL's."""
    if device == "onnxruntime":
        return open_engine("onnxruntime", processor=GPU)
    if device is not None:
        from heimdall.engine.providers import provider_named

        if provider := provider_named(device):
            return open_engine("provider", provider=provider)
        name, _, its_device = device.partition(":")
        if name in ENGINES.others():
            return open_engine(name, **({"device": its_device} if its_device else {}))
    try:
        return open_engine("opencl", device=device, **how)
    except DeviceError as error:
        if device is not None or forks.forked():
            raise
        log.warning("%s. Networks run on the CPU by onnxruntime instead.", error)
        return open_engine("onnxruntime", processor=GPU)
