from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pyopencl as cl
import pytest

from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.placed import Array, Picture, Storage
from heimdall.engine.opencl.strided import Strided
from heimdall.engine.opencl.transfer import IN_PLACE, MAPPED, STAGED, Transfer, ways
from heimdall.graph.graph import load_graph
from heimdall.graph.samples import sample_inputs


@pytest.fixture(params=[IN_PLACE, MAPPED, STAGED])
def transfer(request, engine):
    """Each way to reach the device's memory that this device allows."""
    if request.param not in ways(engine.device):
        pytest.skip(f"this device's memory cannot be reached {request.param}")
    return Transfer(engine.context, engine.device, request.param)


def test_the_cheapest_way_is_the_default(engine):
    assert Transfer(engine.context, engine.device).way == ways(engine.device)[0]
    assert ways(engine.device)[-1] == STAGED  # which every device allows


def stored(transfer, buffer):
    with transfer.opened(buffer, 0, buffer.size // 4, write=False) as floats:
        return floats.copy()


def filled(transfer, floats, value):
    buffer = transfer.allocate(floats)
    with transfer.opened(buffer, 0, floats, write=True) as memory:
        memory[:] = value
    return buffer


@pytest.mark.parametrize("halo", [(0, 0, 0, 0), (1, 2, 1, 0)], ids=str)
@pytest.mark.parametrize("channels", [16, 32, 35])
def test_a_picture_comes_back_and_its_halo_is_zero(transfer, channels, halo):
    storage = Storage("x", (channels, 5, 7), block=16, halo=halo, offset=64)
    value = Picture(storage, channels, 5, 7)
    buffer = filled(transfer, 64 + storage.floats + 32, 9.0)
    array = np.random.default_rng(0).random((1, channels, 5, 7), np.float32)
    transfer.upload(buffer, value, array)
    assert np.array_equal(transfer.download(buffer, value, array.shape), array)
    memory = stored(transfer, buffer)
    own = memory[64 : 64 + storage.layout.floats]
    assert np.count_nonzero(own) == np.count_nonzero(array)
    assert (memory[:64] == 9.0).all()
    assert (memory[-32:] == 9.0).all()


def test_an_array_comes_back_and_the_rest_of_its_storage_is_zero(transfer):
    storage = Storage("x", None, 60, offset=32)
    value = Array(storage, Strided.contiguous((3, 20)))
    buffer = filled(transfer, 32 + storage.floats, 9.0)
    array = np.arange(60, dtype=np.int64).reshape(3, 20)
    transfer.upload(buffer, value, array)
    assert np.array_equal(transfer.download(buffer, value, (3, 20)), array)
    memory = stored(transfer, buffer)
    assert (memory[:32] == 9.0).all()
    assert not memory[92:].any()


def test_what_was_downloaded_is_a_copy(transfer):
    for value in (
        Picture(Storage("x", (16, 1, 1), block=16), 16, 1, 1),
        Picture(Storage("x", (1, 4, 4), block=1), 1, 4, 4),
        Array(Storage("x", None, 16), Strided.contiguous((16,))),
    ):
        buffer = filled(transfer, value.storage.floats, 1.0)
        array = transfer.download(buffer, value, (16,))
        with transfer.opened(buffer, 0, value.storage.floats, write=True) as memory:
            memory[:] = 2.0
        assert (array == 1.0).all()


def test_kernels_see_what_was_written_and_their_results_are_read(transfer, engine):
    twice = (
        cl.Program(
            engine.context, "kernel void twice(global float* x) { x[get_global_id(0)] *= 2.0f; }"
        )
        .build()
        .twice
    )
    value = Array(Storage("x", None, 64), Strided.contiguous((64,)))
    buffer = transfer.allocate(64)
    for turn in range(3):
        transfer.upload(buffer, value, np.full(64, turn + 1.0, np.float32))
        twice(engine.queue, (64,), None, buffer).wait()
        assert (transfer.download(buffer, value, (64,)) == 2.0 * (turn + 1.0)).all()


def test_fallback_ops_of_one_network_beside_the_kernels_of_another(shared, assets):
    """One thread is the GPU worker of both, a second runs the fallback ops of the first."""
    engine = OpenCLEngine(keep_kernels=False)
    graph = load_graph(assets / "models" / "seg_selfie_256.onnx")
    inputs = sample_inputs(graph)
    network = engine.load(graph, force_fallback={"Resize"})
    other = engine.load(graph)
    state, busy = network.new_state(), other.new_state()
    wanted = shared.run(other, busy, inputs)
    marks = [i for i, op in enumerate(network.ops) if op.fallback]
    edges = sorted({0, len(network.ops), *marks, *(i + 1 for i in marks)})
    for _ in range(3):
        network.write(state, inputs)
        for start, end in pairwise(edges):
            if not network.ops[start].fallback:
                network.run(state, start, end)
                continue
            away = threading.Thread(target=network.run_fallback, args=(state, start, end))
            away.start()
            other.write(busy, inputs)
            other.run(busy, 0, len(other.ops))
            away.join()
        found = network.read(state)
        assert shared.relative_error(found, wanted) <= 1e-4
        assert all(np.array_equal(wanted[key], other.read(busy)[key]) for key in wanted)
