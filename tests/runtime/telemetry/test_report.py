"""What a run shows of itself while it lasts, and the summary at its end."""

from __future__ import annotations

import json

import pytest

from heimdall.vocabulary.events import ChunkFinished, FrameRendered, InputReady, Prepare, RunChunk

MS = 1_000_000
S = 1_000_000_000


def infer(coordinator, now_ns, waiting=()):
    """One inference in the gap after a frame; when it ends, and what is to be prepared next."""
    actions = [*waiting, *coordinator.receive(FrameRendered(0, now_ns + 45 * MS), now_ns)]
    (prepare,) = [each for each in actions if isinstance(each, Prepare)]
    actions = coordinator.receive(InputReady(prepare.job), now_ns + MS)
    now_ns += MS
    while runs := [each for each in actions if isinstance(each, RunChunk)]:
        (run,) = runs
        elapsed_ns = 5 * MS * (run.end_op - run.start_op)
        now_ns += elapsed_ns
        done = ChunkFinished(run.job, run.processor, run.start_op, run.end_op, elapsed_ns)
        actions = coordinator.receive(done, now_ns)
    return now_ns, actions


def test_before_anything_has_run_there_are_no_figures_but_names(watched):
    status = watched.reporter.status(0, "", "")
    assert (status.app, status.fps, status.fps_target) == ("Watched app", 0.0, 20)
    assert (status.scheduler, status.mode, status.device) == ("max-total", "elastic", "a GPU")
    (eye,) = status.dnns
    assert (eye.name, eye.constraint_ms, eye.processor) == ("eye", 500.0, "gpu")
    assert (eye.rate_hz, eye.age_ms, eye.latency_ms) == (0.0, None, None)


def test_results_have_an_age_and_a_rate_over_the_last_seconds(watched):
    for tenth in range(10):
        watched.reporter.result("eye", tenth * S // 10)
    (eye,) = watched.reporter.status(1 * S, "", "").dnns
    assert eye.rate_hz == pytest.approx(10 / 3)
    assert eye.age_ms == pytest.approx(100)
    (eye,) = watched.reporter.status(60 * S, "", "").dnns
    assert (eye.rate_hz, eye.age_ms) == (0.0, None)


def test_what_a_language_model_makes_are_tokens(watched):
    watched.setup.deployments["eye"].pipeline.makes = "tokens"
    for tenth in range(10):
        watched.reporter.result("eye", tenth * S // 10)
    (eye,) = watched.reporter.status(1 * S, "", "").dnns
    assert (eye.makes, eye.rate_hz) == ("tokens", pytest.approx(10 / 3))


def test_the_newest_message_is_the_runs_else_the_sources(watched):
    assert watched.reporter.status(0, "why", "").message == ""
    watched.setup.source.error = "camera 0: no picture"
    assert watched.reporter.status(0, "why", "").message == "camera 0: no picture"
    status = watched.reporter.status(0, "why", "draw failed")
    assert (status.message, status.reason) == ("draw failed", "why")


def test_after_a_change_status_and_summary_name_the_new_policy(watched):
    watched.shared_gpu.scheduler, watched.shared_gpu.mode = "max-min", "static"
    status = watched.reporter.status(0, "", "")
    assert (status.scheduler, status.mode) == ("max-min", "static")
    summary = watched.reporter.summary(S, 0, 0)
    assert (summary["scheduler"], summary["mode"]) == ("max-min", "static")


def test_gaps_count_from_the_end_of_warm_up(watched):
    reporter, coordinator = watched.reporter, watched.coordinator
    _, waiting = infer(coordinator, 0)
    warm = coordinator.snapshot(60 * MS).gap
    assert warm.busy_ns == 20 * MS
    reporter.warm(60 * MS)
    now_ns, _ = infer(coordinator, 100 * MS, waiting)
    gap = coordinator.snapshot(now_ns).gap
    assert gap.busy_ns > warm.busy_ns
    wanted = gap.utilization_since(warm)
    assert reporter.status(now_ns, "", "").gap_utilization == pytest.approx(wanted)
    assert reporter.summary(now_ns, 0, 0)["gap_utilization"] == pytest.approx(wanted, abs=1e-4)


def test_where_nothing_waits_for_a_gap_no_share_of_it_is_used(watched):
    watched.coordinator.receive(FrameRendered(0, 45 * MS), 0)
    watched.reporter.warm(10 * MS)
    assert watched.reporter.status(40 * MS, "", "").gap_utilization is None
    assert watched.reporter.summary(40 * MS, 0, 0)["gap_utilization"] is None


def test_the_summary_is_plain_data_with_what_ran_where(watched):
    summary = json.loads(json.dumps(watched.reporter.summary(S, 1.23456, 2)))
    assert summary["schema"] == 1
    assert summary["app"] == watched.app.name
    assert summary["startup_s"] == 1.235
    assert summary["ready_s"] == 2
    assert summary["source"] == "video cup.mp4, 640x480"
    assert summary["size"] == [320, 180]
    assert summary["device"] == {"gpu": "a GPU"}
    assert summary["dnns"]["eye"]["inferences"] == 0
