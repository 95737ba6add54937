"""The main thread: draw the newest frame on an absolute deadline, coordinate in the gaps.

One turn of ``Runtime._turn`` is the life of a frame: serve the inbox, submit the frame shortly
before it is due, have it drawn at its start, tell the coordinator that the gap is open, carry out
its answer, present the frame at its deadline. This is the only thread that touches the
coordinator, the window and GL.
"""

from __future__ import annotations

import gc
import logging
import queue
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from heimdall import IMPORTED_S
from heimdall.app import App
from heimdall.app.options import RunOptions
from heimdall.capture import Frame, Source
from heimdall.coordinator.coordinator import Coordinator
from heimdall.render import InputEvent, Key, Pointer, Recorder, Scroll, save_picture
from heimdall.runtime.callbacks import Callbacks
from heimdall.runtime.controls import Controls
from heimdall.runtime.executor import Executor, Result
from heimdall.runtime.pacing import Pacer, Reserve, Usual
from heimdall.runtime.script import Script
from heimdall.runtime.setup import Setup
from heimdall.runtime.telemetry.display import Display
from heimdall.runtime.telemetry.figures import DnnFigures, Figures
from heimdall.runtime.telemetry.report import Reporter
from heimdall.runtime.telemetry.spans import Spans
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.schedulers import name_of
from heimdall.system.clock import SPIN_NS, AwakeClock, spin_until
from heimdall.system.priority import first_in_line
from heimdall.tracking import Tracker
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    Drop,
    Event,
    Finish,
    FrameRendered,
    InferenceRequested,
    Reconfigured,
    RenderStarted,
)
from heimdall.vocabulary.processors import GPU

log = logging.getLogger(__name__)

WARM_UP_FRAMES = 20
WARM_UP_LIMIT_S = 5.0
LOAD_NS = 3_000_000  # before a frame is submitted, its camera picture is sent to the GPU
# A frame that is submitted too late starts late; too early, this thread is busy with it a little
# sooner.
AHEAD_FIRST_NS, AHEAD_SPARE_NS = 4_000_000, 2_000_000


class Runtime:
    """One run of one app on an opened setup (devices, networks, source)."""

    def __init__(self, app: App, options: RunOptions, setup: Setup) -> None:
        self._app = app
        self._options = options
        self._setup = setup
        self._frame = setup.first_frame
        self._policy = options.scheduler or app.scheduler
        self.scheduler = name_of(self._policy)
        self.mode, self.fps = setup.chunk_mode, setup.fps
        self._set_rate(setup.fps)
        self._clock = AwakeClock()
        self._inbox: queue.SimpleQueue[Event | Result] = queue.SimpleQueue()
        self._later: deque[Result] = deque()  # to be handled once the frame is presented
        self._callbacks = Callbacks()
        self._tracer = Tracer(time.perf_counter_ns()) if options.trace else None
        self._spans = Spans(self._tracer)
        self._coordinator = self._open_coordinator()
        self._config = self._coordinator.config() if self._tracer else {}
        self._figures = _figures(setup)
        self._reporter = Reporter(
            app,
            setup,
            self._coordinator,
            self._figures,
            scheduler=self.scheduler,
            mode=self.mode,
        )
        self._tracker = app._tracker = Tracker()
        setup.source.observe = self._tracker.advance
        self._executor = self._open_executor()
        self._recorder = (
            Recorder(options.record, setup.surface.size, setup.fps) if options.record else None
        )
        self._controls = Controls(app, options, setup, self)
        self._script = Script(app, self._callbacks) if options.headless else None
        self._display = Display(setup, self._reporter, self._figures, self._controls, self._spans)
        self._reason = ""
        self._warm = False
        self._warm_ns = 0
        self._startup_s = 0.0
        self._frame_count = 0
        self._ahead_ns = AHEAD_FIRST_NS
        self._drawing = Usual(setup.lone_render_ns)  # from a frame's start on

    def _open_coordinator(self) -> Coordinator:
        """What decides; a baseline puts its own here, and in the executor's place."""
        app, options, setup = self._app, self._options, self._setup
        return Coordinator(
            [deployment.plan for deployment in setup.deployments.values()],
            scheduler=self._policy,
            frame_interval_ns=self._interval_ns,
            mode=self.mode,
            offload=options.offload,
            content=options.content or app.content,
            render_priority=app.render_priority,
        )

    def _open_executor(self) -> Executor:
        return Executor(
            self._setup.deployments,
            self._newest,
            self._inbox,
            self._spans,
            self._tracker.renew,
            self._clock,
        )

    def run(self) -> dict[str, Any]:
        """Loop until the end, and return the summary."""
        self._callbacks.call(self._app.on_start)
        if self._options.offload:
            self._executor.preload()
        # What is alive now stays alive: keep the collector from walking it within a frame. It is
        # not asked to collect first: 800 small objects are not worth 50 ms before the first frame.
        gc.freeze()
        gc.enable()
        first_in_line()
        self._began_ns = self._clock()
        self._pacer = Pacer(self._interval_ns, self._began_ns)
        self._request()
        try:
            while not self._finished():
                self._turn()
        except KeyboardInterrupt:
            log.warning("interrupted: ending the run")
        return self._finish()

    # --- one frame -----------------------------------------------------------------------

    def _turn(self) -> None:
        start_ns = self._pacer.next_ns
        self._serve_until(start_ns - self._ahead_ns - LOAD_NS)
        frame = self._newest()
        self._setup.scene.load(frame.image, frame.sequence)
        self._serve_until(start_ns - self._ahead_ns)
        self._submit_ahead(frame)
        self._serve_until(start_ns)
        spin_until(start_ns, self._clock)
        self._receive(RenderStarted(self._frame_count))
        drawn_ns, render_ns = self._complete(start_ns)
        self._figures.skipped_frames += self._pacer.advance(drawn_ns)
        self._catch_up()
        self._reserve.worked(render_ns)
        gap_end_ns = self._pacer.next_ns - self._reserve.guard_ns(drawn_ns)
        self._receive(FrameRendered(self._frame_count, gap_end_ns, render_ns))
        deadline_ns = self._present(start_ns, drawn_ns)
        self._count_frame(deadline_ns, drawn_ns, render_ns)
        while self._later:
            self._handle(self._later.popleft())
        self._react()
        message = self._callbacks.message or self._executor.message
        self._display.refresh(self._clock(), self._reason, message)

    def _serve_until(self, deadline_ns: int, *, results: bool = True) -> None:
        """Handle what workers report until then, never past it. Without ``results`` those wait for
        the frame to be presented: what an app does with one may take a while."""
        while True:
            now_ns = self._clock()
            wake_ns = self._coordinator.next_wakeup_ns()
            if wake_ns is not None and wake_ns <= now_ns:
                self._wake(now_ns)
                continue
            until_ns = deadline_ns - SPIN_NS
            if now_ns >= until_ns:
                break
            if wake_ns is not None:
                until_ns = min(until_ns, wake_ns)
            try:
                message = self._inbox.get(timeout=(until_ns - now_ns) / 1e9)
            except queue.Empty:
                continue
            self._take(message, results=results)

    def _catch_up(self) -> None:
        """Tell what happened while this thread was busy with a frame: a job may wait for the
        answer, and the choice of what to do with a gap should know of it. Results can wait."""
        for _ in range(self._inbox.qsize()):
            self._take(self._inbox.get_nowait(), results=False)

    def _take(self, message: Event | Result, *, results: bool) -> None:
        if isinstance(message, Result) and not results:
            self._later.append(message)
        else:
            self._handle(message)

    def _submit_ahead(self, frame: Frame) -> None:
        """Submit a frame so early that the GPU, which draws it when it is waited for, has all of it
        when it is due, and never waits for this thread in between."""
        began_ns = self._clock()
        self._submit(frame, began_ns, self._catch_up)
        needed_ns = self._clock() - began_ns + AHEAD_SPARE_NS
        self._ahead_ns += (needed_ns - self._ahead_ns) // (2 if needed_ns > self._ahead_ns else 20)

    def _submit(self, frame: Frame, now_ns: int, meanwhile: Callable[[], None]) -> None:
        """Let the app say what a frame shows, and submit that; ``meanwhile`` is called between."""
        self._setup.scene.begin(frame.image, frame.sequence)
        self._tracker.show(frame)
        self._callbacks.call(self._app.draw, self._setup.scene)
        meanwhile()
        self._display.paint(now_ns)
        self._setup.scene.render()
        meanwhile()
        self._display.draw(now_ns)

    def redraw_ns(self) -> int:
        """Draw the last frame once more; what that takes of the GPU, in ns."""
        self._setup.surface.wait()
        self._submit(self._frame, self._clock(), lambda: None)
        began_ns = self._clock()
        self._setup.surface.finish()
        return self._clock() - began_ns

    def reprint_ns(self) -> int:
        """The same for the words over it."""
        self._setup.surface.wait()
        self._display.lay_out(self._clock(), self._reason, "")
        began_ns = self._clock()
        self._display.print()
        return self._clock() - began_ns

    def _complete(self, start_ns: int) -> tuple[int, int]:
        """Have the GPU draw what was submitted; return (completion time, what it took of the
        GPU) in ns."""
        began_ns = self._clock()
        self._setup.surface.finish()
        drawn_ns = self._clock()
        self._display.print()
        free_ns = self._clock()
        if self._recorder:
            self._recorder.add(self._setup.surface)
        self._controls.frame()
        self._spans.span(
            "render",
            f"frame {self._frame_count}",
            began_ns,
            free_ns,
            {"after_start_ms": (drawn_ns - start_ns) / 1e6},
        )
        return drawn_ns, free_ns - began_ns

    def _present(self, start_ns: int, drawn_ns: int) -> int:
        """Show the frame at its deadline, which is returned: what frames take to draw varies by
        milliseconds, and nobody shall see that. A late one is shown at once."""
        deadline_ns = start_ns + min(self._drawing.ns, self._interval_ns // 2)
        self._drawing.observe(drawn_ns - start_ns)
        if drawn_ns < deadline_ns:
            self._serve_until(deadline_ns, results=False)
            spin_until(deadline_ns, self._clock)
        self._setup.surface.present()
        return deadline_ns

    def _count_frame(self, deadline_ns: int, drawn_ns: int, render_ns: int) -> None:
        presented_ns = self._clock()
        if not self._startup_s:
            self._startup_s = presented_ns / 1e9 - IMPORTED_S
        self._figures.frame(presented_ns, deadline_ns, drawn_ns, render_ns)
        self._frame_count += 1
        if not self._warm and self._is_warm(presented_ns):
            self._warm, self._warm_ns = True, presented_ns
            self._figures.restart(presented_ns)
            self._reporter.warm(presented_ns)

    def _is_warm(self, now_ns: int) -> bool:
        if not self._executor.preloaded.is_set():
            return False
        if now_ns - self._began_ns > WARM_UP_LIMIT_S * 1e9:
            return True
        return self._frame_count >= WARM_UP_FRAMES and all(
            dnn.latencies_ns
            for name, dnn in self._figures.dnns.items()
            if not self._setup.deployments[name].dnn.on_event
        )

    # --- the coordinator -------------------------------------------------------------------

    def _receive(self, event: Event) -> None:
        now_ns = self._clock()
        decisions = self._coordinator.decisions
        actions = self._coordinator.receive(event, now_ns)
        if self._coordinator.decisions != decisions:
            self._figures.decision_ns.append(self._clock() - now_ns)
        self._carry_out(event, actions, now_ns)

    def _wake(self, now_ns: int) -> None:
        self._carry_out(None, self._coordinator.wake(now_ns), now_ns)

    def _carry_out(self, event: Event | None, actions: list[Action], now_ns: int) -> None:
        if self._tracer:
            self._tracer.step(now_ns, event, actions)
        if not actions:
            return
        self._executor.execute(actions)
        for action in actions:
            if isinstance(action, Finish):
                self._figures.dnns[action.dnn].finished(action)
            elif isinstance(action, Drop):
                self._figures.dnns[action.dnn].dropped += 1
            elif reason := getattr(action, "reason", ""):
                self._reason = f"{action.dnn}: {reason}"

    # --- what workers, the user and the script report ----------------------------------------

    def _handle(self, message: Event | Result) -> None:
        if isinstance(message, Result):
            figures = self._figures.dnns[message.dnn]
            figures.end_to_end_ns.append(message.decoded_ns - message.requested_ns)
            self._reporter.result(message.dnn, self._clock())
            self._app._keep(message.dnn, message.value, message.frame)
            self._callbacks.call(self._app.on_result, message.dnn, message.value, message.frame)
            self._request()
            return
        if isinstance(message, ChunkFinished) and message.processor == GPU:
            self._figures.gpu_chunk_ns += message.elapsed_ns
            self._reserve.worked(message.elapsed_ns)
        self._receive(message)

    def _react(self) -> None:
        """Input, then the headless script, then what the app has requested."""
        for event in self._setup.surface.poll():
            self._on_input(event)
        if self._warm:
            now_ns = self._clock()
            for event in self._controls.presses((now_ns - self._warm_ns) / 1e9):
                self._on_input(event)
            if self._script:
                self._script.play(now_ns)
        self._request()

    def _request(self) -> None:
        requests, self._app._requests = self._app._requests, []
        for dnn, options in requests:
            self._executor.options[dnn] = options
            self._receive(InferenceRequested(dnn))

    def _on_input(self, event: InputEvent) -> None:
        if self._controls.handle(event):
            return
        if isinstance(event, Key):
            self._callbacks.call(self._app.on_key, event)
        elif isinstance(event, Pointer):
            self._callbacks.call(self._app.on_pointer, event, self._setup.scene)
        elif isinstance(event, Scroll):
            self._callbacks.call(self._app.on_scroll, event)

    def _newest(self) -> Frame:
        self._frame = self._setup.source.latest() or self._frame
        return self._frame

    # --- what the controls change ------------------------------------------------------------

    def reconfigure(self, scheduler: str, mode: str, fps: float) -> None:
        """Go on with another policy, chunk mode or frame rate; counting starts afresh."""
        self._set_rate(fps)
        self._pacer.interval_ns = self._interval_ns
        self._figures.fps_target = fps
        gap_ns = self._interval_ns - self._setup.lone_render_ns
        deployments = self._setup.deployments.values()
        chunks = tuple(cut for each in deployments for cut in each.partition(gap_ns))
        self._receive(Reconfigured(scheduler, mode, self._interval_ns, chunks))
        self.scheduler, self.mode, self.fps = scheduler, mode, fps
        self._reporter.reconfigured(scheduler, mode)
        if self._warm:
            now_ns = self._clock()
            self._figures.restart(now_ns)
            self._reporter.warm(now_ns)

    def watch(self, source: Source) -> None:
        """Go on with another source; its frames follow those of the last one."""
        source.number_from(self._frame.sequence + 1)
        self._setup.source.observe, source.observe = None, self._tracker.advance
        self._setup.source = source

    def _set_rate(self, fps: float) -> None:
        self._interval_ns = round(1e9 / fps)
        self._reserve = Reserve(self._setup.processors.load_limit, self._interval_ns)

    # --- end ---------------------------------------------------------------------------------

    def _finished(self) -> bool:
        options, figures = self._options, self._figures
        if self._controls.ended or self._setup.source.ended:
            return True
        if not self._warm:
            return False
        if options.frames is not None and len(figures.presented_ns) >= options.frames:
            return True
        elapsed_ns = self._clock() - figures.started_ns
        return options.seconds is not None and elapsed_ns >= options.seconds * 1e9

    def _finish(self) -> dict[str, Any]:
        """Save what was asked for, and sum up."""
        summary = self._reporter.summary(self._clock(), self._startup_s)
        if self._options.screenshot:
            save_picture(self._options.screenshot, self._setup.surface.read())
        if self._tracer and self._options.trace:
            about = {"app": self._app.name, "device": self._setup.gpu_name}
            self._tracer.save(self._options.trace, self._config, about)
        errors = [*self._executor.errors, *self._callbacks.errors]
        if self._setup.source.error:
            errors.append(self._setup.source.error)
        return {**summary, "errors": errors}

    def close(self) -> None:
        """End the threads and finish the recordings."""
        self._executor.close()
        self._controls.close()
        self._setup.source.close()
        if self._recorder:
            self._recorder.close()


def _figures(setup: Setup) -> Figures:
    """Nothing counted yet, for each DNN of the run."""
    dnns = {
        name: DnnFigures(
            fallback_ops=deployment.fallback_ops,
            whole_ns=deployment.whole_ns,
            stages=len(deployment.plan.stages),
        )
        for name, deployment in setup.deployments.items()
    }
    return Figures(setup.fps, dnns)
