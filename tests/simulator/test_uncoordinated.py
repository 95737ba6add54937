from __future__ import annotations

import pytest

from heimdall.bench.scenario import EventProcess
from heimdall.bench.systems import parse_system
from heimdall.simulator.uncoordinated import UncoordinatedRun


def run(dnns, machine, system="multithread", seconds=3.0):
    made = UncoordinatedRun(dnns, machine, parse_system(system), fps=30, seed=0)
    made.run(seconds)
    return made


def mean_ms(made, name):
    return made.figures.dnns[name].summary()["latency_ms"]["mean"]


def fps(made):
    return made.figures.summary(0, None, made.now_ns)["fps"]["mean"]


def test_alone_without_rendering_a_network_takes_its_time(machine, dnn):
    assert mean_ms(run([dnn("a", [5] * 10)], machine(render_ns=0)), "a") == pytest.approx(50)


def test_two_networks_take_turns(machine, dnn):
    made = run([dnn("a", [10] * 10), dnn("b", [10] * 10)], machine(render_ns=0))
    assert mean_ms(made, "a") == pytest.approx(200, rel=0.12)


def test_every_fallback_op_loses_the_gpu_to_the_others_batch(machine, dnn):
    others = [dnn("a", [10] * 50), dnn("b", [10] * 50)]
    cut = dnn("cut", [5, 1, 5, 1, 5, 1, 5], fallback=(1, 3, 5))
    assert mean_ms(run([cut], machine(render_ns=0)), "cut") == pytest.approx(23)
    # four returns to the GPU, each behind the rest of one batch and all of the other
    assert mean_ms(run([cut, *others], machine(render_ns=0)), "cut") > 100


def test_frames_wait_for_the_batches_of_all_networks(machine, dnn):
    three = [dnn(name, [10] * 50) for name in "abc"]
    assert fps(run(three[:1], machine())) == pytest.approx(30, abs=0.5)
    assert 10 <= fps(run(three, machine())) < 20


def test_short_waits_give_frames_more_turns(machine, dnn):
    three = [dnn(name, [2] * 200) for name in "abc"]
    assert fps(run(three, machine(), "fixed-5")) > fps(run(three, machine()))


def test_waits_cost(machine, dnn):
    costly = machine(render_ns=0, chunk_cost_ns=1_000_000)
    assert mean_ms(run([dnn("a", [5] * 10)], costly), "a") == pytest.approx(51)
    assert mean_ms(run([dnn("a", [5] * 10)], costly, "fixed-5"), "a") == pytest.approx(52)


def test_sessions_run_on_the_cpu_and_leave_the_frames_alone(machine, dnn):
    made = run([dnn("a", [10] * 50, cpu_ms=80)], machine(), "multithread-onnxruntime")
    assert mean_ms(made, "a") == pytest.approx(80)
    assert fps(made) == pytest.approx(30, rel=1e-4)
    assert made.figures.dnns["a"].cpu == len(made.figures.dnns["a"].latencies_ns)


def test_events_while_one_runs_count_once(machine, dnn):
    often = EventProcess(process="periodic", rate_hz=100)
    made = run([dnn("a", [50], event=often)], machine(render_ns=0))
    assert len(made.figures.dnns["a"].latencies_ns) == pytest.approx(3000 / 51, abs=4)


def test_a_rate_cap_is_kept(machine, dnn):
    made = run([dnn("a", [5], max_rate_hz=4)], machine(), seconds=5)
    assert len(made.figures.dnns["a"].latencies_ns) == pytest.approx(20, abs=1)
