"""Where the server listens, whom it lets in, and how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from heimdall.errors import ArgumentError, ConfigError, DeviceError
from heimdall.serve import Limits, Server
from heimdall.serve.server import Tls
from tests.serve.clients import Refused, X, body, tensor, triton_grpc, twice, until

grpc = pytest.importorskip("grpc")

ALONE = [("grpc.use_local_subchannel_pool", 1)]  # a connection that no other client has


def test_a_request_that_does_not_come_to_its_end_is_given_up(serve):
    server = serve(body_s=0.2)
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=60) as raw:
        head = b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: localhost\r\n"
        raw.sendall(head + b"Content-Length: 99\r\n\r\n{")
        assert raw.recv(4000).startswith(b"HTTP/1.1 408")


def test_clients_beyond_the_limit_are_turned_away(serve, models):
    server = serve(clients=2)
    models.free.clear()
    sent = body([1, 2, 3, 4])
    busy = []
    for number in range(2):
        busy.append(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60))
        busy[-1].request("POST", "/v2/models/twice/infer", sent)
        until(lambda n=number: len(server.service.line) == n + 1)
    third = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    third.connect()
    assert closed(third.sock)
    models.free.set()
    assert [each.getresponse().status for each in busy] == [200, 200]


def test_half_a_head_closes_the_port_to_nobody(serve):
    server = serve(clients=8)
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            raw = socket.create_connection(("127.0.0.1", server.http_port), timeout=60)
            stack.enter_context(raw).sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: local")
        for _ in range(3):
            client = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
            client.request("GET", "/v2/health/live")
            assert client.getresponse().status == 200
            client.close()


@pytest.mark.parametrize("sent", [b"", b"GET /v2 HTTP/1.1\r\nHost: local"])
def test_a_head_that_does_not_come_is_waited_for_only_so_long(serve, sent):
    server = serve(header_s=0.2)
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=60) as raw:
        raw.sendall(sent)
        assert closed(raw)


def test_an_idle_connection_is_closed_in_the_end(serve):
    server = serve(idle_s=0.2)
    client = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    client.request("GET", "/v2/health/live")
    assert json.loads(client.getresponse().read()) == {"live": True}
    assert closed(client.sock)


def closed(raw: socket.socket) -> bool:
    """Whether the other end closes it."""
    try:
        return raw.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("name", ["ModelInfer", "ModelStreamInfer"])
def test_calls_without_a_request_close_the_port_to_nobody(serve, name):
    server = serve(clients=4)
    with silent_calls(server, name, 8) as calls:
        until(lambda: sum(call.done() for call in calls) >= 4)
        with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
            np.testing.assert_array_equal(twice(client, triton_grpc).as_numpy("y"), 2 * X)
        ended = [call for call in calls if call.done()]
        assert {call.code() for call in ended} == {grpc.StatusCode.UNAVAILABLE}
        assert "another one needed its place" in ended[0].details()


@pytest.mark.parametrize("name", ["ModelInfer", "ModelStreamInfer"])
def test_a_call_whose_request_does_not_come_is_ended(serve, name):
    server = serve(body_s=0.2)
    with silent_calls(server, name, 1) as (call,):
        until(call.done)
        assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "no request came within 0.2 s" in call.details()


@contextlib.contextmanager
def silent_calls(server: Server, name: str, number: int) -> Any:
    """Calls that have begun, each on a connection of its own, and send nothing."""
    over = threading.Event()

    def nothing() -> Any:
        over.wait(60)
        yield from ()

    place = f"127.0.0.1:{server.grpc_port}"
    channels = [grpc.insecure_channel(place, ALONE) for _ in range(number)]
    path = f"/inference.GRPCInferenceService/{name}"
    try:
        yield [channel.stream_stream(path)(nothing()) for channel in channels]
    finally:
        over.set()
        for channel in channels:
            channel.close()


def test_calls_beyond_the_limit_are_turned_away_while_each_is_answered(serve, models):
    server = serve(clients=1)
    models.free.clear()
    place = f"127.0.0.1:{server.grpc_port}"
    with triton_grpc.InferenceServerClient(place) as client, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(twice, client, triton_grpc)
        until(lambda: len(server.service.line) == 1)
        with (
            triton_grpc.InferenceServerClient(place, channel_args=ALONE) as other,
            pytest.raises(Refused, match="each is being answered"),
        ):
            other.get_server_metadata()
        models.free.set()
        np.testing.assert_array_equal(answer.result().as_numpy("y"), 2 * X)


def test_a_stream_is_answered_request_by_request(serve):
    server = serve()
    answers: queue.Queue[Any] = queue.Queue()
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for _ in range(3):
            client.async_stream_infer("twice", [tensor(triton_grpc, "x", X)])
            result, error = answers.get(timeout=60)
            assert error is None
            np.testing.assert_array_equal(result.as_numpy("y"), 2 * X)
        client.async_stream_infer("other", [tensor(triton_grpc, "x", X)])
        assert "no model 'other'" in str(answers.get(timeout=60)[1])
        client.stop_stream()


def test_what_triton_has_besides_is_refused(serve):
    server = serve()
    with (
        triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client,
        pytest.raises(Refused, match="no such call"),
    ):
        client.get_trace_settings()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such bound on Windows")
def test_silent_connections_leave_handles_to_others(serve, caplog):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[1]), before[1]))
    try:
        server = serve(clients=1000, header_s=600)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert "128 connections at once, not 1000" in caplog.text
    for port in (server.http_port, server.grpc_port):
        with contextlib.ExitStack() as stack:
            place = ("127.0.0.1", port)
            raws = [stack.enter_context(socket.create_connection(place)) for _ in range(200)]
            until(lambda raws=raws: sum(map(is_closed, raws)) >= 200 - 128)


def is_closed(raw: socket.socket) -> bool:
    """Whether the other end has closed it, as far as is known now. gRPC greets."""
    raw.setblocking(False)
    try:
        while raw.recv(4096):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


# --- the token ----------------------------------------------------------------------------------

TOKEN = "0123456789abcdef"


def test_without_the_token_nobody_gets_more_than_health(serve, connect):
    server = serve(token=TOKEN)
    client, module = connect(server)
    assert client.is_server_live()
    assert client.is_server_ready()
    for headers in (None, {"authorization": f"Bearer {TOKEN[:-1]}"}, {"authorization": TOKEN}):
        with pytest.raises(Refused, match="asks for a token"):
            twice(client, module, headers=headers)
        with pytest.raises(Refused, match="asks for a token"):
            client.get_system_shared_memory_status(headers=headers)
    headers = {"authorization": f"bearer {TOKEN}"}
    np.testing.assert_array_equal(twice(client, module, headers=headers).as_numpy("y"), 2 * X)


def test_a_refusal_by_rest_says_how_to_ask(serve):
    client = http.client.HTTPConnection("127.0.0.1", serve(token=TOKEN).http_port, timeout=60)
    client.request("GET", "/metrics")
    answer = client.getresponse()
    assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")


def test_other_machines_are_let_in_with_a_token_or_by_name_of_the_danger(models):
    place: dict[str, Any] = {"host": "0.0.0.0", "http_port": 0, "grpc_port": 0}
    with pytest.raises(ConfigError, match="HEIMDALL_TOKEN"):
        Server(models, **place)
    for more in ({"token": TOKEN}, {"insecure": True}):
        with Server(models, **place, **more) as server:
            assert server.http_port
    with pytest.raises(ConfigError, match="16 to 256"):
        Server(models, http_port=0, grpc_port=0, token="short")


def test_closing_answers_or_ends_what_is_in_flight(serve, connect, models):
    server = serve()
    models.free.clear()
    client, module = connect(server)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(twice, client, module)
        until(lambda: len(server.service.line) == 1)
        threading.Timer(0.2, models.free.set).start()
        server.close()
        np.testing.assert_array_equal(answer.result().as_numpy("y"), 2 * X)
    server.close()


def test_it_listens_on_the_loopback_address_unless_told_otherwise(models):
    with Server(models, http_port=0, grpc_port=0) as server:
        for port in (server.http_port, server.grpc_port):
            with socket.create_connection(("127.0.0.1", port)):
                pass
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((own(), port), 20)


def own() -> str:
    """Another address of this machine; all of 127.0.0.0/8 are its own on Linux."""
    if sys.platform != "linux":
        pytest.skip("this system has one loopback address")
    return "127.0.0.2"


@pytest.mark.parametrize("which", ["http_port", "grpc_port"])
def test_a_port_that_is_taken_is_named(models, which):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports: dict[str, Any] = {"http_port": 0, "grpc_port": 0}
        ports[which] = taken.getsockname()[1]
        with pytest.raises(DeviceError, match=f"--{which.replace('_', '-')} .* is in use"):
            Server(models, **ports)


def test_a_server_that_makes_no_sense_is_refused(models):
    with pytest.raises(ConfigError, match="without a port"):
        Server(models, http_port=None, grpc_port=None)
    models.networks["a/b"] = models.networks["plus"]
    with pytest.raises(ConfigError, match="a/b"):
        Server(models, http_port=0, grpc_port=0)
    with pytest.raises(ArgumentError, match="clients"):
        Limits(clients=0)


def test_tls(serve, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    try:
        subprocess.run(
            [*make, "-keyout", key, "-out", certificate], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("openssl is not there to make a certificate")
    server = serve(tls=Tls(certificate, key))
    place = f"localhost:{server.grpc_port}"
    with triton_grpc.InferenceServerClient(
        place, ssl=True, root_certificates=str(certificate)
    ) as client:
        np.testing.assert_array_equal(twice(client, triton_grpc).as_numpy("y"), 2 * X)
    plain = triton_grpc.InferenceServerClient(place)
    with pytest.raises(Refused):
        twice(plain, triton_grpc, client_timeout=20)
    plain.close()
    context = ssl.create_default_context(cafile=str(certificate))
    safe = http.client.HTTPSConnection("localhost", server.http_port, context=context, timeout=60)
    safe.request("GET", "/v2/health/live")
    assert safe.getresponse().status == 200
    with pytest.raises(ConfigError, match="TLS"):
        serve(tls=Tls(certificate, certificate))
