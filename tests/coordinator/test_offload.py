from __future__ import annotations

from dataclasses import replace

import pytest

from heimdall.coordinator.offload import Load, predict_cpu_ns, predict_gpu_ns, step
from heimdall.schedulers import utility_for
from heimdall.vocabulary.events import Move
from heimdall.vocabulary.processors import CPU, GPU, REMOTE

MS = 1_000_000


def load(name, processor=GPU, *, latency=100, lone=25, cpu=40, share=0.9, greedy=True, **other):
    """Milliseconds instead of ns; 1 s constraint unless said otherwise."""
    constraint_ms = other.pop("constraint", 1000)
    return Load(
        name=name,
        processor=processor,
        utility=utility_for(other.pop("priority", "normal"), constraint_ms),
        constraint_ns=constraint_ms * MS,
        latency_ns=latency * MS,
        lone_gpu_ns=lone * MS,
        cpu_ns=cpu * MS,
        gpu_share=share,
        cpu_duty=1.0 if greedy else other.pop("duty", 0.05),
        greedy=greedy,
        **other,
    )


def move(*loads, margin=0.2, cpu_workers=1):
    proposal = step(
        loads, margin=margin, move_ns=50 * MS, interval_ns=1000 * MS, lanes={CPU: cpu_workers}
    )
    return (proposal.dnn, proposal.processor) if proposal else None


def test_the_dnn_of_the_highest_latency_moves_to_the_cpu():
    assert move(load("a", latency=150), load("b", latency=200)) == ("b", CPU)


def test_a_tie_goes_to_the_one_nearest_to_its_constraint():
    assert move(load("a", constraint=900), load("b", constraint=300)) == ("b", CPU)


def test_the_cpu_must_win_by_the_margin_and_the_cost_of_moving():
    # 80 ms * 1.2 * (1 + 50 / 1000) = 100.8 ms
    assert move(load("a", latency=100, cpu=80)) is None
    assert move(load("a", latency=101, cpu=80)) == ("a", CPU)
    assert move(load("a", latency=101, cpu=80), margin=0.5) is None


def test_without_contention_nothing_moves_even_to_a_faster_cpu():
    assert move(load("a", latency=30, lone=25, cpu=5)) is None


def test_nothing_moves_to_the_cpu_while_the_gpu_has_time_left():
    assert move(load("a", latency=150, share=0.4), load("b", latency=200, share=0.4)) is None
    assert move(load("a", latency=150, share=0.4), load("b", latency=200, share=0.5)) == ("b", CPU)


def test_dnns_already_on_the_cpu_are_waited_for():
    there = load("b", CPU, cpu=40, latency=40)
    assert predict_cpu_ns(load("a", cpu=40), [there]) == 80 * MS
    assert move(load("a", latency=80), replace(there, held=True)) is None
    assert predict_cpu_ns(load("a", cpu=40), [replace(there, cpu_duty=0.1)]) == 44 * MS


@pytest.mark.parametrize(
    ("workers", "there", "latency"),
    # n that never pause and m workers: each takes as long as all of them, divided by m
    [(2, 1, 40), (2, 2, 60), (2, 3, 80), (3, 2, 40), (3, 3, 160 / 3), (4, 7, 80)],
)
def test_several_workers_of_the_cpu_share_its_dnns(workers, there, latency):
    others = [load(f"dnn{index}", CPU, cpu=40) for index in range(there)]
    assert predict_cpu_ns(load("a", cpu=40), others, workers) == pytest.approx(latency * MS)


def test_a_free_worker_of_the_cpu_makes_a_move_pay():
    there = load("b", CPU, cpu=40, latency=40, held=True)
    assert move(load("a", latency=80), there) is None
    assert move(load("a", latency=80), there, cpu_workers=2) == ("a", CPU)


def test_a_move_must_not_lower_total_utility():
    """a would win 100^2 - 45^2, but c (beta 8) on the CPU would wait 40 ms longer."""
    c = load("c", CPU, cpu=5, latency=20, greedy=False, duty=1.0, priority="high", held=True)
    assert move(load("a"), c) is None
    assert move(load("a"), replace(c, utility=utility_for("low", 1000))) == ("a", CPU)
    assert move(load("a"), c, cpu_workers=2) == ("a", CPU)  # it does not wait at all


def test_a_dnn_that_moved_lately_stays():
    assert move(load("a", held=True)) is None
    assert move(load("a", held=True), load("b", latency=90)) == ("b", CPU)


def test_an_idle_dnn_stays():
    assert move(load("a", latency=0)) is None
    assert move(load("a", CPU, latency=0)) is None


def test_a_high_priority_dnn_moves_only_if_it_pays():
    style = {"priority": "high", "greedy": False, "constraint": 100}
    assert move(load("style", latency=60, lone=45, cpu=20, **style)) is None
    assert move(load("style", latency=90, lone=45, cpu=20, **style)) == ("style", CPU)


def test_reload_predicts_the_gpu_under_its_present_load():
    gone = load("a", CPU, latency=120, lone=25)
    free = [gone, load("style", latency=30, share=0.05, greedy=False, priority="high")]
    busy = [gone, load("style", latency=30, share=0.9, greedy=False, priority="high")]
    assert predict_gpu_ns(gone, free) == pytest.approx(25 * MS / 0.95)
    assert predict_gpu_ns(gone, busy) == pytest.approx(250 * MS)
    assert move(*free) == ("a", GPU)
    assert move(*busy) is None


def test_a_dnn_comes_home_once_the_gpu_has_room_even_from_an_equally_fast_cpu():
    gone = load("a", CPU, latency=40, lone=40, share=0, greedy=False, gpu_demand=0.2)
    assert move(gone, load("b", share=0.5)) == ("a", GPU)
    assert move(gone, load("b", share=0.6)) is None
    assert move(replace(gone, held=True), load("b", share=0.1)) is None
    tight = replace(gone, constraint_ns=79 * MS)  # it needs 40 / (1 - 0.5) on the GPU
    assert move(tight, load("b", share=0.5, greedy=False)) is None


def test_a_dnn_on_the_cpu_goes_over_to_a_server_that_wins_by_the_margin():
    busy = load("busy", latency=25)
    away = load("away", CPU, latency=40, other=REMOTE, other_ns=10 * MS)
    assert move(busy, away) == ("away", REMOTE)
    assert move(busy, replace(away, other_ns=35 * MS)) is None
    assert move(busy, replace(away, held=True)) is None
    assert move(busy, replace(away, other="", other_ns=0)) is None
    there = load("there", REMOTE, latency=40, cpu=40)  # one at a time: it would be waited for
    assert move(busy, away, there) is None


def test_lower_priorities_yield():
    gone = load("style", CPU, lone=32, priority="high", greedy=False)
    assert predict_gpu_ns(gone, [load("a", share=0.9), load("b", greedy=False)]) == 32 * MS


def test_greedy_equals_take_turns():
    gone = load("a", CPU, lone=25)
    assert predict_gpu_ns(gone, [load("b", lone=35, share=1.0)]) == 60 * MS


def test_a_gpu_without_a_free_share_takes_nothing_back():
    gone = load("a", CPU, latency=900)
    full = load("style", latency=30, share=0.97, greedy=False)
    assert predict_gpu_ns(gone, [full]) is None
    assert move(gone, replace(full, held=True)) is None


def test_one_move_a_step_and_offload_comes_before_reload():
    crowded = load("a", latency=300, cpu=30)
    back = load("b", CPU, latency=500, lone=25, cpu=30)
    assert step([crowded, back], margin=0.2, move_ns=0, interval_ns=MS) == Move(
        "a", CPU, "GPU 300 ms, CPU 60 ms"
    )


def test_a_fair_exchange_is_not_undone_in_the_next_step():
    """After b left, its predicted latencies must not send it back."""
    a, b = load("a", latency=60, lone=30, cpu=90), load("b", latency=60, lone=30, cpu=40)
    assert move(a, b) == ("b", CPU)
    after = [replace(a, latency_ns=32 * MS), replace(b, processor=CPU, latency_ns=40 * MS)]
    assert move(*after) is None
