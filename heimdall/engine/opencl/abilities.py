"""What a device and its driver turned out to be able to do, and the file that remembers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from heimdall.system import findings

SCHEMA = 1


@dataclass(frozen=True)
class Abilities:
    """What kernels and engine may rely on; each was tried, not asked for.

    ``prefetch``: the compiler takes ``__builtin_prefetch``. ``half``: half precision computes
    (cl_khr_fp16). ``groups``: work-groups of 64 run; else kernels are planned as for a CPU.
    ``clock``: events tell plausible times; else the host's clock is read. ``binaries``: programs
    come back from their binaries. ``walk``: one kernel may run many launches (kernels/walk.cl).
    ``ways``: how memory is reached (``transfer``), the cheapest first. ``priority``: the extension
    that makes queues low (``priority``), or empty. ``network_ns``: a small network, to compare
    devices by. ``refused``: why the device cannot be used, or empty. ``lacks``: (ability, what
    happened) of those that failed.
    """

    prefetch: bool = False
    half: bool = False
    groups: bool = False
    clock: bool = False
    binaries: bool = False
    walk: bool = False
    ways: tuple[str, ...] = ()
    priority: str = ""
    network_ns: int = 0
    refused: str = ""
    lacks: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Abilities:
        """Abilities from what ``asdict`` gave. Raises ValueError, KeyError or TypeError for
        anything else."""
        values = {each.name: content[each.name] for each in fields(cls)}
        values["ways"] = tuple(values["ways"])
        values["lacks"] = tuple((str(name), str(why)) for name, why in values["lacks"])
        made = cls(**values)
        if any(type(getattr(made, each.name)) is not type(each.default) for each in fields(cls)):
            raise ValueError(f"{values} are no abilities")
        return made


def read(path: Path) -> Abilities | None:
    """What was found, if it was kept and is whole."""
    return findings.read(path, _parse, "the device is tried again")


def _parse(content: Any) -> Abilities | None:
    return Abilities.from_json(content["abilities"]) if content["schema"] == SCHEMA else None


def write(path: Path, label: str, found: Abilities) -> None:
    """Best effort: without the file the device is tried again next time."""
    content = {"schema": SCHEMA, "device": label, "abilities": asdict(found)}
    findings.write(path, content, "the device is tried at each start")
