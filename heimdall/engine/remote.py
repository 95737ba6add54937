"""A server somewhere else as an engine: whole inferences by the Open Inference Protocol (gRPC).

Any server that speaks KServe's v2 protocol will do: our own (``heimdall serve``), Triton, MLServer.
The network has the same names, shapes and types there, under the name of its file or another one.
What the server computes, and how fast, is its own business: a network is one op here, and what it
takes is measured at each inference, the way there and back included.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from heimdall.engine.base import Engine, LoadProgress
from heimdall.engine.checks import check_forced, check_inputs, check_range
from heimdall.engine.network import LoadedNetwork, Op, State
from heimdall.errors import ArgumentError, ConfigError, DeviceError, ModelError
from heimdall.graph.graph import Graph, Tensor
from heimdall.system.extras import line
from heimdall.system.token import VARIABLE, checked, read_token
from heimdall.vocabulary.enums import ProcessorKind

PORT = 8001  # Triton's, which our own server has too
TIMEOUT_S = 1.0  # of an inference: a result that is older is of no use to a picture
PATIENCE_S = 10.0  # before a run: a server may load a network when it is first asked for
_MEASURED = 3  # inferences
_LARGEST = 1 << 30  # of a message, in bytes
# A server that is back is found again within a second: grpcio would wait for up to two minutes.
_CHANNEL = [
    ("grpc.max_send_message_length", _LARGEST),
    ("grpc.max_receive_message_length", _LARGEST),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
]
# What says that the server is not there, or not in time, rather than that it refuses.
_ABSENT = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")
_TYPES = {
    "b": "BOOL",
    **{f"i{size}": f"INT{8 * size}" for size in (1, 2, 4, 8)},
    **{f"u{size}": f"UINT{8 * size}" for size in (1, 2, 4, 8)},
    **{f"f{size}": f"FP{8 * size}" for size in (2, 4, 8)},
}


class RemoteEngine(Engine):
    """Networks on the server at ``address``: ``grpc://HOST[:PORT]``, or ``grpcs://`` with TLS.

    ``names``: what the server calls a network, by the stem of its file, where that differs.
    ``timeout_s``: what an inference may take; ``patience_s``: a question, and the inferences by
    which a network is measured. ``certificate``: a PEM file of the server's authorities, where
    the system does not know them. ``token``: what the server asks its clients for; None: that in
    the environment's HEIMDALL_TOKEN, if there is one.

    Raises ConfigError for an address or a token that is none, DeviceError where the client is not
    installed.
    Nothing is connected before a network is loaded.
    """

    name = "remote"
    processor = ProcessorKind.REMOTE
    computes = True
    hardware = True

    def __init__(
        self,
        address: str,
        *,
        names: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        patience_s: float = PATIENCE_S,
        certificate: str | Path | None = None,
        token: str | None = None,
    ) -> None:
        for name, value in (("timeout_s", timeout_s), ("patience_s", patience_s)):
            if not value > 0:
                raise ArgumentError("must be above 0", argument=name, value=value)
        place, secure = parse_address(address)
        self.address, self.timeout_s, self.patience_s = address, timeout_s, patience_s
        self._names = dict(names or {})
        token = read_token() if token is None else checked(token)
        self._headers = {"authorization": f"Bearer {token}"} if token else None
        self._client = _connected(place, secure, certificate)

    def has(self, graph: Graph) -> bool:
        """Whether the server has a model of that name, and is ready to run it. Raises DeviceError
        where it does not answer in time."""
        name = self._name_of(graph)
        try:
            return bool(self.ask("is_model_ready", name, model_name=name))
        except ModelError:  # some say so, and some refuse to answer
            return False

    def _name_of(self, graph: Graph) -> str:
        return self._names.get(graph.name, graph.name)

    def load(
        self,
        graph: Graph,
        *,
        force_fallback: Collection[str] = (),
        on_progress: LoadProgress | None = None,
    ) -> RemoteNetwork:
        """Ask the server whether it has the network, as it is here.

        Raises DeviceError where it does not answer in time, ModelError where it has no such model
        or one with other tensors."""
        check_forced(graph, force_fallback)
        name = self._name_of(graph)
        found = self.ask("get_model_metadata", name, model_name=name, as_json=True)
        for kind, own in (("inputs", graph.inputs), ("outputs", graph.outputs)):
            self._check(graph, name, kind, own, found.get(kind, []))
        halves = [e["name"] for e in found.get("inputs", []) if e.get("datatype") == "FP16"]
        return RemoteNetwork(self, graph, name, halves)

    def _check(
        self, graph: Graph, name: str, kind: str, own: Collection[Tensor], theirs: Any
    ) -> None:
        """Raise ModelError unless the server's tensors may be ours. (Some declare none.)"""
        there = {each.get("name"): each for each in theirs}
        for tensor in own if there else ():
            each = there.get(tensor.name, {})
            shape = [int(size) for size in each.get("shape", [])]
            # Models in half precision are float32 here (``graph.half``).
            kinds = (datatype(tensor.dtype), *(("FP16",) if tensor.dtype == np.float32 else ()))
            if each.get("datatype") not in kinds or not _fits(tensor.shape, shape):
                raise ModelError(
                    f"{self.address} has other {kind} for {name!r} than {graph.name}: "
                    f"{tensor.name!r} is {datatype(tensor.dtype)} of shape {list(tensor.shape)}; "
                    f"there: {each.get('datatype', 'no such tensor')} {shape or ''}".rstrip()
                )

    @property
    def ready(self) -> bool:
        """Whether the server answers now, and is ready. Waits for ``patience_s`` at most."""
        try:
            return bool(self.ask("is_server_ready", ""))
        except (DeviceError, ModelError):
            return False

    def ask(self, what: str, model: str, *, within_s: float | None = None, **rest: Any) -> Any:
        """A call of the client's, in time (default: ``patience_s``); its errors as ours."""
        from tritonclient.utils import InferenceServerException

        within_s = within_s or self.patience_s
        try:
            call = getattr(self._client, what)
            return call(client_timeout=within_s, headers=self._headers, **rest)
        except InferenceServerException as error:
            raise self._failure(model, within_s, error) from error
        except Exception as error:  # what the client makes of garbage is not its own error
            raise DeviceError(
                f"{self.address} answers what cannot be understood ({error}): is it a server of "
                "the Open Inference Protocol?"
            ) from error

    def _failure(self, model: str, within_s: float, error: Any) -> DeviceError | ModelError:
        code = str(error.status()).rpartition(".")[2]
        said = str(error.message() or "").strip().splitlines()
        words = said[0][:300] if said else code
        if code == "DEADLINE_EXCEEDED":
            return DeviceError(f"{self.address} did not answer within {within_s:g} s")
        if code in _ABSENT:
            return DeviceError(f"{self.address} cannot be reached, or not this way: {words}")
        if code == "UNAUTHENTICATED":
            return DeviceError(f"{self.address} asks for a token: set {VARIABLE} to it")
        if code == "NOT_FOUND":
            return ModelError(f"{self.address} has no model {model!r}: {words}")
        return ModelError(f"{self.address} refuses {model!r}: {words} ({code})")

    def runs(self, network: LoadedNetwork) -> bool:
        return isinstance(network, RemoteNetwork)

    def describe(self) -> Mapping[str, str]:
        return {"device": self.address, "driver": "", "version": "1", "mode": "remote"}

    def close(self) -> None:
        self._client.close()


class RemoteState(State):
    """The tensors of one inference, and whether it has been made."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs: Mapping[str, np.ndarray] = {}
        self.outputs: dict[str, np.ndarray] = {}


class RemoteNetwork(LoadedNetwork[RemoteState]):
    """One op: an inference over there."""

    def __init__(
        self, engine: RemoteEngine, graph: Graph, name: str, halves: Collection[str] = ()
    ) -> None:
        """``halves``: the inputs that the server takes in half precision."""
        self.graph, self._halves = graph, frozenset(halves)
        self._engine, self._name = engine, name
        self._number, self._lock = 0, threading.Lock()
        size = sum(tensor.bytes for tensor in (*graph.inputs, *graph.outputs))
        self.ops = (replace(Op.of(graph, graph.nodes, graph.name, "Remote"), bytes=size),)

    def new_state(self) -> RemoteState:
        return RemoteState()

    def write(self, state: RemoteState, inputs: Mapping[str, np.ndarray]) -> None:
        check_inputs(self.graph, inputs)
        state.inputs = {name: np.array(array, order="C") for name, array in inputs.items()}
        state.outputs = {}
        state.progress.begin()

    def run(self, state: RemoteState, start: int, end: int) -> int:
        """Raises DeviceError where no answer comes in time, ModelError where it is no answer."""
        check_range(self, state, start, end)
        if start == end:
            return 0
        began_ns = time.perf_counter_ns()
        state.outputs = self._infer(state.inputs, self._engine.timeout_s)
        state.progress.add(start, end)
        return time.perf_counter_ns() - began_ns

    def measure(self) -> int:
        """What an inference takes, in ns: of a few, on zeros, the shortest, for the first one opens
        the connection. Raises what ``run`` raises."""
        zeros = {each.name: np.zeros(each.shape, each.dtype) for each in self.inputs}
        found = []
        for _ in range(_MEASURED):
            began_ns = time.perf_counter_ns()
            self._infer(zeros, self._engine.patience_s)
            found.append(time.perf_counter_ns() - began_ns)
        return min(found)

    def run_fallback(self, state: RemoteState, start: int, end: int) -> int:
        check_range(self, state, start, end, fallback=True)
        return 0

    def read(self, state: RemoteState, leave: Collection[str] = ()) -> dict[str, np.ndarray]:
        check_range(self, state, 1, 1)
        return {name: each for name, each in state.outputs.items() if name not in leave}

    def _infer(self, inputs: Mapping[str, np.ndarray], within_s: float) -> dict[str, np.ndarray]:
        from tritonclient import grpc as triton

        given = []
        for name, each in inputs.items():
            array = np.asarray(each, np.float16 if name in self._halves else None)
            given.append(triton.InferInput(name, array.shape, datatype(array.dtype)))
            given[-1].set_data_from_numpy(array)
        with self._lock:
            self._number += 1
            number = str(self._number)
        answer = self._engine.ask(
            "infer",
            self._name,
            within_s=within_s,
            model_name=self._name,
            inputs=given,
            outputs=[triton.InferRequestedOutput(each.name) for each in self.outputs],
            request_id=number,
        )
        return {each.name: self._output(answer, each) for each in self.outputs}

    def _output(self, answer: Any, tensor: Tensor) -> np.ndarray:
        """An output of the answer. Raises ModelError where it is not the network's."""
        try:
            found = answer.as_numpy(tensor.name)
        except Exception as error:  # sizes that do not fit, types that are none
            found, why = None, f": {error}"
        else:
            if found is not None and found.dtype == np.float16:
                found = found.astype(np.float32)
            why = "" if found is None else f" but {found.dtype} of shape {found.shape}"
        if found is None or not tensor.fits(found.shape) or found.dtype != tensor.dtype:
            raise ModelError(
                f"{self._engine.address} answers no {tensor.dtype} of shape {tensor.shape} as "
                f"output {tensor.name!r} of {self._name!r}{why}"
            )
        return np.array(found)  # the client's is of its message, and not to be written to


def parse_address(address: str) -> tuple[str, bool]:
    """``grpc://host:port`` as ``("host:port", whether with TLS)``. Raises ConfigError for what is
    no such address."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, port, parts = None, PORT, urlsplit("")
    if parts.scheme not in ("grpc", "grpcs") or not host or parts.path.strip("/"):
        raise ConfigError(
            f"{address!r} is no address of a server: expected grpc://HOST:PORT, or grpcs:// with "
            "TLS (tensors go by gRPC, whose port is not that of REST)"
        )
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}"), parts.scheme == "grpcs"


def _connected(place: str, secure: bool, certificate: str | Path | None) -> Any:
    """The official client."""
    try:
        from tritonclient import grpc as triton
    except ImportError as error:
        raise DeviceError(f"a remote server needs its client: {line('serve')}") from error
    if certificate is not None and not Path(certificate).is_file():
        raise ConfigError(f"certificate {certificate}: there is no such file")
    return triton.InferenceServerClient(
        place,
        ssl=secure,
        root_certificates=str(certificate) if certificate else None,
        channel_args=_CHANNEL,
    )


def datatype(dtype: np.dtype) -> str:
    """The protocol's name of a type."""
    return _TYPES["b" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}"]


def _fits(own: tuple[int, ...], theirs: list[int]) -> bool:
    """Whether a shape may be ours: what either declares as -1 may be anything."""
    pairs = zip(own, theirs, strict=False)
    return len(own) == len(theirs) and all(-1 in pair or len({*pair}) == 1 for pair in pairs)
