"""Phones, where nothing is drawn: as devices with two processors, of which requests have both."""

from __future__ import annotations

from pathlib import Path

from heimdall.lab.simulator.device import Device, PhoneNetwork, op_latencies_ns, phone_names
from heimdall.lab.simulator.several import NetworkTable, ProcessorTable, SeveralDevice
from heimdall.lab.simulator.tables import read_toml
from heimdall.lab.standins import families
from heimdall.vocabulary.enums import ProcessorKind
from heimdall.vocabulary.processors import CPU, GPU


def is_phone(name_or_path: str) -> bool:
    """Whether it is a phone's name or profile. Raises ConfigError for a file that is not there."""
    path = Path(name_or_path)
    return "gpu" in read_toml(path) if path.suffix == ".toml" else name_or_path in phone_names()


def as_several(phone: Device) -> SeveralDevice:
    """A phone as scenarios of requests have devices. A core runs one network at a time; that each
    makes the others' work longer is left out."""
    built = families.names() if phone.tells_speed else []
    gpu = ProcessorTable(
        name=phone.gpu.name,
        kind=ProcessorKind.GPU,
        noise=phone.gpu.noise,
        chunk_cost_ms=phone.gpu.chunk_cost_ms,
        batch_ms=phone.gpu.batch_ms,
    )
    cpu = ProcessorTable(name=phone.cpu.name, lanes=phone.cpu.cores, noise=phone.cpu.noise)
    return SeveralDevice(
        name=phone.name,
        title=phone.title,
        op_spread=phone.op_spread,
        processors={GPU: gpu, CPU: cpu},
        networks={name: _table(phone, name) for name in (*phone.networks, *built)},
    )


def _table(phone: Device, reference: str) -> NetworkTable:
    network: PhoneNetwork = phone.network(reference)
    _, fallback = op_latencies_ns(reference, network, phone.op_spread, phone.scatter)
    lacks = tuple((op, op + 1) for op, falls_back in enumerate(fallback) if falls_back)
    on_gpu_ms = (network.ms - network.fallback_ms) * network.ops / network.gpu_ops
    return NetworkTable(
        ops=network.ops,
        ms={GPU: on_gpu_ms, CPU: phone.cpu_ms(network)},
        unsupported={GPU: lacks} if lacks else {},
    )
