"""Faults of what runs the networks: chunks that fail, are slow or never end, and their devices."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from heimdall.engine.network import LoadedNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeNetwork
from heimdall.errors import DeviceError, ModelError
from heimdall.lab.faults.fault import Fault, on_cpu
from heimdall.lab.faults.moment import Moment
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.telemetry.spans import Spans
from heimdall.vocabulary.enums import Lane
from heimdall.vocabulary.processors import CPU, GPU

SEED = 1
CHANCE = 0.01
_OF_DEVICE = ("write", "read", "new_state", "hand_over", "take_over")  # beside running

Call = Callable[[], Any]
Around = Callable[[str, Call], Any]  # (DNN, the call as it would be): what it returns instead


def around_networks(
    around: Around,
    processors: Collection[str] = (GPU,),
    kind: type[LoadedNetwork[Any]] = LoadedNetwork,
    more: Collection[str] = (),
) -> None:
    """Have ``around`` called for each chunk of networks of a ``kind`` on these processors, and for
    each call of the methods ``more``."""
    place = Deployment.place

    def placed(self: Deployment, processor: str, networks: Any) -> None:
        for network in networks:
            if processor in processors and isinstance(network, kind):
                _wrap(network, partial(around, self.name), more)
        place(self, processor, networks)

    Deployment.place = placed  # type: ignore[method-assign]


def _wrap(
    network: LoadedNetwork[Any], around: Callable[[Call], Any], more: Collection[str]
) -> None:
    in_parts = type(network).run_parts is not LoadedNetwork.run_parts  # then ``run`` is by parts
    for name in ("run_parts" if in_parts else "run", *more):
        method = getattr(network, name)

        def called(*args: Any, method: Callable[..., Any] = method, **more: Any) -> Any:
            return around(partial(method, *args, **more))

        setattr(network, name, called)


def _fail(moment: Moment) -> None:
    chance = random.Random(SEED)

    def around(dnn: str, run: Call) -> Any:
        if moment.active and (chance.random() < CHANCE or moment.first()):
            moment.acted(dnn)
            raise DeviceError("injected: this chunk failed")
        return run()

    around_networks(around)


def longer(found: Any, ns: int) -> Any:
    """What a chunk returned that took so much longer."""
    return (found[0], found[1] + ns) if isinstance(found, tuple) else found + ns


def _slow(times: int) -> Callable[[Moment], None]:
    def inject(moment: Moment) -> None:
        def around(dnn: str, run: Call) -> Any:
            began_ns = time.perf_counter_ns()
            found = run()
            if not moment.active or dnn != moment.dnn:
                return found
            more_ns = (times - 1) * (time.perf_counter_ns() - began_ns)
            moment.acted(dnn)
            time.sleep(more_ns / 1e9)
            return longer(found, more_ns)

        around_networks(around)

    return inject


def _never_end(moment: Moment) -> None:
    def around(dnn: str, run: Call) -> Any:
        if moment.first():
            moment.acted(dnn)
            moment.hang()
        return run()

    around_networks(around)


def _fail_always(error: Callable[[], Exception], more: Collection[str]) -> Callable[[Moment], None]:
    def inject(moment: Moment) -> None:
        def around(dnn: str, run: Call) -> Any:
            if moment.active:
                moment.acted(dnn)
                raise error()
            return run()

        around_networks(around, more=more)

    return inject


def _fail_on_onnxruntime(moment: Moment) -> None:
    def around(dnn: str, run: Call) -> Any:
        if moment.active and dnn == moment.dnn:
            moment.acted(dnn)
            raise ModelError("injected: onnxruntime cannot run it")
        return run()

    around_networks(around, (GPU, CPU), OnnxRuntimeNetwork)


def _break_worker(moment: Moment) -> None:
    span = Spans.span

    def noted(self: Spans, lane: str, name: str, *args: Any) -> None:
        if lane == Lane.GPU and moment.first():
            moment.acted(name)
            raise RuntimeError("injected: the GPU's worker failed between two chunks")
        span(self, lane, name, *args)

    Spans.span = noted  # type: ignore[method-assign,assignment]


def _out_of_memory() -> Exception:
    return DeviceError(
        "OpenCL error MEM_OBJECT_ALLOCATION_FAILURE while running injected ops; the device is out "
        "of memory: load fewer networks or smaller inputs"
    )


def _device_lost() -> Exception:
    return DeviceError("OpenCL error OUT_OF_RESOURCES while running injected ops; it was reset")


FAULTS = (
    Fault("chunk-fails", "A chunk in a hundred fails, by chance.", _fail),
    Fault("chunk-2x", "The chunks of one DNN take twice as long.", _slow(2), told=False),
    Fault("chunk-20x", "The chunks of one DNN take twenty times as long.", _slow(20)),
    Fault("chunk-hangs", "A chunk on the GPU never ends.", _never_end),
    Fault(
        "gpu-memory",
        "The GPU is out of memory.",
        _fail_always(_out_of_memory, ("new_state",)),
        elsewhere=True,
    ),
    Fault(
        "gpu-lost",
        "The GPU is lost, and back.",
        _fail_always(_device_lost, _OF_DEVICE),
        elsewhere=True,
    ),
    Fault(
        "onnxruntime",
        "onnxruntime, which runs all networks, fails at each inference of one DNN.",
        _fail_on_onnxruntime,
        arguments=on_cpu,
    ),
    Fault("gpu-worker", "The GPU's worker raises between two chunks.", _break_worker),
)
