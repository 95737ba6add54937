"""A load as perf_analyzer's: the official clients, many requests at once, all of them answered."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.serve.clients import X, tensor, triton_grpc, triton_http

AT_ONCE, EACH = 8, 40


@pytest.mark.parametrize("module", [triton_http, triton_grpc], ids=["rest", "grpc"])
def test_requests_of_many_threads_are_all_answered(serve, module):
    server = serve()
    port = server.http_port if module is triton_http else server.grpc_port

    def ask(seed: int) -> None:
        with module.InferenceServerClient(f"127.0.0.1:{port}") as client:
            for number in range(EACH):
                x = X + seed * EACH + number
                found = client.infer("twice", [tensor(module, "x", x)]).as_numpy("y")
                np.testing.assert_array_equal(found, 2 * x)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, range(AT_ONCE)))
    assert server.service.counts["twice"].succeeded == AT_ONCE * EACH
    assert server.service.line.refused == 0
    assert not server.service.refusals


def test_requests_that_one_client_sends_at_once_are_all_answered(serve):
    server = serve()
    place = f"127.0.0.1:{server.http_port}"
    with triton_http.InferenceServerClient(place, concurrency=AT_ONCE) as client:
        given = [tensor(triton_http, "x", X)]
        asked = [client.async_infer("twice", given) for _ in range(AT_ONCE * 4)]
        for each in asked:
            np.testing.assert_array_equal(each.get_result().as_numpy("y"), 2 * X)
