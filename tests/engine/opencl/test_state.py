"""What kernels are bound to lives as long as they may run."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import Counter

import numpy as np
import pyopencl as cl
import pytest

from heimdall.engine.opencl import launched, walked
from heimdall.graph.graph import load_graph
from heimdall.graph.samples import sample_inputs

NETWORKS = [
    ("seg_selfie_256", None),
    ("multistyle26_dynamic", {"image": [1, 3, 120, 160]}),
]  # with scratch


@pytest.fixture
def bound(monkeypatch):
    """The memory objects that are set as arguments of each kernel, by the kernel's identity."""
    found: dict[int, list[cl.MemoryObject]] = {}
    set_arguments = launched.set_arguments

    def remember(kernel, args):
        found[id(kernel)] = [arg for arg in args if isinstance(arg, cl.MemoryObject)]
        set_arguments(kernel, args)

    for module in (launched, walked):
        monkeypatch.setattr(module, "set_arguments", remember)
    return found


@pytest.mark.parametrize(("name", "shape"), NETWORKS)
def test_memory_that_is_set_as_an_argument_lives_as_long_as_the_state(
    engine, assets, bound, name, shape
):
    """``clSetKernelArg`` retains nothing (OpenCL 3.0 API, 5.9.2)."""
    network = engine.load(load_graph(assets / "models" / f"{name}.onnx", shape))
    state = network.new_state()
    network.close()
    del network  # weights belong to it too
    gc.collect()
    objects = [each for kernel in bound.values() for each in kernel]
    bound.clear()
    assert len(objects) > 5
    objects.append(object())  # not held elsewhere
    held = {id(objects[index]): sys.getrefcount(objects[index]) for index in range(len(objects))}
    unheld = held.pop(id(objects[-1]))
    times = Counter(map(id, objects))
    assert all(held[key] - times[key] >= unheld for key in held)
    assert state.position == 0


def test_an_error_between_parts_leaves_nothing_running_when_the_state_goes(engine, assets):
    graph = load_graph(assets / "models" / "seg_selfie_256.onnx")
    network = engine.load(graph)
    state = network.new_state()
    network.write(state, sample_inputs(graph))

    def stop(part: int) -> bool:
        raise RuntimeError(f"not part {part}")

    ends = np.linspace(0, len(network.ops), 6, dtype=int)[1:].tolist()
    with pytest.raises(RuntimeError, match="not part 2"):
        network.run_parts(state, 0, ends, stop)
    last = state.events[max(state.events)][-1]
    gone = weakref.ref(state)
    del state
    gc.collect()
    assert gone() is None
    # Not that finish was called: rusticl's does not wait for what was flushed, as parts are.
    assert last.command_execution_status == cl.command_execution_status.COMPLETE
