"""Which devices can be simulated, by name or file: phones of papers, and measured machines."""

from __future__ import annotations

from pathlib import Path

from heimdall.errors import ConfigError, unknown
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.simulator.device import Device, load_device, phone_names
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.measured import MeasuredDevice
from heimdall.lab.simulator.tables import as_tables, read_toml
from heimdall.system import paths

HERE = "here"  # not a file: this machine, measured
MACHINES = paths.PROFILES / "devices"  # the rows of docs/laboratory/devices.md
_PROFILE = "[profile.processors]"  # a row without it has not been measured


def device_names() -> list[str]:
    """The devices that can be simulated."""
    return [HERE, *sorted([*phone_names(), *_machines()])]


def _machines() -> dict[str, Path]:
    files = MACHINES.glob("*.toml")
    return {path.stem: path for path in files if _PROFILE in path.read_text(encoding="utf-8")}


def find_device(name_or_path: str) -> Device | MeasuredDevice:
    """A bundled phone or machine by its name, or a file of one's own: a phone's profile, or what
    ``heimdall measure`` wrote.

    Raises ConfigError for an unknown name, an unreadable file and impossible values.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if name_or_path not in device_names():
            raise ConfigError(unknown("device", name_or_path, device_names()))
        if name_or_path in phone_names():
            return load_device(name_or_path)
        path = _machines()[name_or_path]
    content = read_toml(path)
    if "not_measured" in content:
        raise ConfigError(f"device profile {path}: not measured: {content['not_measured']}")
    if "machine" in content:
        return as_tables(MeasuredDevice, path, content)
    return as_tables(Device, path, content)


def open_device(
    scenario: Scenario, name_or_path: str, render_ms: float | None = None
) -> tuple[Machine, list[SimulatedDnn]]:
    """A device, and the scenario's DNNs on it. Raises ConfigError as ``find_device`` does, and
    for a network that was not measured there."""
    return find_device(name_or_path).open(scenario, render_ms)
