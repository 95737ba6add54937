"""The baselines in virtual time: every DNN in a thread of its own, without a coordinator.

A thread is a generator: it yields the time at which it wants to go on, the ops that it waits for
on the GPU, or what takes a call that lets it go on; it is sent the time that it has become.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from heimdall.coordinator.bystander import Bystander
from heimdall.lab.bench.admission import Go, OneAtATime, Rounds
from heimdall.lab.bench.systems import FIRST, Admission, Precedence, Sharing, System
from heimdall.lab.simulator.agenda import Agenda
from heimdall.lab.simulator.clients import Follow, Requests, SimulatedModel
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.run import RENDER, SimulatedRun
from heimdall.lab.simulator.turns import Service, TurnTakingGpu
from heimdall.vocabulary.events import Finish, InferenceRequested, InputReady
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU
from heimdall.vocabulary.reasons import EXPIRED

LOOK_NS = 1_000_000  # how often a thread that has seen the newest frame looks for another
Wanted = int | Sequence[int] | Callable[[Go], None]
Thread = Generator[Wanted, int, None]


class Line:
    """The requests that wait for a model's thread."""

    def __init__(self) -> None:
        self._waiting: deque[int] = deque()
        self._go: Go | None = None

    def come(self, request: int) -> None:
        self._waiting.append(request)
        if self._go is not None:
            go, self._go = self._go, None
            go()

    def ask(self, go: Go) -> None:
        """Let the thread go on when there is one."""
        if self._waiting:
            go()
        else:
            self._go = go

    def take(self) -> int:
        return self._waiting.popleft()


class UncoordinatedRun(SimulatedRun):
    """A baseline: threads that share the processors as their system says. ``requests``: those for
    its models, from when figures count; ``draws``: there are frames."""

    def __init__(
        self,
        dnns: Sequence[SimulatedDnn],
        machine: Machine,
        system: System,
        *,
        models: Sequence[SimulatedModel] = (),
        follow: Follow | None = None,
        draws: bool = True,
        **options: Any,
    ) -> None:
        """``models`` are asked for, each from a thread of its own; see ``Requests``."""
        super().__init__(dnns, machine, **options)
        assert system.sharing is not None
        self._sharing = sharing = system.sharing
        asked = [each.network for each in models]
        self._agenda: Agenda[Callable[[int], None]] = Agenda()
        self._gpu = TurnTakingGpu(
            self._agenda,
            service=_service(sharing, machine, (*dnns, *asked)),
            switch_ns=machine.switch_ns,
            noise=self.gpu_noise,
            ran=self.on_gpu,
        )
        self._pieces = {
            dnn.name: [_pieces(stage, sharing.wait_ops) for stage in dnn.plan.stages]
            for dnn in (*dnns, *asked)
        }
        self.requests = Requests(self, models, follow)
        self._lines = {each.name: Line() for each in asked}
        self._turnstile = OneAtATime() if sharing.admission is Admission.DEADLINE else None
        self._rounds = Rounds() if sharing.admission is Admission.ROUNDS else None
        self._until_ns = 0
        self._frame_ended = False
        self._frame = 0  # the number of the newest
        if draws:
            self._go_on(RENDER, self._rendering(), None)
        for dnn in dnns:
            self._go_on(dnn.name, self._inferring(dnn), None)
        for dnn in asked:
            self._go_on(dnn.name, self._answering(dnn), None)

    def advance(self, until_ns: int) -> None:
        self._until_ns, self._frame_ended = until_ns, False
        while not self._frame_ended:
            self.now_ns, call = self._agenda.pop()
            call(self.now_ns)

    def warm(self) -> None:
        super().warm()
        self.requests.begin(self.now_ns)

    def later(self, at_ns: int, event: InferenceRequested | InputReady) -> None:
        """A request comes then."""
        assert isinstance(event, InferenceRequested)
        assert event.request is not None
        line, request = self._lines[event.dnn], event.request
        self._agenda.add(at_ns, lambda now_ns: line.come(request))

    # --- threads --------------------------------------------------------------------------

    def _go_on(self, name: str, thread: Thread, now_ns: int | None) -> None:
        """Run a thread until it waits again."""
        wanted = next(thread) if now_ns is None else thread.send(now_ns)

        def resume(at_ns: int) -> None:
            self._go_on(name, thread, at_ns)

        if isinstance(wanted, int):
            self._agenda.add(max(wanted, self.now_ns), resume)
        elif callable(wanted):
            wanted(lambda: self._agenda.add(self.now_ns, resume))
        else:
            self._gpu.submit(name, wanted, self.now_ns, resume)

    def _rendering(self) -> Thread:
        """The main thread: a frame at every deadline that it can still keep."""
        loop = self.frame_loop(Bystander())
        while True:
            began_ns = yield loop.start_ns
            self._frame += 1
            loop.started(began_ns)
            completed_ns = yield (int(self.machine.render_ns * self.render_noise()),)
            loop.drawn(completed_ns, completed_ns - began_ns)
            loop.opened(completed_ns)
            presented_ns = yield loop.present_ns
            self.figures.presented(loop.presented(presented_ns))
            self._frame_ended = presented_ns >= self._until_ns

    def _inferring(self, dnn: SimulatedDnn) -> Thread:
        """A DNN: preprocess, infer, postprocess, and again."""
        figures, plan = self.figures.dnns[dnn.name], dnn.plan
        next_ns, seen = 0, -1
        while True:
            while seen == self._frame and plan.continuous:  # no picture is inferred twice
                if self._rounds:
                    self._rounds.leave(dnn.name)
                yield self.now_ns + LOOK_NS
            due_ns = self._due_ns(dnn, next_ns)
            if self._rounds and due_ns > self.now_ns:
                self._rounds.leave(dnn.name)
            requested_ns = now_ns = yield due_ns
            if self._rounds:
                now_ns = yield partial(self._rounds.ask, dnn.name, 0.0)
                requested_ns = self._asked_ns(dnn, requested_ns)
            next_ns, seen = now_ns + plan.min_interval_ns, self._frame
            waited_ns, enqueued_ns, chunks = now_ns - requested_ns, 0, 0
            for stage in range(len(plan.stages)):
                now_ns = yield self.cores.end_ns(now_ns, self.one_of(dnn.prepare_ns[stage]))
                enqueued_ns = enqueued_ns or now_ns - waited_ns
                for _ in range(self.tasks(dnn, stage)):
                    chunks += len(self._pieces[dnn.name][stage])
                    now_ns = yield from self._infer(dnn, stage, enqueued_ns, now_ns)
            latency_ns = now_ns - enqueued_ns
            missed = latency_ns > plan.constraint_ns
            processor = GPU if self._sharing.on_gpu else CPU
            figures.finished(Finish(0, dnn.name, processor, latency_ns, missed, chunks))
            now_ns = yield self.cores.end_ns(now_ns, dnn.decode_ns)
            figures.shown(requested_ns, now_ns)

    def _answering(self, dnn: SimulatedDnn) -> Thread:
        """A model: one request after the other."""
        line, requests = self._lines[dnn.name], self.requests
        while True:
            yield line.ask
            request = line.take()
            if requests.expired(request):
                requests.given_up(request, EXPIRED)
                continue
            wanted_ns = requests.deadline_ns(request) - dnn.plan.constraint_ns
            yield from self._infer(dnn, 0, wanted_ns, self.now_ns)
            requests.done(request, GPU if self._sharing.on_gpu else CPU)

    def _asked_ns(self, dnn: SimulatedDnn, asked_ns: int) -> int:
        """Since when a client waits for the inference of a round that begins now. An event is kept
        until then, and a newer one instead of it; a frame that met a round under way was dropped,
        and no client waits for that."""
        if (arrivals := self.arrivals.get(dnn.name)) is None:
            return self.now_ns
        arrivals.take(self.now_ns)
        return asked_ns

    def _due_ns(self, dnn: SimulatedDnn, earliest_ns: int) -> int:
        """When the next inference may begin. Of several events, only the newest is kept."""
        now_ns = max(self.now_ns, earliest_ns)
        if (arrivals := self.arrivals.get(dnn.name)) is None:
            return now_ns
        if not arrivals.take(now_ns):
            now_ns = arrivals.next_ns
            arrivals.take(now_ns)
        return now_ns

    def _infer(
        self, dnn: SimulatedDnn, stage: int, enqueued_ns: int, now_ns: int
    ) -> Generator[Wanted, int, int]:
        """One task of a stage; returns when it has ended."""
        if not self._sharing.on_gpu:
            work_ns, cores = dnn.plan.stages[stage].cpu_ns, self.cores
            end_ns = cores.end_ns if self._sharing.cores else cores.shared_end_ns
            return (yield end_ns(now_ns, work_ns))
        if self._turnstile is None:
            return (yield from self._on_gpu(dnn, stage, now_ns))
        deadline_ns = enqueued_ns + dnn.plan.constraint_ns
        now_ns = yield partial(self._turnstile.ask, dnn.name, deadline_ns)
        now_ns = yield from self._on_gpu(dnn, stage, now_ns)
        self._turnstile.leave(dnn.name)
        return now_ns

    def _on_gpu(self, dnn: SimulatedDnn, stage: int, now_ns: int) -> Generator[Wanted, int, int]:
        for ops, fallback in self._pieces[dnn.name][stage]:
            if fallback:
                now_ns = yield self.cores.end_ns(now_ns, sum(ops))
            else:
                yield now_ns + len(ops) * self.machine.launch_ns
                now_ns = yield ops
                now_ns = yield now_ns + self.machine.chunk_cost_ns  # the wait for the GPU
        return now_ns


def _service(sharing: Sharing, machine: Machine, dnns: Sequence[SimulatedDnn]) -> Service:
    """How the GPU serves these threads; without ``batch_ns`` as long as its driver does."""
    precedence = sharing.precedence
    ranks = {dnn.name: precedence.rank(dnn.plan) for dnn in dnns}
    if precedence is not Precedence.NONE:
        ranks[RENDER] = FIRST
    return Service(
        batch_ns=sharing.batch_ns or machine.batch_ns,
        most_ops=sharing.most_ops,
        ranks=ranks,
    )


def _pieces(stage: StagePlan, most: int | None) -> list[tuple[tuple[int, ...], bool]]:
    """(op times, whether on the CPU) between two waits: runs of one kind, on the GPU of at most
    ``most`` ops."""
    pieces = []
    for fallback, run in groupby(zip(stage.op_ns, stage.fallback, strict=True), lambda op: op[1]):
        ops = tuple(ns for ns, _ in run)
        step = len(ops) if fallback or most is None else most
        pieces += [(ops[i : i + step], fallback) for i in range(0, len(ops), step)]
    return pieces
