"""Commands about sessions that were kept (``heimdall run --capture``)."""

from __future__ import annotations

from pathlib import Path

import click

from heimdall.cli import console
from heimdall.cli.parameters import FILE, json_option, options


@click.command(cls=console.Command)
@click.argument("session", type=FILE)
@options(
    click.option("--rerun", "output", type=FILE, required=True, help="Write this file (.rrd)."),
    json_option,
)
def export(session: Path, output: Path, as_json: bool) -> None:
    """Write a kept SESSION (.mcap) for Rerun's viewer: pictures, results, latencies, decisions.

    Needs rerun-sdk (the extra `rerun`). Foxglove and other viewers of MCAP open the session itself.
    """
    with console.work(as_json):
        from heimdall.runtime.telemetry.rerun_file import export_rerun

        result = export_rerun(session, output)
    if as_json:
        console.print_json(result)
    else:
        counted = ", ".join(f"{count} {topic}" for topic, count in result["messages"].items())
        click.echo(f"{result['output']}: {counted}")
