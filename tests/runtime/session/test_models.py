"""Models that a session serves, asked from its thread and from others."""

import asyncio
import math
import os
import threading
from concurrent.futures import wait
from typing import Any

import numpy as np
import pytest
from onnx import save

from heimdall import App, RequestError, RunSummary, Session
from heimdall.engine.null import NullEngine
from heimdall.errors import AppError, ConfigError, HeimdallError, ModelError
from heimdall.runtime.execution import prober
from heimdall.schedulers.base import Assignment, Choice, FreeRanges
from tests.networks import doubled, doublings

NODES = 8


class Everywhere(FreeRanges):
    """Two units of each job at a time, each on another processor than the last."""

    name = "everywhere"

    def select(self, view, now_ns):
        idle, chosen = list(view.idle), []
        for job in view.ready:
            if not idle:
                break
            processor = next((each for each in idle if each != job.processor), idle[0])
            idle.remove(processor)
            end = min(job.next_op + 2, job.costs[job.stage].ops)
            chosen.append(Assignment(job.id, end, processor))
        return Choice(tuple(chosen), "turns") if chosen else None


class Never(FreeRanges):
    """Nothing runs; what waits is hopeless once there are three."""

    name = "never"
    asked = 0

    def select(self, view, now_ns):
        return None


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "chain.onnx"
    save(doublings(NODES, 4), path)
    return path


def tensor(value=1.0):
    return np.full((1, 4), value, np.float32)


def answer(x=1.0):
    return doubled(x, NODES)


@pytest.fixture
def session():
    with Session(device="onnxruntime") as opened:
        yield opened


def test_a_model_says_what_it_takes_and_gives(session, file):
    model = session.register(file, slo_ms=50)
    assert (model.name, model.slo_ms) == ("chain", 50)
    assert [(each.name, each.shape, each.dtype) for each in model.inputs] == [
        ("x", (1, 4), np.float32)
    ]
    assert [each.name for each in model.outputs] == ["y"]
    assert dict(session.models) == {"chain": model}


def test_run_submit_wait_and_callbacks(session, file):
    model = session.register(file, 1000, name="mine", priority="high")
    assert model.run({"x": tensor(2.0)})["y"][0, 0] == answer(2.0)
    called = []
    future = model.submit(tensor(3.0), slo_ms=500)
    future.add_done_callback(lambda done: called.append(done.result()["y"][0, 0]))
    assert session.wait(future, 20)["y"][0, 0] == answer(3.0)
    other = model.submit(tensor(3.0), priority="low")
    assert session.wait(other, 20)["y"][0, 0] == answer(3.0)
    assert called == [answer(3.0)]


def test_the_summary_has_the_figures_of_requests(file):
    options: Any = {"scheduler": Everywhere, "processors": ("gpu", "cpu")}
    with Session(device="onnxruntime", **options) as session:
        assert session.summary().requests == {}
        model = session.register(file, 60_000)
        for _ in range(30):
            model.run(tensor())
        found = session.summary()
        assert found.requests["chain"].finished == 30
        assert found.requests["chain"].violations["slo"] == 0
        assert (found.requests["chain"].lone_ms or 0) > 0
        assert (found.throughput_hz or 0) > 0
        assert {name: each.busy_s > 0 for name, each in found.processors.items()} == {
            "gpu": True,
            "cpu": True,
        }
        assert RunSummary.from_dict(found.to_dict()) == found


def test_inputs_are_copied(session, file):
    model = session.register(file, 1000)
    given = tensor(1.0)
    future = model.submit(given)
    given[:] = 99
    assert session.wait(future, 20)["y"][0, 0] == answer(1.0)


@pytest.mark.parametrize("processors", [None, ("gpu",), ("cpu",), ("gpu", "cpu")])
def test_several_clients_ask_from_threads(file, processors):
    scheduler = Everywhere if processors else "max-total"
    with Session(device="onnxruntime", processors=processors, scheduler=scheduler) as session:
        model = session.register(file, 1000)
        found, done = {}, threading.Event()

        def client(number):
            for i in range(5):
                value = 10.0 * number + i
                found[value] = model.run(tensor(value), timeout_s=60)["y"][0, 0]

        clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
        for each in clients:
            each.start()

        def until_all_are_done():
            for each in clients:
                each.join()
            done.set()

        threading.Thread(target=until_all_are_done).start()
        session.serve(done)
        assert found == {10.0 * n + i: answer(10.0 * n + i) for n in range(4) for i in range(5)}
        # four clients on a busy core: that it takes longer than profiled may be true
        slow = "DNN 'chain': its chunks take more than 8 times as long as profiled"
        assert set(session.summary().errors) <= {slow}


def test_an_asyncio_loop_serves(file):
    async def main():
        with Session(device="onnxruntime") as session:
            model = session.register(file, 1000)
            session.serve_on(asyncio.get_running_loop())
            futures = [session.awaited(model.submit(tensor(float(i)))) for i in range(4)]
            return [each["y"][0, 0] for each in await asyncio.gather(*futures)]

    assert asyncio.run(main()) == [answer(float(i)) for i in range(4)]


def test_sessions_share_the_networks_of_one_file(file):
    with Session(device="onnxruntime") as one, Session() as other:
        model, its = one.register(file, 1000), other.register(file, 1000)
        model_cache = one._run.shared_gpu.model_cache
        assert len(model_cache._loaded) == 1
        assert model.run(tensor())["y"][0, 0] == answer()
        one.close()
        assert its.run(tensor())["y"][0, 0] == answer()
        assert len(model_cache._loaded) == 1
    assert not model_cache._loaded


def test_requests_beside_an_app_that_draws(file):
    class Still(App):
        size, fps = (64, 48), 60

    with Session(Still, device="onnxruntime", frames=40) as session:
        model = session.register(file, 1000)
        futures: list[Any] = []
        while not session.finished:
            if len(futures) < 20:
                futures.append(model.submit(tensor(float(len(futures)))))
            session.step()
        assert wait(futures, 20).not_done == set()
        assert [each.result()["y"][0, 0] for each in futures] == [
            answer(float(i)) for i in range(20)
        ]
        assert session.summary().errors == []


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("slo_ms", [0, -5, math.nan, math.inf, "soon", None, True])
def test_an_slo_is_a_time(session, file, slo_ms):
    with pytest.raises(ConfigError, match="slo_ms"):
        session.register(file, slo_ms)
    assert not session.models


@pytest.mark.parametrize("slo_ms", [0, -5, math.nan, "soon"])
def test_so_is_that_of_a_request(session, file, slo_ms):
    model = session.register(file, 1000)
    with pytest.raises(ConfigError, match="slo_ms"):
        model.submit(tensor(), slo_ms)
    assert model.run(tensor())["y"][0, 0] == answer()  # the others are unharmed


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ({"z": tensor()}, "has inputs"),
        ({}, "has inputs"),
        (tensor()[0], "batch axis"),
        (tensor().astype(np.float64), "astype"),
        ({"x": tensor(), "y": tensor()}, "has inputs"),
    ],
)
def test_wrong_tensors_are_refused_where_they_are_given(session, file, inputs, match):
    model = session.register(file, 1000)
    with pytest.raises(ModelError, match=match):
        model.submit(inputs)


def test_a_name_is_registered_once(session, file):
    session.register(file, 1000)
    with pytest.raises(AppError, match="'chain' in this session already"):
        session.register(file, 1000)
    assert session.register(file, 1000, name="another").run(tensor())["y"][0, 0] == answer()


def test_a_missing_file_and_an_unknown_priority(session, file):
    with pytest.raises(ModelError, match=r"nothing\.onnx"):
        session.register("nothing.onnx", 10)
    with pytest.raises(ConfigError, match="unknown priority 'urgent'"):
        session.register(file, 10, priority="urgent")
    model = session.register(file, 10)
    with pytest.raises(ConfigError, match="unknown priority 'urgent'"):
        model.submit(tensor(), priority="urgent")


def test_requests_to_a_closed_session_do_not_wait(file):
    with Session(device="onnxruntime", scheduler=Never, processors=("gpu", "cpu")) as session:
        model = session.register(file, 1000)
        waiting = [model.submit(tensor()) for _ in range(3)]
        session.step(timeout_s=0.05)
    for future in waiting:
        with pytest.raises(RequestError):
            future.result(0)
    with pytest.raises(AppError, match="closed"):
        model.submit(tensor())


def test_a_queue_that_is_full_refuses_and_counts(file):
    options: Any = {"scheduler": Never, "processors": ("gpu",), "admission": "queue(2)"}
    with Session(device="onnxruntime", **options) as session:
        model = session.register(file, 1000)
        futures = [model.submit(tensor()) for _ in range(5)]
        session.step(timeout_s=0.05)
        refused = [each for each in futures if each.done()]
        assert len(refused) == 3
        with pytest.raises(RequestError, match="2 requests of chain wait already"):
            refused[0].result(0)
        figures = session.summary().requests["chain"]
        assert (figures.submitted, figures.dropped, figures.finished) == (3, 3, 0)
        assert figures.reasons == {"2 requests of chain wait already": 3}


@pytest.mark.parametrize(
    ("processors", "match"),
    [
        ((), "empty"),
        (("gpu", "gpu"), "twice"),
        ((7,), "no processor"),
        ("gpu", "empty"),
        (("gpu", "no such device"), "no OpenCL"),
        (("cpu",), "add 'gpu'"),  # max-total shares that
    ],
)
def test_a_list_of_processors_that_makes_no_sense(processors, match):
    with pytest.raises(HeimdallError, match=match):
        Session(device="onnxruntime", processors=processors).open()


@pytest.mark.parametrize("scheduler", ["max-total", "max-min", "lst"])
def test_a_gpu_that_is_lost_loses_no_request(file, scheduler, monkeypatch):
    monkeypatch.setattr(prober, "EVERY_S", 0.01)
    options: Any = {"scheduler": scheduler, "processors": ("gpu", "cpu")}
    with Session(device="onnxruntime", **options) as session:
        model = session.register(file, 60_000)
        network, gone = (
            session._run._registered._networks["chain"].unit_network(0, "gpu").network,
            threading.Event(),
        )
        run = network.run

        def failing(*arguments):
            if gone.is_set():
                raise OSError("the device is gone")
            return run(*arguments)

        monkeypatch.setattr(network, "run", failing)
        assert model.run({"x": tensor(2.0)})["y"][0, 0] == answer(2.0)
        gone.set()
        futures = [model.submit(tensor(float(value))) for value in range(8)]
        found = [session.wait(each, 20)["y"][0, 0] for each in futures]
        assert found == [answer(float(value)) for value in range(8)]
        assert session.summary().processors["cpu"].busy_s > 0
        gone.clear()
        assert model.run({"x": tensor(3.0)})["y"][0, 0] == answer(3.0)
        figures = session.summary().requests["chain"]
        assert (figures.submitted, figures.finished, figures.dropped) == (10, 10, 0)


def test_an_engine_may_be_one_more_processor(file):
    options: Any = {"scheduler": Everywhere, "processors": ("gpu", NullEngine())}
    with Session(device="onnxruntime", **options) as session:
        model = session.register(file, 1000)
        assert [*session._run._registered._networks["chain"]._unit_networks] == ["gpu", "null"]
        assert model.run(tensor())["y"].shape == (1, 4)


@pytest.mark.parametrize("scheduler", ["heft", "lst"])
def test_two_opencl_devices_and_the_cpu_answer_every_request(file, scheduler, run_python):
    """PoCL shows two, under one name: the second goes by its number."""
    found = run_python(
        f"""
        import json, sys
        import numpy as np
        from heimdall import Session
        from heimdall.engine.opencl.device import devices

        if len(devices()) < 2:
            print("null")
            sys.exit()
        with Session(scheduler={scheduler!r}, processors=("gpu", "1", "cpu")) as session:
            model = session.register({str(file)!r}, 60_000)
            asked = [np.full((1, 4), value, np.float32) for value in range(60)]
            futures = [model.submit({{"x": each}}) for each in asked]
            values = [float(session.wait(each, 30)["y"][0, 0]) for each in futures]
            print(json.dumps([values, sorted(session.summary().processors)]))
        """,
        env={**os.environ, "POCL_DEVICES": "pthread pthread"},
    )
    if found is None:
        pytest.skip("no PoCL to show two devices")
    assert found == [[answer(float(value)) for value in range(60)], ["cpu", "gpu", "gpu2"]]


def test_a_new_priority_from_another_thread_is_known_everywhere_or_nowhere(session, file):
    """Where the main thread looks through all networks meanwhile, the run ended."""
    model = session.register(file, 1000)
    shared_gpu = session._run.shared_gpu

    def known():
        config = shared_gpu.coordinator.config()["dnns"]
        return [plan["name"] for plan in config], list(shared_gpu._plans), len(shared_gpu._networks)

    futures = []
    before = known()
    for priority in ("low", "high"):
        asks = threading.Thread(
            target=lambda priority=priority: futures.append(
                model.submit(tensor(3.0), priority=priority)
            )
        )
        asks.start()
        asks.join(20)
    assert known() == before
    assert [session.wait(each, 20)["y"][0, 0] for each in futures] == [answer(3.0)] * 2
    names, plans, networks = known()
    assert names == plans
    assert len(names) == networks == len(before[0]) + 2
