"""When the models of a scenario are asked for: the same for the same seed, whatever answers.

Open streams do not wait for answers, so that every system gets the very same trace. Closed loops
do, and so does what comes ``after`` another model: those are told of every answer (``follow``).
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from heimdall.lab.bench.scenario import Scenario
from heimdall.runtime.telemetry.jobs import Outcome
from heimdall.runtime.telemetry.spreads import share, spread

_NS_PER_S = 1e9


class Arrival(NamedTuple):
    """A request that comes. ``slo_ns``: None for its model's; ``lost``: why it is dropped before
    any system hears of it."""

    model: str
    at_ns: int
    slo_ns: int | None = None
    lost: str = ""


class Traffic:
    """The requests of one run. ``frames_ns``: by closed loop, how long each round of it took."""

    def __init__(self, scenario: Scenario, seed: int = 0) -> None:
        self._scenario = scenario
        self._draws = {name: random.Random(f"{seed} {name}") for name in scenario.models}
        self._numbers = {name: random.Random(f"{seed} {name} number") for name in scenario.models}
        self._loops = {name: scenario.loop_of(name) for name in scenario.models}
        self._waiting: dict[str, int] = {}  # requests of a loop's round that are not answered
        self._began_ns: dict[str, int] = {}
        self.frames_ns: dict[str, list[int]] = {
            loop: [] for loop in self._loops.values() if loop is not None
        }
        self._followers: dict[str, list[str]] = {name: [] for name in scenario.models}
        for name, settings in scenario.models.items():
            if settings.after is not None:
                self._followers[settings.after].append(name)

    def arrivals_ns(self) -> dict[str, list[int]]:
        """When each model is asked for, whatever the answers are: its open stream, or the first
        round of its loop."""
        found: dict[str, list[int]] = {name: [] for name in self._scenario.models}
        open_streams = [
            zip(self._events(name), itertools.repeat(name))
            for name, settings in self._scenario.models.items()
            if settings.event is not None and self._loops[name] is None
        ]
        most = self._scenario.requests
        merged = heapq.merge(*open_streams)
        for at_ns, name in merged if most is None else itertools.islice(merged, most):
            if most is None and at_ns >= self._end_ns:
                break
            found[name].append(at_ns)
        for loop in self.frames_ns:
            found[loop] = [at_ns for _, at_ns in self._round(loop, 0)]
        return found

    def follow(self, model: str, finished: bool, now_ns: int) -> list[tuple[str, int]]:
        """(model, when) of the requests that an answer leads to; of one that was dropped, none but
        those of the next round."""
        asked = []
        for follower in self._followers[model] if finished else ():
            asked += [(follower, now_ns)] * self._number(follower)
        loop = self._loops[model]
        if loop is None:
            return asked
        self._waiting[loop] += len(asked) - 1
        if self._waiting[loop]:
            return asked
        self.frames_ns[loop].append(now_ns - self._began_ns[loop])
        return self._round(loop, now_ns) if self._goes_on(loop, now_ns) else []

    def slo_ns(self, model: str, at_ns: int) -> int | None:
        """That of a request of an open stream, where requests differ; None: its model's."""
        settings = self._scenario.models[model]
        if settings.deadline is None or settings.event is None:
            return None
        return round(settings.event.end_s(at_ns / _NS_PER_S) * _NS_PER_S) - at_ns

    def come_of(self, answer: Outcome, now_ns: int) -> list[Arrival]:
        """The requests that an answer leads to, or takes with it."""
        finished = answer.finished_ns is not None
        found: list[Arrival] = []
        for name, at_ns in self.follow(answer.model, finished, now_ns):
            found.append(asked := self._about_the_same(name, at_ns, answer))
            if asked.lost:
                found += self._lost_with(name, now_ns)
        if not finished and self._scenario.drop_late:
            found += self._lost_with(answer.model, now_ns)
        return found

    def _about_the_same(self, model: str, at_ns: int, answer: Outcome) -> Arrival:
        """A request that an answer has led to; its frame may be over by now."""
        if self._scenario.models[model].deadline is None:
            return Arrival(model, at_ns)
        slo_ns = answer.submitted_ns + (answer.slo_ns or 0) - at_ns
        return Arrival(
            model, at_ns, max(slo_ns, 0), "" if slo_ns > 0 else f"{answer.model} was late"
        )

    def _lost_with(self, model: str, now_ns: int) -> list[Arrival]:
        """What would have come after a request that was dropped, and after that."""
        found: list[Arrival] = []
        for follower in self._followers[model]:
            for _ in range(self._number(follower)):
                found.append(Arrival(follower, now_ns, 0, f"{model} was dropped"))
                found += self._lost_with(follower, now_ns)
        return found

    def frame_figures(self) -> dict[str, dict[str, Any]]:
        """Of each closed loop its rounds: how many, how many a second, and how long they took."""
        return {
            loop: {
                "finished": len(rounds_ns),
                "fps": share(1e9 * len(rounds_ns), sum(rounds_ns)),
                "latency_ms": spread(rounds_ns),
            }
            for loop, rounds_ns in self.frames_ns.items()
        }

    def _events(self, name: str) -> Iterator[int]:
        """The times in ns at which an open stream's requests come, without end."""
        event = self._scenario.models[name].event
        for at_s in event.times_s(self._draws[name]) if event is not None else ():
            yield from [round(at_s * _NS_PER_S)] * self._number(name)

    def _round(self, loop: str, now_ns: int) -> list[tuple[str, int]]:
        """Begin a round of a loop."""
        self._waiting[loop] = self._number(loop)
        self._began_ns[loop] = now_ns
        return [(loop, now_ns)] * self._waiting[loop]

    def _goes_on(self, loop: str, now_ns: int) -> bool:
        frames = self._scenario.frames
        return now_ns < self._end_ns if frames is None else len(self.frames_ns[loop]) < frames

    def _number(self, name: str) -> int:
        numbers = self._scenario.models[name].numbers
        return numbers[0] if len(numbers) == 1 else self._numbers[name].choice(numbers)

    @property
    def _end_ns(self) -> float:
        return (self._scenario.seconds or 0.0) * _NS_PER_S
