"""Clients that ask when traffic says so, and follow up on answers."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from heimdall.errors import ConfigError, HeimdallError, RequestError
from heimdall.lab.bench.clients import Clients
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.traffic import Traffic

SECOND = 1_000_000_000


@pytest.fixture
def play():
    """Play a scenario against ``submit(model)``; returns the traffic and the outcomes."""

    def run(submit, exits=None, **said: Any):
        scenario = Scenario.model_validate({"name": "test", "title": "Test", **said})
        traffic = Traffic(scenario)
        submits = {name: lambda name=name: submit(name) for name in scenario.models}
        slos = dict.fromkeys(scenario.models, SECOND)
        clients = Clients(traffic, submits, slos, exits=exits)
        clients.start()
        assert clients.over.wait(30)
        clients.join(30)
        return traffic, clients.outcomes

    return run


def done(value: object = None, error: Exception | None = None) -> Future[Any]:
    future: Future[Any] = Future()
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
    return future


OPEN: dict[str, Any] = {
    "requests": 20,
    "models": {"a": {"event": {"process": "poisson", "rate_hz": 500}}},
}


def test_every_request_is_asked_once_and_noted(play):
    asked = []

    def submit(name: str) -> Future[Any]:
        asked.append(name)
        return done()

    _, outcomes = play(submit, **OPEN)
    assert asked == ["a"] * 20
    due = Traffic(Scenario.model_validate({"name": "test", "title": "Test", **OPEN})).arrivals_ns()[
        "a"
    ]
    assert sorted(each.submitted_ns for each in outcomes) == due
    assert all(each.finished_ns is not None for each in outcomes)
    assert {each.slo_ns for each in outcomes} == {SECOND}


def test_latency_counts_from_when_a_request_was_due(play):
    _, outcomes = play(lambda name: done(), **OPEN)
    assert min(each.latency_ns for each in outcomes) >= 0


def test_refusals_and_failures_are_drops_with_a_reason(play):
    answers = [done(error=RequestError("too late")), done(), done(error=ValueError())]

    def submit(name: str) -> Future[Any]:
        if answers:
            return answers.pop()
        raise ConfigError("the queue is full")

    _, outcomes = play(submit, **{**OPEN, "requests": 5})
    reasons = [each.reason for each in outcomes]
    assert sorted(reasons) == ["", "ValueError", *["the queue is full"] * 2, "too late"]
    assert all((each.finished_ns is None) == bool(each.reason) for each in outcomes)


def test_a_closed_loop_goes_round_on_answers_from_another_thread(play):
    models = {"a": {"event": {"process": "closed"}, "number": 2}, "b": {"after": "a"}}
    with ThreadPoolExecutor(2) as pool:
        traffic, outcomes = play(lambda name: pool.submit(int), frames=5, models=models)
    assert [each.model for each in outcomes].count("b") == 10
    assert len(traffic.frames_ns["a"]) == 5


def test_an_answer_says_which_exit_it_came_from(play):
    answers = iter([{"y1": 0}, {"scores": 0}, {"y1": 0, "scores": 0}, None])

    def submit(name: str) -> Future[Any]:
        answer = next(answers)
        return done(answer) if answer else done(error=RequestError("late"))

    exits = {"a": {"y1": ("exit1", 0.8), "scores": ("whole", 1.0)}}
    _, outcomes = play(submit, exits, **{**OPEN, "requests": 4})
    taken = [(each.exit, each.accuracy) for each in outcomes]
    assert taken == [("exit1", 0.8), ("whole", 1.0), ("whole", 1.0), ("", 0.0)]


def test_a_model_without_exits_has_no_accuracy(play):
    _, outcomes = play(lambda name: done({"y": 0}), {"a": {}}, **OPEN)
    assert {(each.exit, each.accuracy) for each in outcomes} == {("", None)}


@pytest.mark.parametrize("where", ["asking", "answering", "following up"])
def test_an_unexpected_exception_ends_the_asking_and_is_an_error(where, monkeypatch):
    traffic = Traffic(Scenario.model_validate({"name": "test", "title": "Test", **OPEN}))

    def submit():
        if where == "asking":
            raise KeyError("no such input")
        return done()

    def fail(*arguments):
        raise ZeroDivisionError

    if where == "following up":
        monkeypatch.setattr(traffic, "come_of", fail)
    clients = Clients(traffic, {"a": submit}, {"a": SECOND})
    if where == "answering":
        monkeypatch.setattr(clients, "_taken", fail)
    clients.start()
    assert clients.over.wait(30)
    with pytest.raises(HeimdallError, match=r"failed: (KeyError|ZeroDivision)"):
        clients.check()


def test_all_is_well_where_nothing_failed():
    traffic = Traffic(Scenario.model_validate({"name": "test", "title": "Test", **OPEN}))
    clients = Clients(traffic, {"a": done}, {"a": SECOND})
    clients.start()
    assert clients.over.wait(30)
    clients.check()
