"""All faults, in the order in which they are tried."""

from __future__ import annotations

from heimdall.errors import ConfigError, unknown
from heimdall.lab.faults import (
    app_code,
    chance,
    chunks,
    ends,
    files,
    machine,
    others,
    policies,
    sources,
)
from heimdall.lab.faults.fault import NO_FAULT, Fault

FAULTS: tuple[Fault, ...] = (
    NO_FAULT,
    *chance.FAULTS,
    *chunks.FAULTS,
    *app_code.FAULTS,
    *policies.FAULTS,
    *sources.FAULTS,
    *machine.FAULTS,
    *others.FAULTS,
    *files.FAULTS,
    *ends.FAULTS,
)


def fault_names() -> list[str]:
    """What can be tried."""
    return [each.name for each in FAULTS]


def fault_named(name: str) -> Fault:
    """One of them. Raises ConfigError, which lists them, for a name that there is not."""
    found = next((each for each in FAULTS if each.name == name), None)
    if found is None:
        raise ConfigError(unknown("fault", name, fault_names()))
    return found
