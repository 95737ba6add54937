"""Faults of what a run reads from files, and writes."""

from __future__ import annotations

import ctypes
import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from heimdall.errors import DeviceError
from heimdall.lab.faults.fault import Fault, on_cpu
from heimdall.lab.faults.judge import figures, verdict
from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.running import run_trial
from heimdall.lab.faults.trial import Trial
from heimdall.system.paths import cache_dir, why_no_cache

SEED = 1
_UNSAVED, _UNUSED = "cannot be saved", "cannot be written"
_SMALL = ("--size", "320x180")
_MODES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3


# --- a disk that is full ---------------------------------------------------------------------


def _full(moment: Moment) -> None:
    """No file can be written to while the fault is there: the system refuses it as it does on a
    full disk. Pipes are no files."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def begin() -> None:
        moment.acted()
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))

    moment.during(begin, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits))


def _full_cache(moment: Moment) -> None:
    """Until the fault ends, from before the run's start, the cache is on a full disk: what Python
    opens there to write is refused. Other folders are not."""
    folder = str(cache_dir())

    def refuse(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or moment.ended or not str(args[0]).startswith(folder):
            return
        if args[2] & (os.O_WRONLY | os.O_RDWR):
            moment.acted()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), args[0])

    sys.addaudithook(refuse)


def _limited(request: Request) -> str:
    return "this system limits no files" if sys.platform == "win32" else ""


def _writing(option: str, ending: str) -> Callable[[Trial], Sequence[str]]:
    def arguments(trial: Trial) -> Sequence[str]:
        return (option, str(trial.folder / "out" / f"run{ending}"))

    return arguments


# --- a cache folder --------------------------------------------------------------------------


def _new_cache(trial: Trial) -> None:
    trial.environment["HEIMDALL_CACHE"] = str(trial.folder / "cache")


def _filled_cache(trial: Trial) -> Path:
    """A cache that a run has filled."""
    _new_cache(trial)
    command = [sys.executable, "-m", "heimdall", "run", trial.request.app, "--headless"]
    environment = {**os.environ, **trial.environment, "HEIMDALL_TUNE": "off"}
    words = [*command, *on_cpu(trial), "--seconds", "1"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise DeviceError(f"a cache cannot be filled: {done.stderr.strip()[-200:]}")
    return trial.folder / "cache"


def _damage(trial: Trial) -> None:
    """Every file is half as long, and noise."""
    noise = random.Random(SEED)
    for path in filter(Path.is_file, _filled_cache(trial).rglob("*")):
        path.write_bytes(noise.randbytes(path.stat().st_size // 2))
        trial.acted = True


def _protect(trial: Trial) -> None:
    """Nobody may write there. It lacks what a run would keep, so that one tries."""
    cache = _filled_cache(trial)
    for path in cache.rglob("*.json"):
        path.unlink()
    folders = [cache, *filter(Path.is_dir, cache.rglob("*"))]
    _set_modes(folders, 0o555)
    trial.afterwards.callback(_set_modes, folders, 0o755)


def _set_modes(folders: Sequence[Path], mode: int) -> None:
    for folder in folders:
        folder.chmod(mode)


def _obey_modes() -> None:
    """Root may write anywhere: from now on this thread, and those that it starts, may not."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return
    system = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, twice
    if system.capget(header, sets) == 0:
        sets[0] &= ~_MODES & 0xFFFFFFFF
        system.capset(header, sets)


def _read_only(moment: Moment) -> None:
    _obey_modes()
    if why_no_cache():
        moment.acted()


def _share(fault: Fault, request: Request, folder: Path) -> dict[str, Any]:
    """Two runs that begin at the same time on one empty cache; the figures of the first, and what
    is wrong with either. They share the cores, too, so frames are not judged."""
    one = replace(fault, by_hand=None, arguments=lambda trial: (*on_cpu(trial), *_SMALL))
    trials = [Trial(request, folder / str(number)) for number in range(2)]
    for trial in trials:
        trial.environment["HEIMDALL_CACHE"] = str(folder / "cache")
    with ThreadPoolExecutor(len(trials)) as pool:
        outcomes = list(pool.map(partial(run_trial, one), trials))
    why = [f"left: file {each.name}" for each in (folder / "cache").rglob(".*")]
    for outcome in outcomes:
        why += [f"left: {each}" for each in outcome.left]
        why += (outcome.summary or {}).get("errors", [])
        why += [f"it ended with status {outcome.status}"] if outcome.status != 0 else []
    return verdict(fault, why, **figures(one, outcomes[0]))


FAULTS = (
    Fault(
        "disk-full-record",
        "The disk is full while a video is recorded.",
        _full,
        arguments=_writing("--record", ".mp4"),
        needs=_limited,
    ),
    Fault(
        "disk-full-capture",
        "The disk is full while a session is kept.",
        _full,
        arguments=_writing("--capture", ".mcap"),
        needs=_limited,
    ),
    Fault(
        "disk-full-cache",
        "The disk is full when a first start fills the cache.",
        _full_cache,
        prepare=_new_cache,
        arguments=on_cpu,
        logged=_UNSAVED,
    ),
    Fault(
        "cache-damaged",
        "Every file of the cache is damaged.",
        prepare=_damage,
        arguments=on_cpu,
        told=False,
    ),
    Fault(
        "cache-read-only",
        "The cache cannot be written to.",
        _read_only,
        prepare=_protect,
        arguments=on_cpu,
        logged=_UNUSED,
    ),
    Fault(
        "cache-shared",
        "Two runs begin at once with one empty cache.",
        told=False,
        by_hand=_share,
    ),
)
