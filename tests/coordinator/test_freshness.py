"""Inferences that begin anew: after a cut, for another request, on a newer frame as they wait."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heimdall.coordinator import Coordinator
from heimdall.coordinator.replay import record, replay
from heimdall.vocabulary.events import (
    Finish,
    InferenceRequested,
    InputReady,
    Prepare,
    RenderStarted,
    SceneChanged,
)

CUT = 100e6  # C of Eq. 4 between two scenes: 50 grey levels of every pixel
MOVING = 6e6  # between two pictures of a moving camera
INTERVAL_MS = 33.333
RENEWED = "there is a newer frame"


@pytest.fixture
def world(sim):
    """One DNN whose inference takes five gaps and more."""
    plan = sim.plan("a", sim.stage([6] * 20))
    return sim.world([plan], admission="replace", offload=False)


def begun_anew(world):
    return [(at, action) for at, action in world.timed(Prepare) if action.anew]


def given_up(world):
    """Those that had begun to run."""
    return [each for each in begun_anew(world) if each[1].anew != RENEWED]


def starts(world):
    """When each inference of a single DNN began."""
    return [at for at, action in world.timed(Prepare) if not action.anew]


def test_a_cut_early_in_an_inference_lets_it_begin_anew_in_the_next_frame(world):
    world.run(2)
    cut_ms = starts(world)[-1] + 50
    world.at(cut_ms - 2000, SceneChanged(("a",), CUT))
    world.run(0.5)
    ((at, action),) = given_up(world)
    assert (action.dnn, action.stage, action.anew) == ("a", 0, "the scene has changed")
    assert cut_ms <= at <= cut_ms + 2 * INTERVAL_MS


def test_what_is_shown_after_a_cut_is_there_sooner_than_without(sim):
    def first_after_the_cut(admission):
        plan = sim.plan("a", sim.stage([6] * 20))
        world = sim.world([plan], admission=admission, offload=False)
        world.run(2)
        cut_ms = (world.now_ns - sim.start) / sim.ms + 15
        world.at(15, SceneChanged(("a",), CUT))
        world.run(2)
        taken = {}
        for now_ns, _, actions in world.log:
            for action in actions:
                if isinstance(action, Prepare):
                    taken[action.job] = (now_ns - sim.start) / sim.ms
                elif isinstance(action, Finish) and taken[action.job] > cut_ms:
                    return (now_ns - sim.start) / sim.ms - cut_ms
        raise AssertionError("no result after the cut")

    assert first_after_the_cut("replace") < first_after_the_cut("one-in-flight") - INTERVAL_MS


def test_an_inference_that_is_nearly_done_ends_in_spite_of_a_cut(world):
    world.run(2)
    cut_ms = starts(world)[-1] + (starts(world)[-1] - starts(world)[-2]) * 1.85
    world.at(cut_ms - 2000, SceneChanged(("a",), CUT))
    world.run(0.5)
    assert not given_up(world)


def test_no_work_is_given_up_on_a_scene_in_steady_motion(world):
    for frame in range(300):
        world.at(frame * INTERVAL_MS, SceneChanged(("a",), MOVING))
    world.run(10)
    assert not given_up(world)
    assert len(starts(world)) > 40


def test_one_that_has_begun_anew_ends_however_often_the_scene_changes(world):
    world.run(1)
    for frame in range(90):
        world.at(frame * INTERVAL_MS, SceneChanged(("a",), CUT * (1 + frame % 3)))
    world.run(3)
    jobs = [action.job for _, action in given_up(world)]
    assert jobs
    assert len(jobs) == len(set(jobs))
    ended = [at for at, _ in world.timed(Finish) if at > 1000]
    longest = max(b - a for a, b in zip(starts(world), starts(world)[1:], strict=False))
    assert len(ended) >= 8
    assert longest < 2.2 * 180


def test_before_the_first_result_nothing_begins_anew(world):
    world.at(40, SceneChanged(("a",), CUT))
    world.run(0.15)
    assert not begun_anew(world)


def test_a_frame_that_waits_for_the_gpu_is_renewed_while_the_next_is_drawn(sim):
    plans = [
        sim.plan("urgent", sim.stage([6] * 20), priority="high", constraint_ms=100),
        sim.plan("waits", sim.stage([4] * 3)),
    ]
    world = sim.world(plans, admission="replace", scheduler="max-total", offload=False)
    world.run(10)
    sim.check(world)
    waiting = [(at, a) for at, a in begun_anew(world) if a.dnn == "waits"]
    assert waiting
    assert {action.anew for _, action in waiting} == {RENEWED}
    drawing = {
        now_ns for now_ns, event, _ in world.log if isinstance(event, (RenderStarted, InputReady))
    }
    assert all(sim.start + round(at * sim.ms) in drawing for at, _ in waiting)


def test_a_renewed_job_runs_as_often_and_shows_newer_frames(sim):
    plans = [sim.plan(name, sim.stage([5] * 12)) for name in ("first", "waits", "third")]
    ages: dict[str, list[int]] = {}
    for admission in ("one-in-flight", "replace"):
        world = sim.world(plans, admission=admission, scheduler="max-total", offload=False)
        world.run(10)
        taken, ages[admission] = {}, []
        for now_ns, _, actions in world.log:
            for action in actions:
                if isinstance(action, Prepare):
                    taken[action.job] = now_ns
                elif isinstance(action, Finish) and action.dnn == "waits":
                    ages[admission].append(now_ns - taken[action.job])
                    # Latency counts from its first input on, whatever it was renewed by.
                    assert action.latency_ns >= now_ns - taken[action.job] - 3 * sim.ms
    assert len(ages["replace"]) >= 0.9 * len(ages["one-in-flight"])
    mean = {name: sum(each) / len(each) for name, each in ages.items()}
    assert mean["replace"] < 0.9 * mean["one-in-flight"]


def asked(sim, *requests, **options):
    plan = sim.plan("style", sim.stage([6] * 20), continuous=False)
    world = sim.world([plan], admission="replace", offload=False, **options)
    for at_ms, replaces in requests:
        world.at(at_ms, InferenceRequested("style", replaces=replaces))
    return world.run(3)


def test_what_is_asked_for_otherwise_takes_the_place_of_what_runs(sim):
    world = asked(sim, (100, False), (150, True))
    sim.check(world)
    ((at, action),) = begun_anew(world)
    assert 150 <= at <= 150 + INTERVAL_MS
    assert action.anew == "something else is asked for"
    assert len(world.finishes("style")) == 1  # what was asked for first is not wanted any more


def test_what_is_asked_for_once_more_waits_for_its_turn(sim):
    world = asked(sim, (100, False), (150, False))
    assert not begun_anew(world)
    assert len(world.finishes("style")) == 2


def test_whoever_asks_again_and_again_still_gets_results(sim):
    world = asked(sim, *((100 + 40 * n, True) for n in range(50)))
    sim.check(world)
    assert len(world.finishes("style")) >= 6


def test_an_event_driven_dnn_keeps_the_frame_of_its_request(sim):
    plan = sim.plan("look", sim.stage([6] * 20), continuous=False)
    world = sim.world([plan], admission="replace", offload=False)
    for at in (100, 800):
        world.at(at, InferenceRequested("look"))
    world.at(850, SceneChanged(("look",), CUT))
    world.run(2)
    assert not begun_anew(world)
    assert len(world.finishes("look")) == 2


def test_scenes_are_nothing_to_one_that_replaces_nothing(sim):
    plan = sim.plan("a", sim.stage([6] * 20))
    logs = []
    for told in (False, True):
        world = sim.world([plan], offload=False)
        if told:
            world.at(1015, SceneChanged(("a",), CUT))
        world.run(2)
        assert not world.coordinator.replaces
        logs.append(world.timed(Prepare))
    assert logs[0] == logs[1]


def test_a_run_with_replacements_replays(sim):
    plans = [sim.plan("a", sim.stage([6] * 20)), sim.plan("b", sim.stage([3] * 4, fallback=[2]))]
    world = sim.world(plans, admission="replace", scheduler="max-total")
    config = json.loads(json.dumps(world.coordinator.config()))
    for number in range(12):
        world.at(300 * number + 10, SceneChanged(("a", "b"), CUT))
    world.run(4)
    assert begun_anew(world)
    records = json.loads(json.dumps([record(*entry) for entry in world.log]))
    assert list(replay(config, records)) == []
    assert Coordinator.from_config(config).replaces


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_whatever_happens_jobs_run_in_order_and_each_ends(sim, data):
    plans, draw = [], data.draw
    for name in "abc"[: draw(st.integers(1, 3))]:
        stages = [
            sim.stage(
                draw(st.lists(st.sampled_from([0.5, 2, 6]), min_size=1, max_size=9)),
                fallback=draw(st.sets(st.integers(0, 0), max_size=1)),
            )
            for _ in range(draw(st.integers(1, 2)))
        ]
        plans.append(sim.plan(name, *stages, continuous=draw(st.booleans())))
    mode = draw(st.sampled_from(["elastic", "static"]))
    world = sim.world(plans, admission="replace", scheduler="max-total", mode=mode)
    for plan in plans:
        for at in draw(st.lists(st.integers(0, 1400), max_size=9)):
            world.at(at, InferenceRequested(plan.name, replaces=draw(st.booleans())))
    for at in draw(st.lists(st.integers(0, 1400), max_size=9)):
        world.at(at, SceneChanged(tuple(plan.name for plan in plans), CUT))
    world.run(2)
    sim.check(world)
    begun = {action.job for action in world.actions(Prepare)}
    ended = {action.job for action in world.actions(Finish)}
    assert len(begun - ended) <= len(plans)
