"""Where the server listens, whom it lets in, and how it ends."""

from __future__ import annotations

import http.client
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
from tests.serve.clients import Refused, X, triton_grpc, twice, until


def test_a_request_that_does_not_come_to_its_end_is_given_up(serve):
    server = serve(body_s=0.2)
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=60) as raw:
        head = b"POST /v2/models/twice/infer HTTP/1.1\r\nHost: localhost\r\n"
        raw.sendall(head + b"Content-Length: 99\r\n\r\n{")
        assert raw.recv(4000).startswith(b"HTTP/1.1 408")


def test_clients_beyond_the_limit_are_turned_away(serve):
    server = serve(clients=2)
    raws = []
    for _ in range(2):
        raws.append(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60))
        raws[-1].request("GET", "/v2/health/live")
        assert raws[-1].getresponse().read() == b""
    third = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    third.request("GET", "/v2/health/live")
    with pytest.raises(ConnectionError):
        third.getresponse()
    raws[0].request("GET", "/v2/health/live")
    assert raws[0].getresponse().status == 200


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
