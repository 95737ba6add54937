from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from heimdall.lab.bench.settings import EventProcess
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.coordinated import CoordinatedRun
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.schedulers.base import Assignment, Choice, FreeRanges
from heimdall.vocabulary.processors import CPU


def run(dnns, machine, system="max-total", seconds=3.0, **options):
    made = CoordinatedRun(dnns, machine, parse_system(system), fps=30, seed=0, **options)
    made.run(seconds)
    return made


def latencies_ms(made, name):
    return [ns / 1e6 for ns in made.figures.dnns[name].latencies_ns]


def test_work_of_two_gaps_ends_in_the_second(machine, dnn):
    # Ready 1 ms after an inference has ended: at 16 ms into the gap, say, then at 3 ms, ...
    made = run([dnn("a", [5] * 9)], machine(), seconds=30)
    times = latencies_ms(made, "a")
    assert 45 < min(times) <= max(times) < 45 + 2 * 10 / 3 + 5
    assert made.figures.summary(0, None, made.now_ns)["fps"]["mean"] == pytest.approx(30, rel=1e-4)


@pytest.mark.parametrize("system", ["max-total", "lst"])
def test_no_picture_is_inferred_twice(machine, dnn, system):
    made = run([dnn("a", [5])], machine(), system, seconds=5)  # 6 ms of 33
    assert len(latencies_ms(made, "a")) == pytest.approx(150, abs=2)


def test_a_rate_cap_is_kept(machine, dnn):
    made = run([dnn("a", [5], max_rate_hz=4)], machine(), seconds=5)
    assert len(latencies_ms(made, "a")) == pytest.approx(20, abs=1)


def test_events_ask_for_an_event_driven_dnn(machine, dnn):
    twice_a_second = EventProcess(process="periodic", rate_hz=2)
    made = run([dnn("a", [5], event=twice_a_second)], machine(), seconds=5)
    assert len(latencies_ms(made, "a")) == pytest.approx(10, abs=1)


def test_a_contended_dnn_moves_to_the_cpu_and_takes_its_time_there(machine, dnn):
    slow, other = dnn("slow", [10] * 40, cpu_ms=100), dnn("other", [10] * 20, constraint_ms=300)
    made = run([slow, other], machine(move_ns=50_000_000))
    assert made.figures.dnns["slow"].cpu
    assert latencies_ms(made, "slow")[-1] == pytest.approx(100)
    stays = run([slow, other], machine(), "max-total-nooffload")
    assert not stays.figures.dnns["slow"].cpu


def test_two_dnns_on_two_workers_of_the_cpu_do_not_wait_for_one_another(machine, dnn):
    three = [dnn(name, [10] * 40, cpu_ms=100) for name in "abc"]

    def lanes(workers):
        tracer = Tracer(0)
        made = run(three, machine(cpu_workers=workers), seconds=10, tracer=tracer)
        on_cpu = [span for span in tracer.spans if span[0] == CPU and span[1] in "abc"]
        assert on_cpu
        overlap = any(a[2] <= b[3] and b[2] < a[3] for a, b in pairwise(on_cpu))
        return made, overlap

    one, overlap = lanes(1)
    assert not overlap
    two, overlap = lanes(2)
    assert overlap
    moved = [name for name in "abc" if two.figures.dnns[name].cpu]
    assert len(moved) >= 2
    assert all(latencies_ms(two, name)[-1] == pytest.approx(100) for name in moved[:2])
    assert (
        two.figures.summary(0, None, two.now_ns)["dnns"]["a"]["latency_ms"]["mean"]
        <= (one.figures.summary(0, None, one.now_ns)["dnns"]["a"]["latency_ms"]["mean"])
    )


def test_an_op_that_overruns_delays_the_frame(machine, dnn):
    seldom = (0,) * 30 + (15_000_000,)
    late = run([dnn("a", [25], gpu_delay_ns=seldom)], machine(), seconds=10)
    assert late.figures.late_frames
    assert not run([dnn("a", [25])], machine()).figures.late_frames


def test_frames_that_often_take_longer_are_shown_later_and_evenly(machine, dnn):
    """The rule of a live run: a frame is due when 99 of 100 are drawn."""
    often = run([dnn("a", [25], gpu_delay_ns=(0, 8_000_000))], machine(), seconds=10)
    figures = often.figures.summary(0, None, often.now_ns)
    assert figures["draw_interval_ms"]["p99"] > 36
    assert figures["frame_interval_ms"]["p99"] < 34.5
    assert figures["late_frames"] < 0.03 * figures["frames"]


def test_crops_run_one_after_the_other(machine, dnn):
    three = dnn("a", [2], tasks=((3,),), max_rate_hz=5)
    made = run([three], machine())
    assert min(latencies_ms(made, "a")) == pytest.approx(6)


def test_preprocessing_is_not_part_of_the_latency(machine, dnn):
    made = run([dnn("a", [5], prepare_ms=20, max_rate_hz=5)], machine())
    figures = made.figures.dnns["a"].summary()
    assert figures["end_to_end_ms"]["p50"] >= figures["latency_ms"]["p50"] + 20


def test_the_timeline_holds_frames_and_chunks_that_do_not_overlap(machine, dnn):
    tracer = Tracer(0)
    run([dnn("a", [7] * 9), dnn("b", [3] * 9)], machine(), tracer=tracer)
    on_gpu = sorted((s, e) for lane, _, s, e, _ in tracer.spans if lane in ("render", "gpu"))
    assert {"render", "gpu"} <= {lane for lane, *_ in tracer.spans}
    assert all(end <= start for (_, end), (start, _) in pairwise(on_gpu))


def test_a_policy_of_queues_serves_an_app_in_its_gaps(machine, dnn):
    class Oldest(FreeRanges):
        name = "oldest"

        def select(self, view, now_ns):
            job, processor = view.ready[0], view.idle[0]
            end = job.costs[job.stage].block_end(job.next_op)
            if job.costs[job.stage].on_ns(processor, job.next_op, end) is None:
                return None  # a part of a network, on the CPU
            return Choice((Assignment(job.id, end, processor),), "oldest")

    mixed = dnn("mixed", [5, 4, 5, 5], fallback=(1,))
    policy: Any = Oldest  # as every coordinator takes it
    system = replace(parse_system("max-total"), scheduler=policy)
    made = CoordinatedRun([mixed, dnn("other", [5] * 9)], machine(), system, fps=30, seed=0)
    made.run(3.0)
    assert made.figures.summary(0, None, made.now_ns)["fps"]["mean"] == pytest.approx(30, rel=1e-3)
    assert len(latencies_ms(made, "mixed")) > 10
    assert len(latencies_ms(made, "other")) > 10
    assert made.coordinator.snapshot(made.now_ns).gap.overruns == 0
