"""What every run of an app has, whether it draws or not: results, requests, figures, an end."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from heimdall.analyzer.partition import Cut, strategy_of
from heimdall.app import App, RunOptions
from heimdall.capture import Frame
from heimdall.errors import AppError
from heimdall.models.memory import Memory
from heimdall.runtime.execution.hearing import Listening
from heimdall.runtime.execution.runs import Result
from heimdall.runtime.execution.writing import Writing
from heimdall.runtime.loop.callbacks import Callbacks
from heimdall.runtime.loop.scene_watch import SceneWatch
from heimdall.runtime.opening.setup import Setup
from heimdall.runtime.session.models import RegisteredModels, Wait
from heimdall.runtime.session.shared_gpu import SharedGpu
from heimdall.runtime.telemetry.figures import Figures
from heimdall.runtime.telemetry.jobs import ModelFigures
from heimdall.runtime.telemetry.kept import Kept, begin_with
from heimdall.runtime.telemetry.report import Reporter
from heimdall.runtime.telemetry.spreads import share
from heimdall.tracking import Tracker
from heimdall.tracking.world.thread import PoseThread
from heimdall.vocabulary.events import (
    Action,
    Drop,
    Finish,
    FrameArrived,
    InferenceRequested,
    Prepare,
    Reconfigured,
    RunChunk,
    RunTogether,
    SceneChanged,
)

log = logging.getLogger(__name__)

Listener = Callable[[str, Any, Frame], None]  # (DNN, result, the frame it is of)


@dataclass(frozen=True, eq=False)
class _Waiting:
    """A caller that waits for a DNN's result on frame ``sequence`` or later, of the ``request``."""

    dnn: str
    sequence: int
    request: int
    future: Future[Any]


class _InFlight(NamedTuple):
    """What a job is of: the frame, and how often its DNN had been asked for."""

    dnn: str
    sequence: int
    request: int

    def serves(self, caller: _Waiting) -> bool:
        new = caller.sequence <= self.sequence and caller.request <= self.request
        return new and caller.dnn == self.dnn


class BaseRun:
    """One run of one app on an opened setup, among those of its shared GPU. Main thread only.

    ``scheduler``, ``mode`` and ``fps`` are what it runs under now. ``on_result`` hears of every
    result, as the app does.
    """

    closed = False
    _registered: RegisteredModels | None = None  # where it has models to serve

    def __init__(
        self,
        app: App,
        options: RunOptions,
        setup: Setup,
        shared_gpu: SharedGpu,
        on_result: Listener | None = None,
    ) -> None:
        self._app, self._options, self._setup = app, options, setup
        self._shared_gpu, self._router = shared_gpu, shared_gpu.router
        self._clock, self._on_result = shared_gpu.clock, on_result
        self._frame = setup.first_frame
        self.scheduler = shared_gpu.scheduler
        self.mode, self.fps = shared_gpu.mode, setup.fps
        self._callbacks = Callbacks(shared_gpu.clock, round(1e9 / setup.fps))
        self._figures = _figures(setup, options.cpu_workers or 1)
        self._waiting: list[_Waiting] = []
        self._asked: dict[str, int] = {}  # how often a DNN was asked for
        self._options_of: dict[str, Mapping[str, Any]] = {}  # the last time
        self._told = -1  # the number of the frame that DNNs have been told of
        self._results: dict[str, tuple[int, Any]] = {}  # the newest: of which frame, and itself
        self._jobs: dict[int, _InFlight] = {}
        self._reason = ""
        self._startup_s = self._ready_s = 0.0  # to the first picture, and to the app's own
        self._tracker = app._tracker = Tracker()
        self._watch = SceneWatch() if shared_gpu.replaces else None
        self._listening: dict[str, Listening] = {}  # those that hear
        self._writing: list[Writing] = []  # those of language models
        self._recurrent: dict[str, Memory] = {}  # what those that go from picture to picture know
        self._kept = self._new_kept(options)
        try:
            self._join()
        except BaseException:  # among them that the user has had enough
            self.keep()
            raise

    def _join(self) -> None:
        """Hear of frames, and run this app's DNNs on the shared GPU."""
        app, setup, shared_gpu = self._app, self._setup, self._shared_gpu
        poses = app.world.thread if app.world is not None else None
        self._observe = _observing(self._tracker, self._watch, self._kept, poses)
        setup.source.observe = self._observe
        self._names = shared_gpu.names_for(setup.deployments)  # by those of the shared GPU
        self._reporter = Reporter(app, setup, shared_gpu, self._figures, self._names)
        for name, dnn in self._names.items():
            deployment = setup.deployments[dnn]
            client = shared_gpu.executor.add(name, deployment, self._newest, self._renewing(dnn))
            if isinstance(client, Listening):
                self._listening[dnn] = client
            elif isinstance(client, Writing):
                self._writing.append(client)
            elif deployment.memory is not None:
                self._recurrent[dnn] = deployment.memory
        self._router.join(self, list(self._names))
        shared_gpu.admit(self._names, setup.deployments)

    def _new_kept(self, options: RunOptions) -> Kept | None:
        """What keeps the session, if it is to be kept."""
        if options.capture is None:
            return None
        shared_gpu, setup = self._shared_gpu, self._setup
        replayable = shared_gpu.coordinator.keeps_gaps
        config = dict(shared_gpu.coordinator.config()) if replayable else None
        about = {
            "app": self._app.name,
            "device": setup.gpu_name,
            "source": setup.source.describe(),
            "scripted": options.scripted,
        }
        kept = Kept(options.capture, about, config, options.lossless)
        if replayable:
            shared_gpu.router.observers.append(kept.step)
        return kept

    def _renewing(self, dnn: str) -> Callable[[Any, Frame], None]:
        return lambda value, frame: self._tracker.renew(dnn, value, frame)

    def _newest(self) -> Frame:
        """The frame that a job begins with, and the next picture shows."""
        self._frame = self._setup.source.latest() or self._frame
        return self._frame

    def _tell_frame(self) -> Frame:
        """Tell of a frame that the DNNs have not been told of; returns the newest."""
        frame = self._newest()
        if frame.sequence != self._told:
            self._told = frame.sequence
            self._router.tell(FrameArrived(tuple(self._names), frame.sequence))
        return frame

    def _tell_scene(self) -> None:
        """Tell how much what the DNNs look at has changed since it was told."""
        if self._watch is not None and (change := self._watch.take()):
            self._router.tell(SceneChanged(tuple(self._names), change))

    @property
    def shared_gpu(self) -> SharedGpu:
        """The GPU that the run shares with others."""
        return self._shared_gpu

    @property
    def setup(self) -> Setup:
        """What the run was set up with."""
        return self._setup

    def begin(self) -> None:
        """Call the app's start, and ask for what it asks for."""
        if self._kept is not None:
            self._kept.begin(self._frame, self._setup.source.live, self._recurrent)
        begin_with(self._setup.source.session.get("states", {}), self._recurrent)
        self._callbacks.call(self._app.on_start)
        for dnn, listening in self._listening.items():
            hearing = self._setup.deployments[dnn].dnn.hears
            if self._setup.sound is not None and hearing is not None:
                self._setup.sound.listen(hearing, listening.hear)
        for writing in self._writing:
            writing.start()
        if self._options.offload:
            moving = (n for n, dnn in self._names.items() if not self._stays(dnn))
            self._shared_gpu.executor.preload(moving)
        self._request()

    def _stays(self, dnn: str) -> bool:
        return self._setup.deployments[dnn].pipeline.stays

    def registered_models(self, wait: Wait) -> RegisteredModels:
        """The models that the run serves; ``wait`` for an answer so."""
        if self._registered is None:
            gap_ns = round(1e9 / self.fps) - self._setup.lone_render_ns
            cut = Cut(gap_ns, strategy_of(self.mode))
            self._registered = RegisteredModels(self._shared_gpu, wait, cut, self._figures.ran)
        return self._registered

    def now_ns(self) -> int:
        """By the run's clock."""
        return self._clock()

    @property
    def newest_sequence(self) -> int:
        """The number of the newest frame."""
        return self._newest().sequence

    # --- requests ----------------------------------------------------------------------------

    def _request(self) -> None:
        """Pass on what the app has asked for."""
        if self._app._adjusted:
            self.adjust()
        if self._app._reset:
            self.reset()
        requests, self._app._requests = self._app._requests, []
        for dnn, options in requests:
            self.ask(dnn, options)

    def reset(self) -> None:
        """Have the states begin anew that the app no longer wants."""
        resets, self._app._reset = self._app._reset, set()
        for dnn in resets:
            if (memory := self._setup.deployments[dnn].memory) is not None:
                memory.reset()

    def adjust(self) -> None:
        """Tell of the DNNs that the app wants otherwise than until now."""
        adjusted, self._app._adjusted = self._app._adjusted, set()
        for dnn in sorted(adjusted):
            wanted = self._app._wanted[dnn]
            log.debug("%s: now %s, %g ms", dnn, wanted.priority, wanted.constraint_ms)
            adjustment = self._setup.deployments[dnn].adjust(wanted)
            self._figures.dnns[dnn].required_hz = adjustment.rate_hz
            self._router.tell(replace(adjustment, dnn=self._names.inverse[dnn]))

    def ask(self, dnn: str, options: Mapping[str, Any]) -> int:
        """One inference of a DNN on the newest frame; returns the number of the request."""
        name = self._names.inverse[dnn]
        self._asked[dnn] = self._asked.get(dnn, 0) + 1
        self._shared_gpu.executor.ask(name, options)
        first = options if self._setup.deployments[dnn].dnn.on_event else {}
        before, self._options_of[dnn] = self._options_of.get(dnn, first), options
        self._router.tell(InferenceRequested(name, replaces=not _same(before, options)))
        return self._asked[dnn]

    def expect(self, dnn: str, sequence: int, request: int = 0) -> Future[Any]:
        """The first result of a DNN on that frame or a later one, of that request or a later."""
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        known, value = self._results.get(dnn, (-1, None))
        if known >= sequence and not request:  # no picture is inferred twice
            future.set_result(value)
            return future
        self._waiting.append(_Waiting(dnn, sequence, request, future))
        return future

    def _served(self, dnn: str, job: int) -> list[Future[Any]]:
        """End a job; returns the futures that waited for its result, which wait no more. The next
        job may be decoded before this one has failed: it leaves this one's futures to it."""
        done = self._jobs.pop(job, _InFlight(dnn, self._frame.sequence, 0))
        before = [each for number, each in self._jobs.items() if number < job]
        served = [
            caller
            for caller in self._waiting
            if done.serves(caller) and not any(each.serves(caller) for each in before)
        ]
        self._waiting = [each for each in self._waiting if each not in served]
        return [each.future for each in served]

    # --- what the router tells ----------------------------------------------------------

    def acted(self, action: Action) -> None:
        """Count what the coordinator has decided about a DNN of this run."""
        if isinstance(action, RunTogether):  # others' DNNs may be in it
            names = ", ".join(self._names.get(dnn, dnn) for dnn in action.dnns)
            self._reason = f"last choice: {names} ({action.reason})"
            self._figures.chose(action)
            return
        dnn = self._names[action.dnn]
        if isinstance(action, Finish):
            self._figures.dnns[dnn].finished(action)
        elif isinstance(action, Drop):
            self._figures.dnns[dnn].dropped += 1
            if action.again:
                self._jobs.pop(action.job, None)
            else:
                self._give_up(action.job, dnn, action.reason)
        elif isinstance(action, Prepare):
            self._figures.dnns[dnn].begun_anew += action.anew != ""
            if action.stage == 0:  # the executor has just taken the newest frame for it
                asked = self._asked.get(dnn, 0)
                self._jobs[action.job] = _InFlight(dnn, self._frame.sequence, asked)
        else:
            if isinstance(action, RunChunk):
                self._figures.chose(action)
            if reason := getattr(action, "reason", ""):
                self._reason = f"last choice: {dnn} ({reason})"

    def delivered(self, result: Result) -> None:
        """A result is there: for the app, and the callers that wait for it."""
        dnn, frame = self._names[result.dnn], result.frame
        assert frame is not None
        self._figures.dnns[dnn].shown(result.requested_ns, result.decoded_ns)
        self._reporter.result(dnn, self._clock())
        if self._kept is not None:
            self._kept.result(dnn, result.value, frame)
        self._app._keep(dnn, result.value, frame)
        self._results[dnn] = frame.sequence, result.value
        self._callbacks.call(self._app.on_result, dnn, result.value, frame)
        if self._on_result is not None:
            self._callbacks.call(self._on_result, dnn, result.value, frame, name="on_result")
        for future in self._served(dnn, result.finish.job):
            future.set_result(result.value)
        self._request()

    def worked(self, processor: str, elapsed_ns: int, own: bool) -> None:
        """A processor has run a chunk."""
        if own:
            self._figures.ran(processor, elapsed_ns)

    def failed(self, job: int, dnn: str, error: str) -> None:
        """A result could not be made."""
        self._give_up(job, self._names[dnn], error)

    def decided(self, took_ns: int) -> None:
        """A scheduler was asked."""
        self._figures.decision_ns.append(took_ns)

    def _give_up(self, job: int, dnn: str, reason: str) -> None:
        """Callers that wait for a job that has failed are told so."""
        for future in self._served(dnn, job):
            future.set_exception(AppError(f"DNN {dnn!r} gave no result: {reason}"))

    # --- what may change while it runs -------------------------------------------------------

    def reconfigure(self, scheduler: str, mode: str, fps: float) -> None:
        """Go on with another policy, chunk mode or frame rate; counting starts afresh."""
        interval_ns = round(1e9 / fps)
        cut = Cut(interval_ns - self._setup.lone_render_ns, strategy_of(mode))
        chunks = self._shared_gpu.partition(cut)
        self._reconfigured(Reconfigured(scheduler, mode, interval_ns, chunks))
        self._shared_gpu.scheduler, self._shared_gpu.mode = scheduler, mode
        self.scheduler, self.mode, self.fps = scheduler, mode, fps
        self._figures.fps_target, self._callbacks.frame_ns = fps, interval_ns

    def _reconfigured(self, event: Reconfigured) -> None:
        self._router.tell(event)

    # --- its end -----------------------------------------------------------------------------

    @property
    def errors(self) -> list[str]:
        """What failed on the way, in words."""
        names = [*self._names, *(self._registered.names if self._registered else ())]
        found = [*self._shared_gpu.executor.errors_of(names), *self._callbacks.errors]
        found += self._shared_gpu.coordinator.faults.messages
        found += self._kept.errors if self._kept else []
        source = self._setup.source
        found += source.errors
        if source.error and not any(each.startswith(source.error) for each in source.errors):
            found.append(source.error)
        return found

    def _given_up(self, dnns: Mapping[str, Any]) -> list[str]:
        """What does not work any more, or never did, by the figures of DNNs: status 2. What fails
        now and then is an error, and no more."""
        found = list(self._callbacks.disabled)
        if replaced := self._shared_gpu.coordinator.replaced:
            found.append(f"scheduler {replaced!r}")
        executor = self._shared_gpu.executor
        for name, own in self._names.items():
            tried = own in dnns and dnns[own]["inferences"] and executor.faulty(name)
            if tried and dnns[own]["end_to_end_ms"]["p50"] is None:
                found.append(f"DNN {own!r}")
        return found

    def summary(self) -> dict[str, Any]:
        """The figures until now."""
        figures = self._reporter.summary(self._clock(), self._startup_s, self._ready_s)
        if self._registered is not None:
            asked = self._registered.figures(self._figures.started_ns)
            answered = sum(each["finished"] for each in asked.values())
            more_hz = share(answered, figures["seconds"]) or 0.0
            figures["requests"] = asked
            figures["throughput_hz"] = round((figures["throughput_hz"] or 0.0) + more_hz, 4)
        return {
            **figures,
            "errors": self.errors,
            "given_up": self._given_up(figures["dnns"]),
            "outputs": self.outputs,
        }

    def finish(self) -> dict[str, Any]:
        """The last figures, before it is closed."""
        return self.summary()

    @property
    def outputs(self) -> dict[str, Any]:
        """What the run leaves behind, as far as it is there."""
        return {} if self._kept is None else {"capture": self._kept.summary}

    def keep(self) -> None:
        """Finish the file of a session that is kept."""
        if self._kept is not None:
            self._kept.close()
            if self._kept.step in (observers := self._router.observers):
                observers.remove(self._kept.step)

    def halt(self) -> None:
        """Let nothing run any more; what has been seen can still be looked at, and drawn."""
        self._shared_gpu.executor.close()

    def close(self) -> None:
        """Leave the shared GPU: no thread works for this run any more. Closing twice is allowed."""
        if self.closed:
            return
        self.closed = True
        with contextlib.ExitStack() as left:  # the last one first; all, even where one raises
            left.callback(self._app._end)
            left.callback(self._setup.source.close)
            left.callback(self._shared_gpu.leave, self, self._names)
            if self._registered is not None:
                left.callback(self._registered.close)
            left.callback(self.keep)
            for writing in self._writing:
                left.callback(writing.stop)
            left.callback(self._refuse_waiting)

    def _refuse_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.future.done():  # a caller may have cancelled it
                error = AppError("the session was closed before there was a result")
                each.future.set_exception(error)


def _observing(
    tracker: Tracker, watch: SceneWatch | None, kept: Kept | None, poses: PoseThread | None
) -> Callable[[Frame], None]:
    """Follows the picture, on the capture thread, before the frame is handed on. It does not hold
    the run, whose GL objects would outlive it with its source."""

    def observe(frame: Frame) -> None:
        if poses is not None:  # first: it looks at the frame meanwhile
            poses.hand(frame)
        tracker.advance(frame)
        if watch is not None:
            watch.advance(frame)
        if kept is not None:
            kept.frame(frame)

    return observe


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two requests ask for the same (options may be arrays)."""
    return one.keys() == other.keys() and all(
        each is other[name] or np.array_equal(each, other[name]) for name, each in one.items()
    )


def _figures(setup: Setup, cpu_workers: int) -> Figures:
    """Nothing counted yet, for each DNN of the run."""
    dnns = {
        name: ModelFigures(
            fallback_ops=deployment.fallback_ops,
            whole_ns=deployment.whole_ns,
            stages=len(deployment.plan.stages),
            required_hz=deployment.plan.rate_hz,
            utility=deployment.plan.utility,
        )
        for name, deployment in setup.deployments.items()
    }
    figures = Figures(setup.fps, dnns)
    figures.lanes = {each.id: each.lanes for each in setup.processors.listed(cpu_workers)}
    return figures
