"""The command line: ``heimdall run APP`` and the tools around it.

Commands parse, call the module that does the work, and show what it returns. Heavy imports
are inside them, so that ``heimdall --help`` answers at once.
"""

from __future__ import annotations

import click

from heimdall.cli import (
    apps,
    comparisons,
    console,
    content,
    exits,
    networks,
    poses,
    serving,
    sessions,
    training,
)

COMMANDS = (
    apps.run,
    apps.new,
    apps.devices,
    apps.measure_part,
    apps.trace,
    networks.models,
    networks.profile,
    networks.partition,
    networks.check,
    exits.exits,
    content.content,
    comparisons.bench,
    comparisons.simulate,
    training.train_top,
    serving.serve,
    poses.calibrate,
    poses.pose,
    sessions.export,
)


@click.group(cls=console.Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="heimdall-ar", prog_name="heimdall")
@click.option("--debug", is_flag=True, help="Show tracebacks and what happens inside.")
def main(debug: bool) -> None:
    """Augmented-reality apps that run several neural networks and draw every frame on one GPU."""
    console.set_up_logging(debug)


for _command in COMMANDS:
    main.add_command(_command)
