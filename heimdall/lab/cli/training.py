"""``heimdall train-top``: learning what runs together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heimdall.cli.console import ProgressBars, print_json, work
from heimdall.cli.parameters import FILE, completing, json_option
from heimdall.lab.cli.parameters import device_names, scenario_argument
from heimdall.system.extras import need


@click.command("train-top")
@scenario_argument
@click.option(
    "--device",
    metavar="NAME",
    shell_complete=completing(device_names),
    help="A GPU; the scenario's own by default.",
)
@click.option(
    "--steps", type=click.IntRange(1), default=2000, show_default=True, help="Of the actors."
)
@click.option(
    "--stage-steps",
    type=click.IntRange(1),
    default=1200,
    show_default=True,
    help="Of what cuts combined blocks into stages.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option(
    "--stages", type=FILE, help="Cut combined blocks by this .onnx instead of learning that."
)
@click.option(
    "--search/--no-search",
    default=True,
    show_default=True,
    help="Begin with a plan that is searched for, or with all blocks on their own.",
)
@click.option("--resume", type=FILE, help="Go on with the .pt that an earlier training has left.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/top"),
    show_default=True,
    help="The folder that all is written to.",
)
@json_option
def train_top(scenario: str, out: Path, as_json: bool, **rest: Any) -> None:
    """Learn for SCENARIO's models which of their blocks run together, and how often each model's
    queue is drawn from (TOP). Needs PyTorch: the extra ``learn``."""
    from heimdall.lab.bench.scenario import load_scenario
    from heimdall.lab.simulator.learning.training import train_top as train

    need("matplotlib", "lab", "train-top")
    with work(as_json), ProgressBars() as progress:
        result = train(load_scenario(scenario), out, progress=progress, **rest)
    if as_json:
        print_json(result)
        return
    for name in ("actor", "stages", "curves"):
        click.echo(f"{name:7} {result[name]}")
    click.echo(f"score   {result['score']} (2 is all requests of all models in time)")
