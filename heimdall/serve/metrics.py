"""What a server counts, as Prometheus reads it: nothing is counted here, only told.

Labels are names of models that are served, and words of our own: what a client sends becomes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from itertools import accumulate
from typing import Protocol

from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from heimdall.serve.service import LATENCIES_S, Service

__all__ = ["CONTENT_TYPE", "Drawing", "Entrance", "Metrics"]


class Drawing(Protocol):
    """The frames of an app that draws in this process, counted since it was warm. For any
    thread."""

    fps_target: float
    late_frames: int
    skipped_frames: int

    @property
    def frames(self) -> int:
        """How many were presented."""

    def recent_fps(self) -> float:
        """Frames a second, of late."""


class Entrance(Sized, Protocol):
    """Where clients come in: how many there are, and how many were ended or turned away, and
    why."""

    @property
    def closed(self) -> dict[str, int]: ...


class Metrics(Collector):
    """Of a server, its ``entrances`` by protocol, and the app that draws beside it."""

    def __init__(
        self, service: Service, entrances: dict[str, Entrance], drawing: Drawing | None
    ) -> None:
        self._service, self._entrances, self._drawing = service, entrances, drawing
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield self._requests()
        yield self._latencies()
        line = self._service.line
        running = line.running
        yield _gauge("requests_running", "Requests that the coordinator knows of.", running)
        waiting = len(line) - running
        yield _gauge("requests_waiting", "Requests in line behind them.", waiting)
        yield from self._clients()
        if self._drawing is not None:
            yield from _frames(self._drawing)

    def _requests(self) -> Metric:
        found = _counter(
            "requests", "Inferences that were answered, and whatever was refused.", "model outcome"
        )
        for model, count in self._service.counts.items():
            found.add_metric([model, "answered"], count.succeeded)
        for (model, reason), times in list(self._service.refusals.items()):
            found.add_metric([model, reason.name.lower()], times)
        return found

    def _latencies(self) -> Metric:
        found = HistogramMetricFamily(
            "heimdall_request_seconds", "Of inferences, from coming to answer.", labels=["model"]
        )
        ends = [*map(str, LATENCIES_S), "+Inf"]
        for model, count in self._service.counts.items():
            buckets = list(zip(ends, accumulate(count.spread), strict=True))
            found.add_metric([model], buckets, sum_value=count.ns / 1e9)
        return found

    def _clients(self) -> Iterator[Metric]:
        here = GaugeMetricFamily(
            "heimdall_clients", "Connections by REST, calls by gRPC.", labels=["protocol"]
        )
        closed = _counter(
            "clients_closed", "Those that were ended, or not let in.", "protocol reason"
        )
        for protocol, entrance in self._entrances.items():
            here.add_metric([protocol], len(entrance))
            for reason, times in entrance.closed.items():
                closed.add_metric([protocol, reason], times)
        yield here
        yield closed


def _frames(drawing: Drawing) -> Iterator[Metric]:
    for name, about, value in (
        ("frames", "Frames presented.", drawing.frames),
        ("frames_late", "Over 1 ms after their deadline.", drawing.late_frames),
        ("frames_skipped", "Deadlines without a frame.", drawing.skipped_frames),
    ):
        found = _counter(name, about, "")
        found.add_metric([], value)
        yield found
    yield _gauge("frames_per_second", "Over the last third of a second.", drawing.recent_fps())
    yield _gauge("frames_per_second_target", "What was asked for.", drawing.fps_target)


def _counter(name: str, about: str, labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"heimdall_{name}", about, labels=labels.split())


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"heimdall_{name}", about, value=value)
