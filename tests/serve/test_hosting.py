"""``heimdall serve`` as a program of its own, asked by the official client."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from heimdall.cli import main
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.errors import ArgumentError, ConfigError
from heimdall.graph.graph import load_graph
from heimdall.lab.cli.schemas import json_schema
from heimdall.serve.hosting import Offer, parse_offers
from heimdall.system import paths
from tests.docs.json_schemas import wrong
from tests.serve.clients import Refused, tensor, triton_grpc, triton_http

FILE = "seg_selfie_256.onnx"
MODEL = f"people={FILE}"
PLACE = ("--http-port", "0", "--grpc-port", "0", "--device", "onnxruntime")


@pytest.fixture(scope="module")
def selfie():
    return load_graph(paths.ASSETS / "models" / FILE)


_running: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def _none_left():
    yield
    while _running:
        _running.pop().kill()


def started(*arguments: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """The program, and where it listens by scheme."""
    command = [sys.executable, "-m", "heimdall", "serve", "--json", *PLACE, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    _running.append(process)
    said = []
    for line in process.stderr:
        said.append(line)
        if "serving" in line:
            places = [word.split("://") for word in line.split() if "://" in word]
            return process, dict(places)
    raise AssertionError("".join(said))


def metric(places: dict[str, str], name: str) -> float:
    with urllib.request.urlopen(f"http://{places['http']}/metrics", timeout=60) as told:
        text = told.read().decode()
    return float(re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[0])


def wait_for_frames(places: dict[str, str]) -> None:
    """Until the app has presented more of them: clients may be answered within its first."""
    before = metric(places, "heimdall_frames_total")
    deadline_s = time.monotonic() + 60
    while metric(places, "heimdall_frames_total") in (before, 0):  # counted anew once it is warm
        assert time.monotonic() < deadline_s, "no frames"
        time.sleep(0.05)


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    process.send_signal(signal.SIGINT)
    told, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    report: dict[str, Any] = json.loads(told)
    assert wrong(json_schema("serve"), report) == []
    return report


def ask(places: dict[str, str], graph: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One request on a picture of its own: the picture, and the answer."""
    module = triton_http if seed % 2 else triton_grpc
    client = module.InferenceServerClient(places["http" if seed % 2 else "grpc"])
    (given,) = graph.inputs
    picture = np.random.default_rng(seed).random(given.shape, np.float32)
    answer = client.infer("people", [tensor(module, given.name, picture)])
    client.close()
    return picture, answer.as_numpy(graph.outputs[0].name)


def test_answers_are_those_of_the_network(selfie):
    process, places = started("--model", MODEL)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: ask(places, selfie, seed), range(16)))
    network = OnnxRuntimeEngine().load(selfie)
    (given,), (made, *_) = selfie.inputs, selfie.outputs
    for picture, answer in found:
        expected = network.infer(network.new_state(), {given.name: picture})[made.name]
        np.testing.assert_allclose(answer, expected, atol=1e-3)
    report = ended(process)
    assert report["models"]["people"]["answered"] == 16
    assert report["models"]["people"]["failed"] == report["refused"] == 0
    assert report["app"] is None


def test_the_client_on_the_page_works():
    page = (Path(__file__).parents[2] / "docs" / "do" / "serve.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    process, places = started("--model", MODEL)
    assert "127.0.0.1:8001" in code
    names: dict[str, Any] = {}
    exec(code.replace("127.0.0.1:8001", places["grpc"]), names)
    made = names["answer"].get_response().outputs[0].name
    assert names["answer"].as_numpy(made).shape == (1, 256, 256, 1)
    assert ended(process)["models"]["people"]["answered"] == 1


@pytest.mark.slow
def test_an_app_runs_beside(selfie):
    process, places = started("emoji", "--headless", "--size", "320x180", "--model", MODEL)
    for seed in range(6):
        ask(places, selfie, seed)
    answered = 'heimdall_requests_total{model="people",outcome="answered"}'
    assert metric(places, answered) == 6
    wait_for_frames(places)
    assert metric(places, "heimdall_frames_per_second") > 0
    with pytest.raises(Refused, match="no model"):
        triton_grpc.InferenceServerClient(places["grpc"]).get_model_metadata("other")
    report = ended(process)
    assert report["models"]["people"]["answered"] == 6
    assert report["app"]["errors"] == []


@pytest.mark.slow
def test_an_app_goes_on_beside_clients_that_mean_it_ill(selfie):
    process, places = started("emoji", "--headless", "--size", "320x180", "--model", MODEL)
    infer = f"http://{places['http']}/v2/models/people/infer"
    packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    json_of_20_mb = b'{"inputs": [' + b"0," * 10_000_000 + b"0]}"
    length = {"Inference-Header-Content-Length": "100"}
    with contextlib.ExitStack() as stack:
        for place in places.values():
            host, port = place.rsplit(":", 1)
            for _ in range(200):
                raw = socket.create_connection((host, int(port)), timeout=60)
                stack.enter_context(raw).sendall(b"POST /v2 HTTP/1.1\r\nHost: local")
        for data, headers in (
            (bomb, {"Content-Encoding": "gzip"}),
            (bomb, {"Content-Encoding": "gzip", **length}),
            (json_of_20_mb, {}),
        ):
            asked = urllib.request.Request(infer, data, headers)
            with pytest.raises(urllib.error.HTTPError, match="413"):
                urllib.request.urlopen(asked, timeout=60)
        ask(places, selfie, 1)  # by REST
        wait_for_frames(places)
    report = ended(process)
    assert report["models"]["people"]["answered"] == 1
    assert report["app"]["errors"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--model'"),
        (("--model", "people"), "expected NAME=FILE"),
        (("--model", "people="), "expected NAME=FILE"),
        (("--model", f"../a={FILE}"), "a served model's name"),
        (("--model", MODEL, "--model", MODEL), "there is a model 'people' already"),
        (("--model", MODEL, "--slo-ms", "0"), "above 0"),
        (("--model", MODEL, "--slo-ms", "nan"), "slo-ms"),
        (("--model", MODEL, "--shape", "other:x=1x3"), "of one of these models: people"),
        (("--model", MODEL, "--tls-key", "key.pem"), "go together"),
        (("--model", MODEL, "--max-clients", "0"), "clients"),
        (("--model", MODEL, "--host", "0.0.0.0"), "--insecure"),
        (("--model", MODEL, "--token-file", __file__), "16 to 256"),
        (("--model", MODEL, "--no-http", "--no-grpc"), "without a port"),
        (("--model", "people=nowhere.onnx"), "nowhere.onnx"),
    ],
)
def test_what_makes_no_sense_is_one_clear_line(arguments, said):
    done = CliRunner().invoke(main, ["serve", *PLACE, *arguments])
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_port_that_is_taken_is_said_before_anything_is_served():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(main, ["serve", *PLACE, "--model", MODEL, "--grpc-port", port])
    assert done.exit_code == 2
    assert f"port {port} is in use" in done.stderr


def test_the_token_is_read_from_a_file_or_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text("of-the-file-0123456789\n")
    monkeypatch.setenv("HEIMDALL_TOKEN", "of-the-environment")
    for arguments, token in (
        ((), "of-the-environment"),
        (("--token-file", str(file)), "of-the-file-0123456789"),
    ):
        _, places = started("--model", MODEL, *arguments)
        client = triton_grpc.InferenceServerClient(places["grpc"])
        assert client.is_server_live()
        with pytest.raises(Refused, match="asks for a token"):
            client.get_model_metadata("people")
        headers = {"authorization": f"Bearer {token}"}
        assert client.get_model_metadata("people", headers=headers).name == "people"
        client.close()


def test_json_may_be_long_where_no_frame_waits_for_it(selfie):
    _, places = started("--model", MODEL)
    (given,) = selfie.inputs
    picture = triton_http.InferInput(given.name, given.shape, "FP32")
    picture.set_data_from_numpy(np.zeros(given.shape, np.float32), binary_data=False)
    with triton_http.InferenceServerClient(places["http"]) as client:
        wanted = [triton_http.InferRequestedOutput(selfie.outputs[0].name, binary_data=False)]
        answer = client.infer("people", [picture], outputs=wanted)
        assert answer.as_numpy(selfie.outputs[0].name).shape == selfie.outputs[0].shape


def test_offers_have_their_own_shapes():
    offers = parse_offers(["a=a.onnx", "b=c=d.onnx"], 50, {"a:x": (1, 3), "b:y:0": (2,)})
    assert offers == (
        Offer("a", "a.onnx", 50, {"x": (1, 3)}),
        Offer("b", "c=d.onnx", 50, {"y:0": (2,)}),
    )
    with pytest.raises(ConfigError, match="--shape x"):
        parse_offers(["a=a.onnx"], 50, {"x": (1,)})
    with pytest.raises(ArgumentError, match="slo_ms"):
        parse_offers(["a=a.onnx"], -1, {})
