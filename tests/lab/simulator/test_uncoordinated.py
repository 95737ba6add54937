from __future__ import annotations

import pytest

from heimdall.lab.bench.settings import EventProcess
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.uncoordinated import UncoordinatedRun


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


@pytest.mark.parametrize(
    "system", ["multithread", "multithread-onnxruntime", "edf", "drop-while-busy"]
)
def test_no_picture_is_inferred_twice(machine, dnn, system):
    made = run([dnn("a", [5], cpu_ms=5)], machine(), system, seconds=5)  # a sixth of a frame's time
    assert len(made.figures.dnns["a"].latencies_ns) == pytest.approx(150, abs=2)


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
    made = run([dnn("a", [10] * 50, cpu_ms=80)], machine(), "multithread-onnxruntime", seconds=30)
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


def test_sessions_on_all_cores_share_the_work(machine, dnn):
    alone = run([dnn("a", [1], cpu_ms=80)], machine(), "multithread-onnxruntime-all")
    assert mean_ms(alone, "a") == pytest.approx(20, rel=0.01)
    two = run(
        [dnn(name, [1], cpu_ms=80) for name in "ab"], machine(), "multithread-onnxruntime-all"
    )
    assert mean_ms(two, "a") == pytest.approx(40, rel=0.15)


# --- what a capable engineer would do -----------------------------------------------------------


def test_rendering_first_keeps_the_frame_rate(machine, dnn):
    three = [dnn(name, [2] * 200) for name in "abc"]
    made = run(three, machine(), "render-first")
    assert fps(made) == pytest.approx(30, rel=1e-3)
    assert mean_ms(made, "a") == pytest.approx(3 * 400 / 0.9, rel=0.1)  # equal among themselves


def test_by_priority_the_urgent_one_does_not_wait_and_the_others_wait_for_it(machine, dnn):
    often = EventProcess(process="periodic", rate_hz=4)
    dnns = [
        dnn("urgent", [3] * 20, priority="high", event=often),
        dnn("normal", [3] * 20),
        dnn("low", [3] * 20, priority="low"),
    ]
    equal, ranked = run(dnns, machine(), "render-first"), run(dnns, machine(), "priorities")
    assert mean_ms(ranked, "urgent") < 0.6 * mean_ms(equal, "urgent")
    assert fps(ranked) == pytest.approx(30, rel=1e-3)
    # It only ever runs while normal prepares and decodes.
    count = len(ranked.figures.dnns["low"].latencies_ns)
    assert count < len(equal.figures.dnns["low"].latencies_ns) / 3


def test_switches_between_queues_cost_those_who_take_turns_most(machine, dnn):
    dnns = [dnn(name, [3] * 40) for name in "ab"]
    for system, more in (("render-first", 1.5), ("edf", 1.0)):
        free, costly = (
            mean_ms(run(dnns, machine(render_ns=0, switch_ns=ns), system), "a")
            for ns in (0, 2_500_000)
        )
        assert free * more < costly


def test_whole_networks_run_one_at_a_time_and_the_earliest_deadline_first(machine, dnn):
    rarely = EventProcess(process="periodic", rate_hz=2)
    dnns = [
        dnn("a", [10] * 20, constraint_ms=1000),
        dnn("b", [10] * 20, constraint_ms=1000),
        dnn("urgent", [10], constraint_ms=100, event=rarely),
    ]
    made = run(dnns, machine(render_ns=0), "edf", seconds=10)
    urgent_ms = made.figures.dnns["urgent"].summary()["latency_ms"]
    assert 10 <= urgent_ms["mean"] <= urgent_ms["max"] <= 200 + 10
    assert mean_ms(made, "a") == pytest.approx(400, rel=0.1)  # b's turn, and its own without b
    by_turns = run(dnns[:2], machine(render_ns=0), "multithread")
    assert mean_ms(by_turns, "a") == pytest.approx(400, rel=0.05)


def test_edf_with_rendering_first_draws_every_frame_in_time(machine, dnn):
    dnns = [dnn(name, [3] * 50) for name in "ab"]
    assert fps(run(dnns, machine(), "edf-render-first")) == pytest.approx(30, rel=1e-3)


def test_a_bounded_queue_gives_frames_their_turn_sooner_and_waits_for_nothing(machine, dnn):
    three = [dnn(name, [2] * 200) for name in "abc"]
    assert fps(run(three, machine(), "bounded-5")) > fps(run(three, machine()))
    costly = machine(render_ns=0, chunk_cost_ns=1_000_000)
    assert mean_ms(run([dnn("a", [5] * 10)], costly, "bounded-2"), "a") == pytest.approx(51)


def test_all_networks_of_a_frame_end_before_the_next_frame_is_taken(machine, dnn):
    dnns = [dnn("quick", [5]), dnn("slow", [10] * 20)]
    made = run(dnns, machine(render_ns=0), "drop-while-busy", seconds=10)
    counts = {name: len(each.latencies_ns) for name, each in made.figures.dnns.items()}
    assert counts["quick"] == pytest.approx(counts["slow"], abs=1)
    free = run(dnns, machine(render_ns=0), seconds=10)
    assert len(free.figures.dnns["quick"].latencies_ns) > 3 * counts["quick"]


def test_an_event_waits_for_the_frame_that_is_under_way_and_that_counts(machine, dnn):
    often = EventProcess(process="periodic", rate_hz=2.3)
    dnns = [dnn("tap", [5], event=often), dnn("slow", [10] * 20)]
    made = run(dnns, machine(render_ns=0), "drop-while-busy", seconds=20)
    latency_ms = made.figures.dnns["tap"].summary()["latency_ms"]
    assert 60 < latency_ms["mean"] < 180  # half a round, on average
    assert latency_ms["max"] > 150


def test_a_rate_cap_is_kept_between_frames_too(machine, dnn):
    dnns = [dnn("a", [5], max_rate_hz=4), dnn("b", [30])]
    made = run(dnns, machine(render_ns=0), "drop-while-busy", seconds=10)
    assert len(made.figures.dnns["a"].latencies_ns) == pytest.approx(40, abs=6)
