"""Which device to use: each is tried in a child process before this one depends on it.

What is found is kept for the device, its driver and this version of the engine; a start after
that reads one small file. A device that was refused is tried again by ``heimdall devices``.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyopencl as cl

from heimdall.engine.opencl import abilities as kept
from heimdall.engine.opencl import icd
from heimdall.engine.opencl.abilities import Abilities
from heimdall.engine.opencl.device import devices, driver, is_gpu, label, missing, select
from heimdall.engine.opencl.version import packages, version
from heimdall.errors import DeviceError
from heimdall.system import paths, python
from heimdall.system.child import BROKEN, LIMIT_S, watch

log = logging.getLogger(__name__)

TRIAL = python.command("heimdall.engine.opencl.trial")
# Steps that need no compiler: what opening a device takes.
FIRST = ("opens", "clock", "ways", "priority")
REQUIRED = {  # without these a device is refused
    "opens": "it cannot be opened",
    "ways": "its memory cannot be written and read",
    "network": "it does not compute a small network",
}
CLEARLY = 0.9  # of another CPU device's time: the default does not change by chance


def choose(wanted: str | int | None = None) -> tuple[cl.Device, Abilities]:
    """The device asked for, else the first GPU that can be used, else the fastest of the CPU's.

    Raises DeviceError when there is none, with what each failed at.
    """
    if wanted not in (None, ""):
        device = select(wanted)
        found = abilities_of(device)
        if found.refused:
            raise DeviceError(f"{label(device)} cannot be used: {found.refused}")
        return device, found
    candidates = devices()
    if not candidates:
        raise DeviceError(missing())
    able: list[tuple[cl.Device, Abilities]] = []
    refused = []
    for device in candidates:
        if able and is_gpu(able[0][0]):
            break
        several = not is_gpu(device) and len(candidates) > 1
        found = abilities_of(device, compare=several)
        if found.refused:
            refused.append(f"{label(device)} cannot be used: {found.refused}")
            log.warning("%s", refused[-1])
        else:
            able.append((device, found))
    if not able:
        raise DeviceError("; ".join(refused))
    best = able[0]
    for other in able[1:]:
        if 0 < other[1].network_ns < CLEARLY * best[1].network_ns:
            best = other
    return best


def choose_soon(wanted: str | int | None = None) -> tuple[cl.Device, Abilities, bool]:
    """``choose`` without waiting for a compiler, if possible: the device, what is known of it, and
    whether that is all. Else only ``FIRST`` has been tried, and ``abilities_of`` may still refuse
    it.

    Raises DeviceError as ``choose`` does.
    """
    device = select(wanted) if wanted not in (None, "") else _likely()
    if device is not None and kept.read(_path(device)) is None:
        found = look(device, steps=FIRST)
        if not found.refused:
            return device, found, False
    return (*choose(wanted), True)


def _likely() -> cl.Device | None:
    """The device that ``choose`` takes unless it turns out to be of no use; None where the
    speeds of several must be compared first."""
    left = []
    for device in devices():
        known = kept.read(_path(device))
        if known is None or not known.refused:
            left.append(device)
    alone = left and (is_gpu(left[0]) or len(left) == 1)
    return left[0] if alone else None


def abilities_of(
    device: cl.Device,
    *,
    again: bool = False,
    compare: bool = False,
    yields: bool = False,
    stop: threading.Event | None = None,
) -> Abilities:
    """What the device can do: as kept, or tried now. ``again``: try a refused one once more;
    ``compare``: ``network_ns`` must be known, unless it is refused; ``yields``: whatever else is
    being done comes first. Raises DeviceError when ``stop`` was set before it was known."""
    path = _path(device)
    known = kept.read(path)
    if known is not None:
        missing = compare and not known.network_ns and "speed" not in dict(known.lacks)
        if not (again if known.refused else missing):
            return known
    log.info("trying what %s can do", label(device))
    found = look(device, compare=compare, yields=yields, stop=stop)
    if stop is not None and stop.is_set():  # what a child has not tried is not refused
        raise DeviceError(f"trying what {label(device)} can do was ended")
    kept.write(path, label(device), found)
    for name, why in found.lacks:
        log.info("%s: without %s: %s", label(device), name, why)
    return found


def look(
    device: cl.Device,
    command: Sequence[str] = TRIAL,
    limit_s: float = LIMIT_S,
    *,
    compare: bool = False,
    steps: Sequence[str] = (),
    yields: bool = False,
    stop: threading.Event | None = None,
) -> Abilities:
    """Try a device in children: one, and another after each step that ended the one before.
    ``steps``: only these (default: all). Raises DeviceError where none begins: that says nothing of
    the device."""
    place = devices().index(device)
    found: dict[str, Any] = {}
    while True:
        task = {"device": place, "label": label(device), "known": found, "compare": compare}
        task |= {"steps": list(steps)} if steps else {}
        outcome = watch(
            [*command, json.dumps(task)],
            icd.drivers().environment,
            limit_s,
            stop=stop,
            yields=yields,
        )
        found.update(outcome.found)
        if not outcome.ended:
            return gathered(found)
        if outcome.broken:
            raise DeviceError(f"{BROKEN}, so that {label(device)} cannot be tried: {outcome.ended}")
        if outcome.step in found or not outcome.step:
            return Abilities(refused=f"it cannot be tried: {outcome.ended}")
        found[outcome.step] = {"value": None, "why": outcome.ended}
        if outcome.step in REQUIRED:
            return gathered(found)


def gathered(found: dict[str, Any]) -> Abilities:
    """The abilities of what the steps found: ``{"value": ..., "why": ...}`` by name."""
    values = {name: each["value"] for name, each in found.items()}
    lacks = tuple((name, each["why"]) for name, each in found.items() if each["why"])
    refused = [f"{REQUIRED[name]}: {why}" for name, why in lacks if name in REQUIRED]
    return Abilities(
        prefetch=bool(values.get("prefetch")),
        half=bool(values.get("half")),
        groups=bool(values.get("groups")),
        clock=bool(values.get("clock")),
        binaries=bool(values.get("binaries")),
        walk=bool(values.get("walk")),
        ways=tuple(values.get("ways") or ()),
        priority=str(values.get("priority") or ""),
        network_ns=int(values.get("speed") or 0),
        refused=refused[0] if refused else "",
        lacks=lacks,
    )


def _path(device: cl.Device) -> Path:
    key = "\0".join((label(device), driver(device), version(), packages()))
    digest = hashlib.sha256(key.encode()).hexdigest()[:12]
    return paths.cache_dir() / "devices" / f"{paths.slug(label(device))}-{digest}.json"
