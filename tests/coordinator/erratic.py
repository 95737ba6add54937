"""A policy that chooses at random, legally and not."""

from __future__ import annotations

from math import nan
from random import Random
from typing import Any

from heimdall.schedulers.base import ANY_EVENT, Assignment, Choice, FreeRanges, Scheduler, wait
from heimdall.vocabulary.processors import CPU, GPU


class Erratic(Scheduler):
    """Of a hundred answers, ``wrong`` are what none may be; ``silent`` are none."""

    name = "erratic"

    def __init__(self, seed: int = 0, wrong: int = 30, silent: int = 10) -> None:
        self._options = {"seed": seed, "wrong": wrong, "silent": silent}
        self._random = Random(seed)
        self._wrong, self._silent = wrong, silent

    def config(self) -> dict[str, Any]:
        return self._options

    def _errs(self) -> bool:
        return self._random.randrange(100) < self._wrong

    def select(self, view, now_ns):
        some = self._random
        if self._errs():
            return self._nonsense(view, now_ns)
        if some.randrange(100) < self._silent:
            return some.choice((None, Choice((), "")))
        return self._legal(view, now_ns)

    def _legal(self, view, now_ns):
        some = self._random
        job, processor = some.choice(view.ready), some.choice(view.idle)
        if self.binds:
            ends = view.fitting()
            job = some.choice([job for job in view.ready if job.id in ends])
            end = ends[job.id]
            if view.cuts_anywhere:
                end = some.randint(job.next_op + 1, end)
            return Choice((Assignment(job.id, end, GPU),), "at random")
        ranges = job.costs[job.stage].on(processor)
        end = job.next_op if ranges is None else ranges.supported_to(job.next_op)
        if end <= job.next_op or ranges.ns(job.next_op, end) is None:
            return wait(now_ns + 10_000_000)
        if ranges.cuts:
            end = some.randint(job.next_op + 1, end)
        if self.together and view.idle.count(processor) > 1 and not view.running:
            return Choice((Assignment(job.id, end, processor, group=1),), "at random, together")
        return Choice((Assignment(job.id, end, processor),), "at random")

    def _nonsense(self, view, now_ns):
        some: Any = self._random
        job, no_lists = some.choice(view.ready), (None, 5, (None,), "ab")
        end = job.next_op + 1
        right = Assignment(job.id, end, view.idle[0])
        kind = some.randrange(20)
        if kind == 0:
            raise some.choice(
                (ValueError("no idea"), KeyError(job), RecursionError(), UnspeakableError())
            )
        if kind == 1:  # what it is given is its own
            view.idle.append(GPU)
        if kind == 2:
            return Choice((right, right), "twice")
        if kind == 3:
            return Choice((right, Assignment(10**6, 1)), "one is not there")
        running = [each.id for each in (*view.running, *view.away)]
        wrong = (
            Assignment(10**6, 1),
            Assignment(-1, end, CPU),
            Assignment(some.choice([*running, 10**6]), end, view.idle[0]),
            Assignment(job.id, end, some.choice((CPU, GPU, "toaster", "", None, 7))),
            Assignment(job.id, some.choice((0, job.next_op, -1, 10**6, 1.0, nan, "1", None))),
            Assignment(job.id, end, view.idle[0], some.choice(("best", None, 3))),
            Assignment(job.id, end, GPU, group=some.choice((1, -1, "a"))),
            Assignment(job.id, end, GPU, stage=some.choice((1, "b"))),
            Assignment(job.id, end, GPU, ops=some.choice((((0, 0),), ((0, 10**6),), ((1,),), 5))),
            Assignment(some.choice(([], {}, nan)), end),
        )
        return some.choice(
            (
                *(Choice((each,), "wrong") for each in wrong),
                Choice((right,), some.choice((None, 3, b"x", object()))),
                Choice((right,), "", wake_ns=some.choice((now_ns, 0, nan, "soon", None))),
                Choice((right,), "", expected_ns=some.choice((-1, nan, "long"))),
                Choice(some.choice((*no_lists, iter((right,)))), ""),
                *("that one", 7, object(), Erratic, [right], nan),
            )
        )

    def place(self, job, queue, now_ns):
        if self._errs():
            return self._random.choice((-1, len(queue) + 1, None, "first", 0.5, nan))
        return self._random.randint(0, len(queue))

    def hopeless(self, job, now_ns):
        if self._errs():
            return self._random.choice((None, 5, b"no", nan, object()))
        return self._random.choice(("", "", "", "at random"))

    def preempts(self, job, running):
        if self._errs():
            return Undecided()
        return self._random.random() < 0.5

    def observe(self, event):
        if self._errs():
            raise OSError("deaf")


class UnspeakableError(Exception):
    """Has no text."""

    def __str__(self):
        raise ValueError("unspeakable")


class Undecided:
    """Neither true nor false."""

    def __bool__(self):
        raise ValueError("undecided")


class ErraticRanges(Erratic, FreeRanges):
    """Each range of ops goes to a processor at random."""

    name = "erratic-ranges"
    triggers = ANY_EVENT


class ErraticTogether(ErraticRanges):
    """Some run together."""

    name = "erratic-together"
    together = True
    requeues = True


ERRATIC = {each.name: each for each in (Erratic, ErraticRanges, ErraticTogether)}
