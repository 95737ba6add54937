"""Requests on a virtual clock, through the real coordinator."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heimdall.errors import ConfigError
from heimdall.lab.bench.traffic import Arrival
from heimdall.lab.simulator.clients import SimulatedModel
from heimdall.lab.simulator.requests import RequestSimulation
from heimdall.schedulers.base import Assignment, Choice, FreeRanges
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import CPU, GPU, Processor, usual

MS = 1_000_000


class Oldest(FreeRanges):
    """First come first served, each range on the first idle processor that supports it."""

    name = "oldest"

    def select(self, view, now_ns):
        chosen, idle = [], list(view.idle)
        for job in view.ready:
            costs = job.costs[job.stage]
            end = costs.block_end(job.next_op)
            for processor in idle:
                if costs.on_ns(processor, job.next_op, end) is not None:
                    chosen.append(Assignment(job.id, end, processor))
                    idle.remove(processor)
                    break
        return Choice(tuple(chosen), "oldest")


class Impatient(Oldest):
    name = "impatient"

    def hopeless(self, job, now_ns):
        return "too late" if now_ns > job.deadline_ns else ""


def plan(name="net", ops=(5, 5), chunks=((0, 1), (1, 2)), slo_ms=100, cpu_ms=0, **more):
    op_ns = tuple(ms * MS for ms in ops)
    stage = StagePlan(op_ns, (False,) * len(ops), cpu_ms * MS, 0, chunks, **more)
    return DnnPlan(name, (stage,), slo_ms * MS, continuous=False, queued=True)


def on(**latencies):
    return tuple(
        (name, tuple(None if ms is None else ms * MS for ms in each))
        for name, each in latencies.items()
    )


ONE_GPU = (Processor(GPU, "gpu"),)


def run(models, policy=Oldest, processors=ONE_GPU, **options):
    made = RequestSimulation(
        [SimulatedModel(each, arrivals) for each, arrivals in models], processors, policy, **options
    )
    made.run()
    return made


def test_requests_wait_for_each_other():
    made = run([(plan(), [0, 3 * MS])])
    assert [each.latency_ns for each in made.answered] == [10 * MS, 17 * MS]
    assert made.busy_ns == {GPU: 20 * MS}
    assert made.lone_ns == {"net": 10 * MS}


def test_ranges_go_where_they_are_supported_and_others_run_meanwhile():
    split = plan(on=on(gpu=(5, None), npu=(None, 2)))
    processors = (Processor(GPU, "gpu"), Processor("npu", "npu"))
    made = run([(split, [0, 0])], processors=processors)
    assert made.lone_ns == {"net": 7 * MS}
    assert [each.latency_ns for each in made.answered] == [7 * MS, 12 * MS]
    assert made.busy_ns == {GPU: 10 * MS, "npu": 4 * MS}


def test_a_late_request_is_dropped_where_the_policy_says_so():
    made = run([(plan(slo_ms=15), [0, 0, 0])], Impatient)
    assert sorted(each.reason for each in made.answered) == ["", "", "too late"]


@pytest.mark.parametrize("policy", [Oldest, "fcfs"])
def test_a_request_that_has_not_begun_at_its_deadline_expires_and_one_that_has_ends(policy):
    made = run([(replace(plan(slo_ms=8), expires=True), [0, 0, 20 * MS])], policy)
    first, second, third = sorted(made.answered, key=lambda each: each.request)
    assert first.latency_ns == 10 * MS
    assert second.reason == "it had not begun at its deadline"
    assert third.latency_ns == 10 * MS


def test_more_than_the_queue_holds_is_refused():
    made = run([(plan(), [0, 0, 0, 0])], admission="queue(1)")
    refused = [each.reason for each in made.answered if each.finished_ns is None]
    assert len(made.answered) == 4
    assert refused
    assert all("wait already" in reason for reason in refused)


def test_a_processor_that_is_away_loses_nothing():
    both = plan(on=on(gpu=(5, 5), npu=(50, 50)), slo_ms=1000)
    processors = (Processor(GPU, "gpu"), Processor("npu", "npu"))
    away = [(GPU, 7 * MS, 40 * MS)]
    made = run([(both, [0, 50 * MS])], processors=processors, away=away)
    assert all(each.finished_ns is not None for each in made.answered)
    assert made.busy_ns["npu"] == 50 * MS  # the op that was under way, again
    assert made.answered[1].latency_ns == 10 * MS  # back on the GPU


def test_where_every_processor_is_lost_requests_are_refused():
    made = run([(plan(), [0, 7 * MS, 30 * MS])], away=[(GPU, 6 * MS, 20 * MS)])
    assert [each.reason for each in made.answered] == [
        "every processor is lost",
        "every processor is lost",
        "",
    ]


@pytest.mark.parametrize("policy", ["max-total", "max-min"])
@pytest.mark.parametrize("mode", ["elastic", "static"])
def test_a_lost_gpu_loses_no_request_where_a_policy_binds_models_to_it(policy, mode):
    arrivals = [0, 3 * MS, 6 * MS, 60 * MS, 300 * MS]
    away = [(GPU, 7 * MS, 200 * MS)]  # one runs, two wait, one comes while it is away
    patient = plan(cpu_ms=30, slo_ms=10_000)
    made = run([(patient, arrivals)], policy, usual(renders=False), mode=mode, away=away)
    assert [each.reason for each in made.answered] == [""] * len(arrivals)
    assert made.busy_ns[CPU] > 0
    assert min(each.latency_ns for each in made.answered) > 0


def test_without_another_processor_who_waits_for_a_lost_gpu_is_told():
    alone = run([(plan(), [0, 1 * MS])], "max-total", ONE_GPU, away=[(GPU, 2 * MS, 9 * MS)])
    assert {each.reason for each in alone.answered} == {"every processor is lost"}
    other = (*ONE_GPU, Processor("npu", "npu"))  # which these policies do not know
    made = run([(plan(), [0, 1 * MS])], "max-total", other, away=[(GPU, 2 * MS, 9 * MS)])
    assert {each.reason for each in made.answered} == {"runs on no processor"}


def test_max_total_serves_requests_too():
    made = run([(plan(cpu_ms=30), [0, 3 * MS])], "max-total", usual(renders=False), mode="elastic")
    assert [each.latency_ns for each in made.answered] == [10 * MS, 17 * MS]


def test_cutting_and_noise_cost_time():
    costly = plan(cut_ns=(7 * MS, 2 * MS))
    assert run([(costly, [0])]).answered[0].latency_ns == 12 * MS
    noisy = [run([(plan(), [0])], noise={GPU: 0.3}, seed=seed).now_ns for seed in range(8)]
    assert len(set(noisy)) == 8


def test_an_answer_may_lead_to_further_requests():
    left = [2]

    def again(answered, now_ns):
        left[0] -= 1
        return [Arrival(answered.model, now_ns)] if left[0] >= 0 else []

    made = run([(plan(), [0])], follow=again)
    assert [each.submitted_ns for each in made.answered] == [0, 10 * MS, 20 * MS]


@settings(max_examples=50, deadline=None)
@given(
    arrivals=st.lists(st.integers(0, 300), min_size=1, max_size=12),
    lanes=st.integers(1, 3),
    seed=st.integers(0, 99),
    away=st.tuples(st.integers(0, 200), st.integers(1, 100)),
)
def test_every_request_is_answered_once(arrivals, lanes, seed, away):
    both = plan(
        ops=(5, 9, 2), chunks=((0, 1), (1, 2), (2, 3)), on=on(gpu=(5, 9, 2), cpu=(9, None, 4))
    )
    processors = (Processor(GPU, "gpu"), Processor(CPU, "cpu", lanes=lanes))
    gone = [(GPU, away[0] * MS, (away[0] + away[1]) * MS)]
    made = run(
        [(both, [at * MS for at in arrivals])], processors=processors, seed=seed, away=gone,
        noise={GPU: 0.2, CPU: 0.2}, estimates=0.3,
    )  # fmt: skip
    assert sorted(each.request for each in made.answered) == list(range(len(arrivals)))


@pytest.mark.parametrize(
    ("processors", "message"),
    [
        ((), "empty"),
        ((Processor(GPU, "gpu"), Processor(GPU, "gpu")), "same id"),
        ((Processor(GPU, "abacus"),), "abacus"),
        ((Processor(GPU, "gpu", lanes=0),), "at least one lane"),
    ],
)
def test_a_list_of_processors_that_cannot_be(processors, message):
    with pytest.raises(ConfigError, match=message):
        run([(plan(), [0])], processors=processors)


def test_an_op_that_nothing_supports():
    with pytest.raises(ConfigError, match=r"op 1 .* supported by no processor \(gpu, npu\)"):
        run([(plan(on=on(gpu=(5, None), npu=(5, None))), [0])])


class Wrong(Oldest):
    name = "wrong"

    def select(self, view, now_ns):
        return Choice((Assignment(view.ready[0].id, 2, "abacus"),), "why not")


def test_a_policy_that_chooses_what_cannot_be():
    done = run([(plan(), [0])], Wrong)
    assert done.answered[0].finished_ns is not None  # by another policy's choice
    assert "'abacus' has no free lane" in done.coordinator.faults.messages[0]


class AllTogether(Oldest):
    """Every job that waits, whole, at the same time."""

    name = "all together"

    def select(self, view, now_ns):
        if not view.idle:
            return None
        return Choice(
            tuple(Assignment(job.id, 2, group=index) for index, job in enumerate(view.ready, 1)),
            "all",
        )


def test_what_runs_together_takes_what_the_device_says():
    seen = []

    def together(action):
        seen.append(action.parts)
        return 7 * MS

    lanes = (Processor(GPU, "gpu", lanes=4),)
    done = run([(plan(), [0, MS, MS])], AllTogether, lanes, together=together)
    assert seen == [((0, 0, 2),), ((1, 0, 2), (2, 0, 2))]
    assert [each.finished_ns for each in done.answered] == [7 * MS, 14 * MS, 14 * MS]
    assert done.busy_ns == {GPU: 14 * MS}


def test_a_device_that_says_nothing_of_what_runs_together():
    with pytest.raises(ConfigError, match="nothing is known of what runs together on 'gpu'"):
        run([(plan(), [0])], AllTogether, (Processor(GPU, "gpu", lanes=4),))
