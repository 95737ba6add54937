"""Commands about apps: run one, write one, replay a run, and see what they would run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heimdall.app.options import RunOptions, parse_source
from heimdall.cli import console
from heimdall.cli.parameters import (
    FILE,
    PRESS,
    SERVE,
    SIZE,
    Named,
    app_argument,
    cores_option,
    device_option,
    json_option,
    options,
    policy_option,
    processors_option,
    realtime_option,
    scheduler_names,
    show,
)
from heimdall.vocabulary.enums import (
    Admission,
    ChunkMode,
    Content,
    Luminance,
    OverlayView,
    PhoneView,
)


@click.command(cls=console.Command)
@app_argument
@options(
    click.option(
        "--source",
        metavar="SOURCE",
        help="Camera index, file, stream URL or image; or kind:rest, such as picamera:0.",
    ),
    click.option(
        "--sound",
        metavar="SOUND",
        help="For networks that hear: microphone, microphone:NAME, phone, or a file.",
    ),
    click.option("--fps", type=float, help="Target frame rate."),
    click.option("--size", type=SIZE, help="Picture drawn, such as 1280x720."),
    click.option(
        "--scheduler",
        cls=Named,
        names=scheduler_names,
        metavar="NAME",
        help="Policy that picks the next chunk: a name, or path/to/file.py[:Class].",
    ),
    click.option("--static", is_flag=True, help="One chunk of the static partition a gap."),
    click.option("--no-offload", is_flag=True, help="Keep every DNN on the GPU."),
    click.option(
        "--content", type=click.Choice(Content.values()), help="How a changing scene counts."
    ),
    click.option(
        "--luminance",
        type=click.Choice(Luminance.values()),
        help="Of what its change is summed: means of cells, or every pixel.",
    ),
    click.option(
        "--admission",
        type=click.Choice(Admission.values()),
        help="Whether an inference begins anew where a newer frame or request comes.",
    ),
    device_option,
    cores_option,
    click.option(
        "--cpu-workers", type=int, metavar="N", help="DNNs that the CPU runs at once; 1 by default."
    ),
    processors_option,
    click.option(
        "--remote",
        metavar="grpc://HOST:PORT",
        help="A server that DNNs may be offloaded to, such as `heimdall serve` is.",
    ),
    realtime_option,
    policy_option,
    click.option("--headless", is_flag=True, help="Draw without a window."),
    click.option(
        "--serve",
        type=SERVE,
        help="Show the picture in a web page instead of a window; keys and pointer work there.",
    ),
    click.option(
        "--phone",
        is_flag=False,
        flag_value=str(PhoneView.VIDEO),
        type=click.Choice(PhoneView.values()),
        help="A phone's browser is the screen, and without --source the camera, too. overlay: it "
        "shows its camera at once, and what the app draws over it.",
    ),
    click.option(
        "--certificate", type=FILE, help="With --phone: a PEM file with its key, for HTTPS."
    ),
    click.option(
        "--turn",
        envvar="HEIMDALL_TURN",
        metavar="turn:USER:PASSWORD@HOST:PORT",
        help="With --phone: a relay for phones that reach this machine in no other way.",
    ),
    click.option(
        "--build-first",
        is_flag=True,
        help="Build all networks for the GPU before the first frame.",
    ),
    click.option("--full-screen", is_flag=True, help="Fill the screen."),
    click.option(
        "--overlay",
        type=click.Choice(OverlayView.values()),
        default=str(OverlayView.PANEL),
        help="What to show of it.",
    ),
    click.option(
        "--press",
        type=PRESS,
        multiple=True,
        help="Press a key so many seconds after warm-up, such as 2.5:f5; repeat for more.",
    ),
    click.option(
        "--frames",
        type=int,
        metavar="N",
        help="Stop after N frames, counted from when all networks are on the GPU.",
    ),
    click.option(
        "--seconds", type=float, metavar="S", help="Stop after S seconds, counted from then, too."
    ),
    click.option(
        "--virtual-camera",
        is_flag=False,
        flag_value="any",
        metavar="[DEVICE]",
        help="Be a camera of this machine, for video calls; DEVICE: which, such as /dev/video9.",
    ),
    click.option("--record", type=FILE, help="Write a video (.mp4)."),
    click.option("--screenshot", type=FILE, help="Write the last frame (.png)."),
    click.option("--trace", type=FILE, help="Write a timeline for ui.perfetto.dev."),
    click.option(
        "--capture",
        type=FILE,
        help="Keep the session (.mcap): frames, inputs, results, decisions. It is a source, too.",
    ),
    click.option("--lossless", is_flag=True, help="With --capture: pictures as PNG, not JPEG."),
    click.option(
        "--no-inputs",
        is_flag=True,
        help="With a kept session as --source: do not do again what its user did.",
    ),
    click.option("--reload", is_flag=True, help="Begin the app anew when its file is saved."),
    json_option,
)
def run(
    app: str,
    source: str | None,
    static: bool,
    no_offload: bool,
    no_inputs: bool,
    reload: bool,
    as_json: bool,
    **rest: Any,
) -> int:
    """Run APP: the name of a bundled app, or path/to/file.py[:Class].

    Without --source an app uses the camera; where there is none, and with --headless, its own
    clip in a loop.

    With --serve 8080 the address of the page, which holds a token, is printed on standard error.
    Only this machine can open it; --serve 0.0.0.0:8080 lets others. The app's demo script then
    does not play, because a person is at the controls.

    With --phone a phone in the same network opens the address that is printed, or scans its code:
    see docs/do/phone.md.

    With --reload the app's class begins anew when its file is saved; camera, window and networks go
    on. Changes to what the run was opened with (DNNs and their preprocess and decode, world, size,
    fps, scheduler) need a new run, and so the overlay says; a file that cannot be loaded is told
    there, too, and the class before goes on.

    On a first start networks are built while frames are drawn already, and figures count from when
    that is over, as --frames and --seconds do: how long the whole takes depends on the machine.

    The status is 2 where an output could not be written, and where something was given up: a method
    of the app that always raised, a policy, a DNN without a result.

    After the run, kernels of networks that are new on this machine are measured in the background,
    once; HEIMDALL_TUNE=off declines.
    """
    chosen = RunOptions(
        source=parse_source(source),
        mode=ChunkMode.STATIC if static else ChunkMode.ELASTIC,
        offload=not no_offload,
        inputs=not no_inputs,
        **rest,
    )
    with console.uncollected(), console.work(as_json), console.ProgressBars() as progress:
        from heimdall.runtime.run import run_app

        summary = run_app(app, chosen, progress, tune_afterwards=True, reload=reload)
    show(as_json, summary, "heimdall.cli.run_tables:run_summary")
    unsaved = any(out["error"] for out in summary.get("outputs", {}).values())
    return console.FAILED if unsaved or summary.get("given_up") else 0


@click.command(cls=console.Command)
@click.argument("name")
@options(
    click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(),
        help="Where to write it.",
    ),
    json_option,
)
def new(name: str, folder: Path, as_json: bool) -> None:
    """Write NAME.py, an app that runs and explains itself, and its test."""
    with console.work(as_json):
        from heimdall.cli.scaffold import new_app

        app, test = new_app(name, folder)
    if as_json:
        console.print_json({"schema": 1, "app": str(app), "test": str(test)})
    else:
        click.echo(
            f"{app}\n{test}\n\nRun it:   heimdall run {app}\nTest it:  python -m pytest {test}"
        )


@click.command(cls=console.Command)
@json_option
def devices(as_json: bool) -> None:
    """Show GPU, software GPU, OpenGL, onnxruntime and cameras."""
    with console.work(as_json):
        from heimdall.runtime.opening.devices import list_devices

        report = list_devices()
    show(as_json, report, "heimdall.cli.tables:device_report")
