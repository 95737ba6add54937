"""The two processors of a run: the GPU's engine, and the CPU's."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import cv2  # noqa: F401  (its threads, and numpy's, must not become the software GPU's)

from heimdall.engine import ENGINES, open_engine
from heimdall.engine.base import Engine
from heimdall.errors import DeviceError
from heimdall.runtime import background
from heimdall.system import softgpu
from heimdall.system.priority import cores_awake
from heimdall.vocabulary.processors import CPU, GPU

log = logging.getLogger(__name__)

HARDWARE = "hardware"  # a real GPU


@dataclass(frozen=True)
class Processors:
    """Both engines, and the software GPU that one of them may run on."""

    gpu: Engine
    cpu: Engine
    software: softgpu.SoftwareGpu | None  # None: a real GPU

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
        """Those of them that are not a software GPU's: where DNNs on the CPU run."""
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
) -> Iterator[Processors]:
    """Open both engines, and close them when the block ends.

    The GPU's threads are confined by ``software`` (default: ``softgpu.plan()``), unless it
    turns out to be a real one. An Engine that is given plays the GPU, and stays open. Who tunes in
    the background makes room. ``soon``: no compiler need run before the GPU is opened, which may
    not be ``complete`` then. Raises DeviceError when the device asked for is not there.
    """
    software = software or softgpu.plan()
    background.interrupt(background.TUNING)
    with softgpu.restored_afterwards(software), contextlib.ExitStack() as stack:
        how = {"soon": True, "save_last": True} if soon else {}
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
        yield Processors(gpu, cpu, None if gpu.hardware else software)


def open_gpu(device: str | None = None, **how: bool) -> Engine:
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
        if device is not None:
            raise
        log.warning("%s. Networks run on the CPU by onnxruntime instead.", error)
        return open_engine("onnxruntime", processor=GPU)
