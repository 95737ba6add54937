"""Kernels chosen by measurement in the background, once: after an app, in a process of its own.

Built-in tables and those of the device's family are good guesses; what this very machine does best
only a measurement tells, and no user should wait for it. So when an app has ended whose networks
were never tuned here, a detached child (``tuning_child``) does so: at the lowest priority there
is, on one core, one child at a time, for ten minutes at most. It ends at once when the next app or
measurement starts, and goes on after that. ``HEIMDALL_TUNE=off`` declines it.

Not where the software GPU has several cores: on one core something else would be measured, and on
all of them it would be in the way of all else. Not on battery, nor in a CI system's job.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from heimdall.errors import ConfigError
from heimdall.runtime.opening import background, building
from heimdall.runtime.opening.background import TUNING
from heimdall.system import findings, paths, private, python
from heimdall.vocabulary.processors import GPU

if TYPE_CHECKING:
    from heimdall.runtime.execution.deployment import Deployment
    from heimdall.runtime.execution.processors import Processors

log = logging.getLogger(__name__)

LIMIT_S = 600.0
TRIES = 3  # of a network whose tuning did not come to its end
CHILD = python.command("heimdall.runtime.opening.tuning_child")
_OFF = ("off", "0", "no", "false")


@dataclass(frozen=True)
class Task:
    """What a child is given: networks, and the device as the app asked for it, which must turn
    out to be ``label`` again. ``asked_ns``: when, of the system's clock; ``mode``: what profiles
    are kept under."""

    device: str | None
    label: str
    works: tuple[building.Task, ...]
    asked_ns: int
    mode: str

    def key(self, work: building.Task) -> str:
        """Under which tries of a network are counted."""
        return f"{work.path} {work.shapes} {work.precision} on {self.label}"

    @classmethod
    def from_json(cls, text: str) -> Task:
        """What ``json.dumps(asdict(task))`` was made of."""
        content = json.loads(text)
        works = tuple(building.Task(**each) for each in content.pop("works"))
        return cls(works=works, **content)


def wanted(
    processors: Processors, deployments: Mapping[str, Deployment], device: object
) -> Task | None:
    """The networks of an app that were never tuned on this machine; None where there are none,
    or it should not be done here."""
    software = processors.software
    if not permitted() or (software is not None and len(software.gpu_cores) > 1):
        return None
    if device is not None and not isinstance(device, str):
        return None  # an engine of the program's own
    works = [
        building.Task.of(deployment, declared)
        for deployment in deployments.values()
        if deployment.plan.built and not deployment.dnn.force_fallback
        for declared, loaded in zip(
            deployment.pipeline.networks, deployment.networks(GPU), strict=True
        )
        if not loaded.tuned
    ]
    label, mode = processors.gpu.describe()["device"], processors.profile_key
    task = Task(device, label, tuple(works), time.time_ns(), mode)
    counts = tries()
    left = tuple(each for each in works if counts.get(task.key(each), 0) < TRIES)
    return replace(task, works=left) if left else None


def permitted() -> bool:
    """Whether the user, and the machine's state, let something run in the background."""
    if os.environ.get("HEIMDALL_TUNE", "").lower() in _OFF or os.environ.get("CI"):
        return False
    sensors = getattr(psutil, "sensors_battery", None)  # not on every system
    battery = sensors() if sensors else None
    return battery is None or bool(battery.power_plugged)


def start(task: Task) -> None:
    """Start a child for the task, unless one is at work, and tell the user. Best effort."""
    try:
        if paths.why_no_cache():  # what it found would not last
            return
        with background.alone(TUNING) as free:
            if not free:
                return
        folder = background.folder(TUNING)
        with open(folder / "background.log", "wb", opener=private.opener) as output:
            # Only Windows has these, and no start_new_session.
            flags = ("DETACHED_PROCESS", "CREATE_NEW_PROCESS_GROUP", "IDLE_PRIORITY_CLASS")
            child = subprocess.Popen(
                [*CHILD, json.dumps(asdict(task))],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                creationflags=sum(getattr(subprocess, name, 0) for name in flags),
            )
    except (OSError, ConfigError) as error:
        log.debug("no tuning in the background: %s", error)
        return
    child.returncode = 0  # it is not waited for, which must not warn
    log.info(
        "choosing faster kernels in the background, once, for %g minutes at most, when no app runs "
        "(HEIMDALL_TUNE=off declines; log: %s)",
        *(LIMIT_S / 60, folder / "background.log"),
    )


def tries() -> dict[str, int]:
    """How often each network's tuning has begun without coming to its end."""

    def parse(content: Any) -> dict[str, int]:
        return {str(key): int(count) for key, count in content.items()}

    return findings.read(_tries_file(), parse, "tuning is tried again") or {}


def count_try(key: str, by: int) -> None:
    """One more (1), or one less (-1): it has ended well, or was interrupted."""
    counts = tries()
    counts[key] = counts.get(key, 0) + by
    kept = {name: count for name, count in counts.items() if count > 0}
    findings.write(_tries_file(), kept, "tuning may be tried too often")


def _tries_file() -> Path:
    return background.folder(TUNING) / "tries.json"
