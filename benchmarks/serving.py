"""Requests of several client processes while an app renders: none lost, none answered twice.

    python benchmarks/serving.py [--app surroundings] [--rate 40]

Starts ``heimdall serve APP --headless`` on free ports, and four processes of the official client
(gRPC, REST, and both with shared memory where that is Linux), 250 requests each. Every request has
tensors of its own, so an answer to another one would be noticed. Prints one JSON value: what became
of the requests, and the app's frames.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

REQUESTS, CLIENTS = 250, 4
MODEL, FILE = "people", "seg_selfie_256.onnx"
KEY = "heimdall_serving_"


def ask(number: int, ports: tuple[int, int], every_s: float, out: Any) -> None:
    """One client process: its requests, each checked against its own inputs' answer."""
    shared = number % 2 == 1 and sys.platform == "linux"
    module, client = _client(number, ports)
    meta = client.get_model_metadata(MODEL, **({"as_json": True} if number < 2 else {}))
    given, wanted = meta["inputs"][0], meta["outputs"][0]["name"]
    shape = [int(size) for size in given["shape"]]
    random = np.random.default_rng(number)
    pictures = [random.random(shape, np.float32) for _ in range(4)]
    expected = [_infer(module, client, given["name"], x, wanted, "e")[0] for x in pictures]
    answered, wrong, latencies = 0, 0, []
    region = _region(client, number, pictures[0].nbytes) if shared else None
    begin_s = time.monotonic()
    for index in range(REQUESTS):
        time.sleep(max(0.0, begin_s + index * every_s - time.monotonic()))
        picture, began_s = index % 4, time.monotonic()
        identity = f"{number}-{index}"
        found, said = _infer(
            module, client, given["name"], pictures[picture], wanted, identity, region
        )
        latencies.append(time.monotonic() - began_s)
        answered += 1
        wrong += said != identity or not np.allclose(found, expected[picture], atol=1e-3)
    if region is not None:
        _forget(client, number, region)
    out.put({"answered": answered, "wrong": wrong, "latencies_s": latencies})


def _client(number: int, ports: tuple[int, int]) -> tuple[Any, Any]:
    if number < 2:
        from tritonclient import grpc as module
    else:
        from tritonclient import http as module
    return module, module.InferenceServerClient(f"127.0.0.1:{ports[0 if number < 2 else 1]}")


def _infer(
    module: Any,
    client: Any,
    name: str,
    picture: np.ndarray,
    wanted: str,
    identity: str,
    region: Any = None,
) -> tuple[np.ndarray, str]:
    tensor = module.InferInput(name, picture.shape, "FP32")
    if region is None:
        tensor.set_data_from_numpy(picture)
    else:
        from tritonclient.utils import shared_memory

        shared_memory.set_shared_memory_region(region[0], [picture])
        tensor.set_shared_memory(region[1], picture.nbytes)
    answer = client.infer(MODEL, [tensor], request_id=identity, parameters={"slo_ms": 500})
    response = answer.get_response()
    said = response["id"] if isinstance(response, dict) else response.id
    return answer.as_numpy(wanted), said


def _region(client: Any, number: int, size: int) -> tuple[Any, str]:
    from tritonclient.utils import shared_memory

    key = f"{KEY}{number}"
    handle = shared_memory.create_shared_memory_region(key, key, size)
    client.register_system_shared_memory(key, key, size)
    return handle, key


def _forget(client: Any, number: int, region: tuple[Any, str]) -> None:
    from tritonclient.utils import shared_memory

    client.unregister_system_shared_memory(region[1])
    shared_memory.destroy_shared_memory_region(region[0])


def start(
    app: str, models: Mapping[str, str], *options: str
) -> tuple[subprocess.Popen[str], tuple[int, int]]:
    """The server of these files, beside an app unless that is "", once it listens: its gRPC and
    its REST port."""
    command = [sys.executable, "-m", "heimdall", "serve", "--json", *options]
    command += [app, "--headless"] if app else []
    command += [f"--model={name}={file}" for name, file in models.items()]
    command += ["--http-port", "0", "--grpc-port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    for line in server.stderr:
        print(line, end="", file=sys.stderr)
        if "serving" in line:
            places = [word for word in line.split() if "://" in word]
            http, grpc = (int(place.rpartition(":")[2]) for place in places)
            return server, (grpc, http)
    raise SystemExit("the server did not start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--app", default="surroundings")
    parser.add_argument("--rate", type=float, default=25.0, help="requests a second, in all")
    arguments = parser.parse_args()
    server, ports = start(arguments.app, {MODEL: FILE})
    methods = multiprocessing.get_context("spawn")
    out: Any = methods.Queue()
    every_s = CLIENTS / arguments.rate
    clients = [
        methods.Process(target=ask, args=(number, ports, every_s, out)) for number in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    found = [out.get(timeout=300) for _ in clients]
    for client in clients:
        client.join()
    server.send_signal(signal.SIGINT)
    told, _ = server.communicate(timeout=60)
    report = json.loads(told)
    latencies = np.concatenate([each["latencies_s"] for each in found]) * 1e3
    app = report["app"]
    print(
        json.dumps(
            {
                "requests": REQUESTS * CLIENTS,
                "answered": sum(each["answered"] for each in found),
                "wrong": sum(each["wrong"] for each in found),
                "by_server": report["models"],
                "latency_ms": {
                    f"p{p}": round(float(np.percentile(latencies, p)), 1) for p in (50, 95, 99)
                },
                "fps": app["fps"],
                "late_frames": app["late_frames"],
                "frames": app["frames"],
                "frame_interval_ms": app["frame_interval_ms"],
                "errors": app["errors"],
            }
        )
    )


if __name__ == "__main__":
    main()
