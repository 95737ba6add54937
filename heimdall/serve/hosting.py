"""``heimdall serve``: a session whose models other processes may ask, beside an app or alone."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import check_number
from heimdall.errors import ConfigError
from heimdall.graph.graph import Tensor
from heimdall.graph.onnx_file import Inputs
from heimdall.render.preview.address import is_loopback
from heimdall.runtime.session.models import inputs_by_model
from heimdall.runtime.session.session import Session
from heimdall.serve.declared import Declared, declared
from heimdall.serve.limits import Limits
from heimdall.serve.models import Tensors, check_name
from heimdall.serve.server import GRPC_PORT, HTTP_PORT, LOOPBACK, Server, Tls
from heimdall.system import paths

if TYPE_CHECKING:
    from heimdall.app.options import RunArguments

log = logging.getLogger(__name__)

SLO_MS = 1000.0


@dataclass(frozen=True)
class Offer:
    """A model that is to be served: its file, under a name, to be answered within ``slo_ms``."""

    name: str
    file: str
    slo_ms: float = SLO_MS
    shapes: Inputs = field(default_factory=dict)


@dataclass(frozen=True)
class HostOptions:
    """Where to listen, who may ask, and for how much; see ``Server``."""

    host: str = LOOPBACK
    http_port: int | None = HTTP_PORT
    grpc_port: int | None = GRPC_PORT
    tls: Tls | None = None
    limits: Limits = field(default_factory=Limits)
    token: str | None = None
    insecure: bool = False


def parse_offers(models: Sequence[str], slo_ms: float, shapes: Inputs) -> tuple[Offer, ...]:
    """Offers from ``NAME=FILE``s; ``shapes`` by ``NAME:INPUT``. Raises ConfigError for what is
    none, a name that comes twice, and a shape of no model."""
    check_number("slo_ms", slo_ms, above=0)
    files: dict[str, str] = {}
    for text in models:
        name, _, file = text.partition("=")
        if not file:
            raise ConfigError(f"--model {text}: expected NAME=FILE, such as detect=detect.onnx")
        if check_name(name) in files:
            raise ConfigError(f"--model {text}: there is a model {name!r} already")
        files[name] = file
    own = inputs_by_model(shapes, files)
    return tuple(Offer(name, file, slo_ms, own.get(name, {})) for name, file in files.items())


def host(
    offers: Sequence[Offer],
    place: HostOptions,
    app: str | None = None,
    *,
    seconds: float | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> dict[str, Any]:
    """Serve until the app's window is closed, ``seconds`` are over, or Ctrl-C; returns what came of
    it, with the app's figures where there is one. ``options``: those of the session.

    Raises HeimdallError where a model, the app or a port is of no use, before any client is served.
    """
    check_number("seconds", seconds, above=0)
    if not offers:
        raise ConfigError("nothing to serve: give at least one --model NAME=FILE")
    if app is None:  # no frame waits while JSON is read
        limits = replace(place.limits, json_bytes=place.limits.request_bytes)
        place = replace(place, limits=limits)
    given: RunArguments = {**options, **({"seconds": seconds} if app else {})}  # type: ignore[typeddict-item]
    session = Session(app, process=True, progress=progress, **given)
    with session, contextlib.ExitStack() as stack:
        for offer in offers:
            session.register(offer.file, offer.slo_ms, name=offer.name, shapes=offer.shapes or None)
        server = stack.enter_context(_listening(session, place, offers))
        summary = None
        if app is None:
            _serve(session, seconds)
        else:
            summary = session.until_finished().to_dict()
        found = report(server)
    return {**found, "app": summary}


class SessionModels:
    """What a session has registered when this is made, as the files declare it (``offers``).
    The session's thread serves."""

    def __init__(self, session: Session, offers: Sequence[Offer] = ()) -> None:
        self._models = dict(session.models)
        self._declared = {
            name: Declared(model.inputs, model.outputs) for name, model in self._models.items()
        }
        for offer in offers:
            model = self._models[offer.name]
            file = paths.bundled(offer.file, "models")
            found = declared(file, model.inputs, model.outputs, offer.shapes)
            self._declared[offer.name] = found

    def names(self) -> Sequence[str]:
        return list(self._models)

    def describe(self, name: str) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        found = self._declared[name]
        return found.inputs, found.outputs

    def submit(
        self, name: str, inputs: Tensors, *, slo_ms: float | None, priority: str | None
    ) -> Future[dict[str, np.ndarray]]:
        model, found = self._models[name], self._declared[name]
        rows = [found.row(inputs, index) for index in range(found.rows(inputs))]
        return found.gathered([model.submit(row, slo_ms, priority=priority) for row in rows])


@contextlib.contextmanager
def _listening(session: Session, place: HostOptions, offers: Sequence[Offer]) -> Iterator[Server]:
    if not is_loopback(place.host) and place.tls is None:
        log.warning(
            "what is sent to %s, a token too, can be read on the way: --tls-certificate and "
            "--tls-key help against that",
            place.host,
        )
    with Server(
        SessionModels(session, offers),
        host=place.host,
        http_port=place.http_port,
        grpc_port=place.grpc_port,
        limits=place.limits,
        tls=place.tls,
        token=place.token,
        insecure=place.insecure,
        drawing=session.drawing,
    ) as server:
        log.info("serving %s at %s", ", ".join(session.models), " and ".join(server.addresses))
        yield server


def _serve(session: Session, seconds: float | None) -> None:
    over = threading.Event()
    timer = threading.Timer(seconds, over.set) if seconds is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    with contextlib.suppress(KeyboardInterrupt):
        session.serve(over)
    if timer is not None:
        timer.cancel()


def report(server: Server) -> dict[str, Any]:
    """What clients asked for, and what came of it."""
    service = server.service
    models = {
        name: {
            "answered": count.succeeded,
            "failed": count.failed,
            "latency_ms": count.ns / count.succeeded / 1e6 if count.succeeded else None,
        }
        for name, count in service.counts.items()
    }
    return {
        "schema": 1,
        "addresses": list(server.addresses),
        "models": models,
        "refused": service.line.refused,
    }


def tls_of(certificate: Path | None, key: Path | None) -> Tls | None:
    """Certificate and key, or neither. Raises ConfigError for one alone."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("--tls-certificate and --tls-key go together: give both")
    return Tls(certificate, key)
