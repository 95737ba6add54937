"""``heimdall trace``: a recorded run, decided once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heimdall.cli import console
from heimdall.cli.parameters import FILE, json_option, show
from heimdall.errors import ConfigError, HeimdallError

if TYPE_CHECKING:
    from heimdall.runtime.telemetry.trace import Recording


@click.command(cls=console.Command)
@click.argument("file", type=FILE)
@click.option(
    "--scheduler",
    metavar="FILE",
    help="The run's policy, where that is your own: path/to/file.py[:Class].",
)
@click.option("--actor", type=FILE, help="What TOP had learnt, unless that is bundled (.onnx).")
@json_option
def trace(file: Path, scheduler: str | None, actor: Path | None, as_json: bool) -> None:
    """Replay a run recorded with `run --trace` or `run --capture` and show where a fresh
    coordinator differs."""
    with console.work(as_json):
        from heimdall.runtime.telemetry.trace import read_recording

        result = _replay(read_recording(file), scheduler, actor)
    show(as_json, result, "heimdall.lab.cli.tables:replay_report")


def _replay(recording: Recording, scheduler: str | None, actor: Path | None) -> dict[str, Any]:
    """The differences; ``stopped`` is why the replay could not go on, or None."""
    from heimdall.coordinator.replay import replay

    found: list[dict[str, Any]] = []
    stopped = None
    try:
        policy = None
        if scheduler is not None:
            from heimdall.schedulers import create

            policy = create(scheduler)
        elif "policy" in recording.config:
            from heimdall.lab.simulator.together.policies import remade

            policy = remade(recording.config, actor)
        for each in replay(recording.config, recording.records, policy):
            found.append(
                {
                    "step": each.index,
                    "now_ms": each.now_ns / 1e6,
                    "recorded": [str(action) for action in each.recorded],
                    "replayed": [str(action) for action in each.replayed],
                }
            )
    except ConfigError:
        raise
    except HeimdallError as error:  # it has gone another way, and an event cannot happen there
        stopped = str(error)
    steps = len(recording.records)
    return {"schema": 1, "steps": steps, "differences": found, "stopped": stopped}
