"""Tries faults one after the other."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import load_app
from heimdall.errors import ConfigError, HeimdallError
from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.judge import judge, verdict
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.running import run_trial
from heimdall.lab.faults.table import FAULTS, fault_named
from heimdall.lab.faults.trial import Trial

SCHEMA = 1


def try_faults(
    request: Request, only: Sequence[str] = (), progress: Progress = no_progress
) -> dict[str, Any]:
    """What ``heimdall faults --json`` prints: the verdict on each fault, or on those named.
    Interrupted, on those that were tried. Raises ConfigError for a name that there is not, and on a
    system whose processes cannot be watched; what ``load_app`` raises."""
    if os.name == "nt":
        raise ConfigError("faults need signals and pipes as Linux and macOS have them")
    load_app(request.app)
    chosen = [fault_named(name) for name in only] if only else list(FAULTS)
    left_out = {each.name: why for each in chosen if (why := each.needs(request))}
    found, interrupted = [], False
    try:
        for fault in chosen:
            if fault.name not in left_out:
                progress(fault.name, 0, 1)
                found.append(try_fault(fault, request))
                progress(fault.name, 1, 1)
    except KeyboardInterrupt:
        interrupted = True
    return {
        "schema": SCHEMA,
        "app": request.app,
        "seconds": request.seconds,
        "faults": found,
        "left_out": left_out,
        "interrupted": interrupted,
    }


def listed() -> dict[str, Any]:
    """What ``heimdall faults --list --json`` prints."""
    return {
        "schema": SCHEMA,
        "faults": [{"fault": each.name, "what": each.what} for each in FAULTS],
    }


def try_fault(fault: Fault, request: Request) -> dict[str, Any]:
    """The verdict on one fault."""
    with tempfile.TemporaryDirectory(prefix="heimdall-faults-") as folder:
        try:
            if fault.by_hand is not None:
                return fault.by_hand(fault, request, Path(folder))
            return judge(fault, run_trial(fault, Trial(request, Path(folder))))
        except HeimdallError as error:  # what it needs cannot be had
            return verdict(fault, [str(error)])
