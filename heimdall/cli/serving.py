"""The command that serves networks to other processes."""

from __future__ import annotations

from typing import Any

import click

from heimdall.app.options import parse_source
from heimdall.cli import console
from heimdall.cli.parameters import (
    FILE,
    SIZE,
    Named,
    completing,
    cores_option,
    device_option,
    input_options,
    json_option,
    known_apps,
    options,
    processors_option,
    scheduler_names,
    show,
)

PORT = click.IntRange(0, 65535)


@click.command(cls=console.Command)
@click.argument("app", required=False, shell_complete=completing(known_apps))
@options(
    click.option(
        "--model",
        "models",
        metavar="NAME=FILE",
        multiple=True,
        required=True,
        help="Serve an .onnx file under a name; repeat for more.",
    ),
    input_options,
    click.option(
        "--slo-ms",
        type=float,
        default=1000.0,
        show_default=True,
        help="Within which a request that names no SLO should be answered.",
    ),
    click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen."),
    click.option("--http-port", type=PORT, default=8000, show_default=True, help="Of REST."),
    click.option("--grpc-port", type=PORT, default=8001, show_default=True, help="Of gRPC."),
    click.option("--no-http", is_flag=True, help="Serve by gRPC alone."),
    click.option("--no-grpc", is_flag=True, help="Serve by REST alone."),
    click.option("--tls-certificate", type=FILE, help="A PEM file; goes with --tls-key."),
    click.option("--tls-key", type=FILE, help="A PEM file."),
    click.option(
        "--token-file",
        type=FILE,
        help="Let in only those who know the token in it; default: that in HEIMDALL_TOKEN.",
    ),
    click.option(
        "--insecure", is_flag=True, help="Let other machines in without a token (--host)."
    ),
    click.option("--max-clients", type=int, metavar="N", help="Connections at once; 64."),
    click.option("--max-waiting", type=int, metavar="N", help="Requests at once; 64."),
    click.option("--max-megabytes", type=float, metavar="MB", help="Of one request; 64."),
    click.option(
        "--scheduler",
        cls=Named,
        names=scheduler_names,
        metavar="NAME",
        help="Policy that picks the next chunk: a name, or path/to/file.py[:Class].",
    ),
    device_option,
    cores_option,
    click.option("--cpu-workers", type=int, metavar="N", help="Jobs that the CPU runs at once; 1."),
    processors_option,
    click.option("--source", metavar="SOURCE", help="Of APP: as for `heimdall run`."),
    click.option("--fps", type=float, help="Of APP: target frame rate."),
    click.option("--size", type=SIZE, help="Of APP: picture drawn, such as 1280x720."),
    click.option("--headless", is_flag=True, help="Of APP: draw without a window."),
    click.option("--seconds", type=float, metavar="S", help="Stop after S seconds."),
    json_option,
)
def serve(app: str | None, as_json: bool, **given: Any) -> None:
    """Serve networks to other programs by the Open Inference Protocol (KServe v2, REST and gRPC).

    Triton's clients work as they are (pip install tritonclient[all]). Requests may carry slo_ms and
    priority. With APP, the name of a bundled app or a file, it runs beside: its frames come first,
    requests in the gaps between them.

    Only programs of this machine can connect; --host 0.0.0.0 lets others, with a token.
    """
    with console.uncollected(), console.work(as_json), console.ProgressBars() as progress:
        found = _host(app, progress, **given)
    show(as_json, found, "heimdall.cli.tables:serve_report")


def _host(app: str | None, progress: console.ProgressBars, **given: Any) -> dict[str, Any]:
    try:
        from heimdall.serve.hosting import HostOptions, host, parse_offers, tls_of
        from heimdall.serve.limits import Limits
        from heimdall.system.token import read_token
    except ImportError as error:
        from heimdall.errors import DeviceError
        from heimdall.system.extras import line

        raise DeviceError(f"serving needs more packages ({error}): {line('serve')}") from error

    take = given.pop
    offers = parse_offers(take("models"), take("slo_ms"), take("shapes"))
    tls = tls_of(take("tls_certificate"), take("tls_key"))
    asked = {"clients": take("max_clients"), "waiting": take("max_waiting")}
    megabytes = take("max_megabytes")
    asked["request_bytes"] = None if megabytes is None else int(megabytes * 1e6)
    limits = Limits(**{name: value for name, value in asked.items() if value is not None})
    http_port, grpc_port = take("http_port"), take("grpc_port")
    place = HostOptions(
        take("host"),
        None if take("no_http") else http_port,
        None if take("no_grpc") else grpc_port,
        tls,
        limits,
        token=read_token(take("token_file")),
        insecure=take("insecure"),
    )
    source, headless = take("source"), take("headless")
    wishes = {name: value for name, value in given.items() if value is not None}
    if app is not None:
        wishes |= {"source": parse_source(source) if source else None, "window": not headless}
    return host(offers, place, app, progress=progress, **wishes)
