"""Uncoordinated DNNs: a thread each, which knows nothing of the others or of rendering but what
gates tell it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from heimdall.capture import Frame
from heimdall.coordinator.bystander import InferenceEnded
from heimdall.lab.bench.admission import Free, Gate, OneAtATime, Passage, Rounds
from heimdall.lab.bench.inference import Inference
from heimdall.lab.bench.systems import Admission
from heimdall.models.walk import Walk
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.executor import POOL_NICE
from heimdall.runtime.execution.frames import Newest, Renew
from heimdall.runtime.execution.runs import Result
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.system.faults import SharedFallible, say
from heimdall.system.priority import lower_priority
from heimdall.vocabulary.events import Action, Finish, JobFailed, Prepare

RETRY_S = 0.5  # after an inference that failed
LOOK_S = 0.002  # so often a thread without a new picture looks for one
LAST_S = 20.0  # for one that runs when it all ends


class DnnThread:
    """Runs one DNN: preprocess, every stage, decode. A continuous one starts when it is first
    asked, and goes on at its highest rate; another runs once after being asked. What it posts is
    of the job of the request that it runs for. It passes through ``rounds`` for each inference, and
    through ``turnstile`` for each network."""

    def __init__(
        self,
        name: str,
        deployment: Deployment,
        networks: Sequence[Inference],
        newest: Newest,
        inbox: queue.SimpleQueue[Any],
        fault: Callable[[str, str, BaseException], None],
        renew: Renew,
        tracer: Tracer | None,
        rounds: Gate,
        turnstile: Gate,
    ) -> None:
        self._rounds, self._turn = Passage(rounds, name), Passage(turnstile, name)
        self._waited_ns = 0  # for the round of this inference, if it was asked for
        self._deployment = deployment
        self._networks = networks
        self._newest = newest
        self._inbox = inbox
        self._fault = fault
        self._renew = renew
        self._tracer = tracer
        self._name = name
        self._request: tuple[int, Mapping[str, Any]] = 0, {}  # the newest: (job, options)
        self._job = 0
        self._asked = threading.Event()
        self._stopped = threading.Event()
        self._due_ns = 0
        self._seen = -1  # the number of its last picture
        self._thread = threading.Thread(target=self._main, name=self._name, daemon=True)
        self._thread.start()

    def ask(self, job: int, options: Mapping[str, Any]) -> None:
        """Wanted: an inference on the newest frame. While one runs, the newest request is kept."""
        self._request = job, options
        self._asked.set()

    def stop(self) -> None:
        """Make the inference that runs the last one."""
        self._stopped.set()
        self._asked.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end of the last inference, then free the networks. False: it still runs,
        and they are kept."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            return False
        for network in self._networks:
            network.close()
        return True

    def _main(self) -> None:
        lower_priority(POOL_NICE)  # as the pool, which prepares and decodes in coordinated runs
        while self._wait():
            self._due_ns = time.perf_counter_ns() + self._deployment.plan.min_interval_ns
            self._job, options = self._request
            try:
                frame = self._newest()
                self._seen = frame.sequence
                self._infer(frame, options)
            except BaseException as error:  # anything may come out of an app
                reason = f"inference failed: {say(error)}"
                self._fault(self._name, f"{self._deployment.dnn.name}: {reason}", error)
                self._inbox.put(JobFailed(self._job, reason))
                self._rounds.leave()
                self._stopped.wait(RETRY_S)
        self._rounds.leave()

    def _wait(self) -> bool:
        """Until the next inference; False at the end."""
        if not self._asked.is_set() or time.perf_counter_ns() < self._due_ns or self._seen_it:
            self._rounds.leave()  # the next one may begin without this DNN
        self._asked.wait()
        while self._seen_it and not self._stopped.wait(LOOK_S):
            pass
        self._stopped.wait(max(0, self._due_ns - time.perf_counter_ns()) / 1e9)
        asked_ns = time.perf_counter_ns()
        self._rounds.enter()
        self._waited_ns = 0
        if not self._deployment.plan.continuous:  # else the frame of that time was dropped
            self._waited_ns = time.perf_counter_ns() - asked_ns
            self._asked.clear()
        return not self._stopped.is_set()

    @property
    def _seen_it(self) -> bool:
        """True if there is no newer picture: as in coordinated runs, none is inferred twice."""
        return self._deployment.plan.continuous and self._newest().sequence == self._seen

    def _infer(self, frame: Frame, options: Mapping[str, Any]) -> None:
        """Latency counts as in coordinated runs, where the pool copies the first input to the GPU
        before it is enqueued, and the last output from it afterwards: from when the first input is
        there to the end of the last op. What is copied in between counts, and so does the wait for
        a round, of which those know nothing."""
        requested_ns = time.perf_counter_ns() - self._waited_ns
        enqueued_ns = finished_ns = 0
        chunks = 0
        walk = Walk(self._deployment.pipeline, frame.image, options, self._deployment.memory)
        while not walk.ended:
            network = self._networks[walk.stage]
            outputs = []
            for task in walk.prepare():
                network.write(task.inputs)
                enqueued_ns = enqueued_ns or time.perf_counter_ns() - self._waited_ns
                self._in_turn(network, enqueued_ns)
                finished_ns = time.perf_counter_ns()
                outputs.append(network.read())
            chunks += network.chunks * len(outputs)
            walk.decode(outputs)
        value = walk.result()
        walk.remember()
        self._renew(value, frame)
        if self._tracer:
            self._tracer.span(self._name, self._name, enqueued_ns, finished_ns, {})
        finish = self._finish(finished_ns - enqueued_ns, chunks)
        decoded_ns = time.perf_counter_ns()
        self._inbox.put(InferenceEnded(finish))
        self._inbox.put(Result(self._name, value, frame, finish, requested_ns, decoded_ns))

    def _in_turn(self, network: Inference, enqueued_ns: int) -> None:
        """Run a network, with its deadline as rank."""
        self._turn.enter(enqueued_ns + self._deployment.plan.constraint_ns)
        try:
            network.run()
        finally:
            self._turn.leave()

    def _finish(self, latency_ns: int, chunks: int) -> Finish:
        missed = latency_ns > self._deployment.plan.constraint_ns
        processor = self._networks[0].processor
        stages = len(self._networks)
        return Finish(self._job, self._name, processor, latency_ns, missed, chunks, stages)


class Threads(SharedFallible):
    """All DNNs of a run, a thread each, in the place of the Executor.

    ``open_networks`` gives what runs the stages of a DNN, on a queue that no other DNN uses;
    ``let_through`` is called when threads are to end, and what they may wait for will not go on.
    """

    def __init__(
        self,
        inbox: queue.SimpleQueue[Any],
        open_networks: Callable[[Deployment], Sequence[Inference]],
        tracer: Tracer | None,
        admission: Admission = Admission.FREE,
        let_through: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__()
        self._let_through = let_through
        self._rounds: Gate = Rounds() if admission is Admission.ROUNDS else Free()
        self._turnstile: Gate = OneAtATime() if admission is Admission.DEADLINE else Free()
        self._inbox, self._open_networks, self._tracer = inbox, open_networks, tracer
        self._threads: dict[str, DnnThread] = {}
        self._options: dict[str, Mapping[str, Any]] = {}  # of each DNN's newest request
        self.preloaded = threading.Event()
        self.preloaded.set()

    def add(self, name: str, deployment: Deployment, newest: Newest, renew: Renew) -> None:
        """Open a DNN's networks, and a thread for them."""
        self._use(name)
        self._threads[name] = DnnThread(
            name,
            deployment,
            self._open_networks(deployment),
            newest,
            self._inbox,
            self._fault,
            renew,
            self._tracer,
            self._rounds,
            self._turnstile,
        )

    def remove(self, names: Iterable[str]) -> bool:
        """Let DNNs finish their last inferences; False when one has not within ``LAST_S``."""
        names = list(names)
        threads = [self._threads.pop(name) for name in names]
        for thread in threads:
            thread.stop()
        self._let_through()
        until_s = time.monotonic() + LAST_S
        ended = [thread.join(max(0.0, until_s - time.monotonic())) for thread in threads]
        for name in names:
            self._forget(name)
            self._options.pop(name, None)
        return all(ended)

    def ask(self, name: str, options: Mapping[str, Any]) -> None:
        """The options of a DNN's next inference."""
        self._options[name] = options

    def execute(self, actions: Sequence[Action]) -> None:
        """Pass requests on; everything else a thread decides by itself."""
        for action in actions:
            if isinstance(action, Prepare):
                options = self._options.get(action.dnn, {})
                self._threads[action.dnn].ask(action.job, options)

    def leave(self, names: Iterable[str]) -> None:
        """Nothing is loaded here."""

    def preload(self, names: Iterable[str]) -> None:
        """Nothing moves between processors."""

    def watch(self) -> None:
        """A thread each: one that hangs holds up no other."""

    def close(self) -> None:
        """Let every thread finish its last inference."""
        for thread in self._threads.values():
            thread.stop()
        self._let_through()
        for thread in self._threads.values():
            thread.join(LAST_S)
