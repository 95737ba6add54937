"""Commands about cameras in the world: calibrate one, and where it was in a clip."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heimdall.app.options import check_writable, parse_source
from heimdall.cli import console
from heimdall.cli.parameters import FILE, Parsed, json_option, options, show
from heimdall.errors import ConfigError

if TYPE_CHECKING:
    from heimdall.capture.lens import Motion


def parse_marker(text: str) -> tuple[str, int, float]:
    """``"DICT_4X4_50:3:0.05"`` to dictionary, number and metres; ConfigError if it is not that."""
    parts = text.split(":")
    try:
        name, number, width_m = parts[0], int(parts[1]), float(parts[2])
        if len(parts) == 3:
            return name, number, width_m
    except (ValueError, IndexError):
        pass
    raise ConfigError(f"{text!r}: expected DICT:ID:METRES, such as DICT_4X4_50:0:0.05")


def parse_gravity(text: str) -> Motion:
    """``"0,1,0.2"`` to where gravity pulls; ConfigError if it is not that."""
    from heimdall.capture.lens import Motion

    try:
        return Motion([float(each) for each in text.split(",")])
    except ValueError:
        raise ConfigError(f"{text!r}: expected X,Y,Z, such as 0,1,0") from None


def parse_target(text: str) -> tuple[str, float]:
    """``"poster.png:0.6"`` to a file and its width in metres; ConfigError if it is not that."""
    name, _, width = text.rpartition(":")
    try:
        if name:
            return name, float(width)
    except ValueError:
        pass
    raise ConfigError(f"{text!r}: expected IMAGE:METRES, such as poster.png:0.6")


def parse_squares(text: str) -> tuple[int, int]:
    """``"7x5"`` to columns and rows; ConfigError if it is not that."""
    match = re.fullmatch(r"([0-9]{1,3})[xX×]([0-9]{1,3})", text.strip())
    if match is None:
        raise ConfigError(f"{text!r}: expected COLUMNSxROWS, such as 7x5")
    return int(match[1]), int(match[2])


@click.command(cls=console.Command)
@options(
    click.option(
        "--source",
        default="0",
        show_default=True,
        metavar="SOURCE",
        help="The camera: its number, or a clip, stream or pipeline of it.",
    ),
    click.option("--board", "print_to", type=FILE, help="Write the board (.pdf, .png), and end."),
    click.option(
        "--squares",
        type=Parsed("COLUMNSxROWS", parse_squares),
        default="7x5",
        show_default=True,
        help="Of the board; how large they are does not matter.",
    ),
    click.option(
        "--dictionary",
        default="DICT_4X4_50",
        show_default=True,
        metavar="NAME",
        help="Of its markers, as OpenCV calls it.",
    ),
    click.option(
        "--save", type=FILE, help="Write the camera file (.toml) there, not where runs look."
    ),
    click.option("--frames", type=click.IntRange(1), metavar="N", help="Stop after N frames."),
    json_option,
)
def calibrate(
    source: str,
    print_to: Path | None,
    squares: tuple[int, int],
    dictionary: str,
    save: Path | None,
    frames: int | None,
    as_json: bool,
) -> None:
    """Measure a camera's focal lengths, centre and distortion with a printed board.

    Print the board with --board board.pdf and stick it to something flat, or show it on a screen.
    Then move and tilt it before the camera: near and far, into all corners of the picture. Runs
    and `heimdall pose` use what was found whenever they open the same source.
    """
    with console.work(as_json):
        from heimdall.tracking.pose.calibration import ChessBoard
        from heimdall.tracking.pose.clips import calibrate as calibrated
        from heimdall.tracking.pose.paper import KINDS, print_board

        router = ChessBoard(*squares, dictionary)
        if print_to is not None:
            check_writable("board", print_to, KINDS)
            print_board(router, print_to)
            found = {"schema": 1, "board": str(print_to), "squares": list(squares)}
        else:
            check_writable("save", save, (".toml",))
            found = calibrated(
                str(parse_source(source)),
                router,
                save=save,
                most=frames,
                tell=lambda said: click.echo(said, err=True),
            )
    show(as_json, found, "heimdall.cli.tables:calibration_report")


@click.command(cls=console.Command)
@click.argument("source")
@options(
    click.option(
        "--camera",
        type=FILE,
        help="Its intrinsics: of calibrate, ROS, OpenCV, Kalibr, COLMAP, RealSense; else as "
        "calibrated.",
    ),
    click.option(
        "--marker",
        "markers",
        multiple=True,
        type=Parsed("DICT:ID:METRES", parse_marker),
        help="A marker and the side of its black square; repeat for more.",
    ),
    click.option(
        "--target",
        "pictures",
        multiple=True,
        type=Parsed("IMAGE:METRES", parse_target),
        help="A flat picture and its width; repeat for more.",
    ),
    click.option("--no-map", is_flag=True, help="Do not remember what is around the targets."),
    click.option("--world", is_flag=True, help="By the room, too; alone in a unit of its own."),
    click.option(
        "--gravity",
        type=Parsed("X,Y,Z", parse_gravity),
        help="With --world: where down was when it began, x right, y down, z ahead.",
    ),
    click.option("--frames", type=click.IntRange(1), metavar="N", help="Stop after N frames."),
    json_option,
)
def pose(
    source: str,
    camera: Path | None,
    markers: tuple[tuple[str, int, float], ...],
    pictures: tuple[tuple[str, float], ...],
    no_map: bool,
    world: bool,
    gravity: Motion | None,
    frames: int | None,
    as_json: bool,
) -> None:
    """Where the camera was in each frame of SOURCE: what `run` opens, a camera with --frames.

    The world's origin is the middle of the first marker (or, without any, the first target), x
    right, y up, z out of it. A pose leads from the world to the camera.

    With --world nothing needs to be known of the room: give it texture, and move the camera
    sideways. The world is that of a frame at the beginning, x right, y down, z ahead, without
    metres; planes that were found are told, too. With targets beside it the world is theirs, in
    metres, and the room says the pose where they are out of sight.
    """
    _check_ways(world, targets=bool(markers or pictures), no_map=no_map)
    if gravity is not None and not world:
        raise click.UsageError("--gravity is about the room: it goes with --world")
    with console.work(as_json):
        from heimdall.capture.camera_files import read_camera

        lens = read_camera(camera) if camera else None
        if world and not (markers or pictures):
            from heimdall.tracking.slam.clips import room_poses

            result = room_poses(str(parse_source(source)), lens, most=frames, gravity=gravity)
        else:
            from heimdall.tracking.pose import ImageTarget, Marker
            from heimdall.tracking.pose.clips import poses
            from heimdall.tracking.pose.targets import Target
            from heimdall.tracking.pose.tracker import PoseTracker
            from heimdall.tracking.pose.views import Views

            targets: list[Target] = [
                *(Marker(*each) for each in markers),
                *(ImageTarget(*each) for each in pictures),
            ]
            tracker = PoseTracker(targets, None if no_map else Views())
            if world:
                from heimdall.tracking.world.clips import carried_poses

                result = carried_poses(
                    str(parse_source(source)), lens, tracker, most=frames, gravity=gravity
                )
            else:
                result = poses(str(parse_source(source)), lens, tracker, most=frames)
    show(as_json, result, "heimdall.cli.tables:pose_report")


def _check_ways(world: bool, *, targets: bool, no_map: bool) -> None:
    """UsageError unless there is one way to find the camera."""
    if not world and not targets:
        raise click.UsageError(
            "nothing to find a pose by: give --marker or --target, or --world for the room itself"
        )
    if world and no_map and not targets:
        raise click.UsageError("--no-map is about targets: with --world the map is all there is")
