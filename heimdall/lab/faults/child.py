"""The process of a run with a fault: ``heimdall run`` as it is typed, but watched.

python -m heimdall.lab.faults.child SPEC      a ``Spec`` as JSON
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from heimdall.cli import main as command
from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.notes import Notes
from heimdall.lab.faults.request import Spec


def main(text: str) -> None:
    """Ends the process with the status of the command."""
    _hear_signals()
    spec = Spec(**json.loads(text))
    note = Notes(spec.notes)
    moment = Moment(spec.after_s, spec.lasts_s, note)
    _observe(spec.fault, moment)
    note("entered")
    sys.argv[1:] = spec.arguments
    command()


def _hear_signals() -> None:
    """As a terminal starts a program: one in the background may have been told to ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def _observe(fault: str, moment: Moment) -> None:
    """Have the next run watched, and the fault injected into it."""
    from heimdall.lab.faults.table import fault_named
    from heimdall.lab.faults.watch import Standing, watch
    from heimdall.runtime import run as running

    run_app = running.run_app

    def run_watched(target: Any, *args: Any, **more: Any) -> dict[str, Any]:
        standing = Standing()
        moment.app = running.as_app(target)
        watch(moment)
        fault_named(fault).inject(moment)
        try:
            return run_app(moment.app, *args, **more)
        finally:
            moment.note("over")
            moment.note("left", standing.left(moment))

    running.run_app = run_watched


if __name__ == "__main__":
    main(sys.argv[1])
