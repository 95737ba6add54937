"""What the server counts, as Prometheus' own parser reads it."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from heimdall.errors import DeviceError
from heimdall.serve import Server
from tests.serve.clients import Refused, X, tensor, triton_http, twice

parser = pytest.importorskip("prometheus_client.parser")


def told(server: Server) -> Mapping[str, float]:
    """Each value by its name and labels: ``requests_total twice answered``."""
    client = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    client.request("GET", "/metrics")
    answer = client.getresponse()
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    text = answer.read().decode()
    client.close()
    return {
        " ".join([sample.name.removeprefix("heimdall_"), *sample.labels.values()]): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_answers_and_refusals_are_counted_by_model(serve, connect, models):
    server = serve()
    client, module = connect(server)
    for _ in range(3):
        twice(client, module)
    with pytest.raises(Refused):
        twice(client, module, X.T.copy())
    models.failure = DeviceError("the GPU is lost")
    with pytest.raises(Refused):
        twice(client, module)
    found = told(server)
    assert found["requests_total twice answered"] == 3
    assert found["requests_total twice wrong"] == found["requests_total twice busy"] == 1
    assert found["requests_total plus answered"] == 0
    assert found["request_seconds_count twice"] == 3
    assert found["request_seconds_bucket +Inf twice"] == 3
    assert found["request_seconds_sum twice"] > 0
    assert found["requests_running"] == found["requests_waiting"] == 0
    assert found["clients rest"] >= 1


def test_names_that_clients_make_up_become_no_labels(serve, connect):
    server = serve()
    client, module = connect(server)
    before = len(told(server))
    for number in range(20):
        with pytest.raises(Refused):
            client.infer(f"made-up-{number}", [tensor(module, "x", X)])
    found = told(server)
    assert found["requests_total  unknown"] == 20
    assert len(found) == before + 1


def test_the_frames_of_an_app_beside_are_told(serve):
    drawing = SimpleNamespace(
        fps_target=30.0, late_frames=2, skipped_frames=1, frames=90, recent_fps=lambda: 29.5
    )
    found = told(serve(drawing=drawing))
    assert found["frames_total"] == 90
    assert found["frames_late_total"] == 2
    assert found["frames_skipped_total"] == 1
    assert found["frames_per_second"] == 29.5
    assert "frames_total" not in told(serve())


def test_whom_the_doors_turned_away_is_counted(serve):
    server = serve(clients=1)
    with triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
        assert client.is_server_live()
        assert told(server)["clients_closed_total rest gave_way"] == 1
