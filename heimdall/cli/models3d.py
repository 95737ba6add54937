"""The command about 3-D models."""

from __future__ import annotations

from pathlib import Path

import click

from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.cli.parameters import FILE, SIZE, json_option, options, show


@click.command(cls=console.Command)
@click.argument("file", type=click.Path(path_type=Path))
@options(
    click.option("--png", type=FILE, help="Save a picture of it."),
    click.option("--size", type=SIZE, help="Size of the picture.  [default: 1280x720]"),
    click.option("--environment", type=FILE, help="An environment map to light it by."),
    click.option("--animation", metavar="NAME", help="Show a moment of this animation."),
    click.option(
        "--time", "time_s", type=float, default=0.0, metavar="S", help="Which moment, in seconds."
    ),
    json_option,
)
def model3d(
    file: Path,
    png: Path | None,
    size: tuple[int, int] | None,
    environment: Path | None,
    animation: str | None,
    time_s: float,
    as_json: bool,
) -> int:
    """Draw the 3-D model FILE (.glb, .gltf, .vrm, .obj), and tell what is in it and what it costs.

    The status is 2 for a file that cannot be drawn.
    """
    with console.work(as_json):
        from heimdall.render.content.look import look

        check_writable("png", png, (".png", ".jpg"))
        found = look(
            file,
            size or (1280, 720),
            png=png,
            environment=environment,
            animation=animation,
            time_s=time_s,
        )
    show(as_json, found, "heimdall.cli.tables:model3d_report")
    return console.FAILED if found["error"] else 0
