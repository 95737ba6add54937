"""A run that draws: the newest frame on an absolute deadline, networks in the gaps between.

One ``turn`` is the life of a frame: serve the workers, submit the frame shortly before it is due,
have it drawn at its start, tell that the gap is open, present the frame at its deadline. When each
of that is due, and what follows from it, ``FrameLoop`` says; this drives it by the wall clock, on
the only thread that touches the coordinator, the window and GL.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import App, RunOptions
from heimdall.capture import Camera, Frame, Source
from heimdall.errors import DeviceError
from heimdall.render import InputEvent, Key, Pointer, Scroll, save_picture
from heimdall.runtime.loop.base import BaseRun, Listener
from heimdall.runtime.loop.callbacks import Script
from heimdall.runtime.loop.frame_loop import FrameLoop
from heimdall.runtime.loop.pacing import Follower, Usual
from heimdall.runtime.opening.canvas import Canvas
from heimdall.runtime.opening.first_start import FirstStart
from heimdall.runtime.opening.setup import Setup
from heimdall.runtime.session.controls import Controls
from heimdall.runtime.session.outputs import Outputs
from heimdall.runtime.session.shared_gpu import SharedGpu
from heimdall.runtime.telemetry.display import Display
from heimdall.runtime.telemetry.figures import Figures
from heimdall.runtime.telemetry.kept import read_input
from heimdall.system.clock import wait_until
from heimdall.system.interrupts import INTERRUPTS
from heimdall.vocabulary.enums import Lane, OverlayView
from heimdall.vocabulary.events import Reconfigured
from heimdall.vocabulary.processors import GPU

log = logging.getLogger(__name__)

WARM_UP_FRAMES = 20
WARM_UP_LIMIT_S = 5.0
READY_FIRST_NS = 4_000_000  # from a drawn frame until it is ready, until that is known
CALM_NS = 500_000  # before a frame is shown: what a message asks for may take as long
POSING_NS = 6_000_000  # from a picture's coming to its pose, until that is known


class Onlooker(Protocol):
    """Does something else after each frame. ``message``: for the overlay."""

    message: str

    def frame(self) -> None:
        """There is a new one."""

    def end(self) -> None:
        """There will be none any more, and the last is still there."""


class LiveRun(BaseRun):
    """One run of one app, drawn on ``canvas``. ``began_s``: from when its start is counted.
    ``scripted``: the app's own events play its user. ``onlooker`` hears of each frame."""

    onlooker: Onlooker | None = None

    def __init__(
        self,
        app: App,
        options: RunOptions,
        setup: Setup,
        shared_gpu: SharedGpu,
        canvas: Canvas,
        *,
        began_s: float,
        scripted: bool = False,
        on_result: Listener | None = None,
        progress: Progress = no_progress,
    ) -> None:
        super().__init__(app, options, setup, shared_gpu, on_result)
        self._began_s = began_s
        try:
            self._equip(canvas, scripted, progress)
        except BaseException:  # its DNNs have joined the shared GPU
            if "_outputs" in vars(self):  # it had come so far
                self._outputs.end_recording()
            super().close()
            raise

    def _equip(self, canvas: Canvas, scripted: bool, progress: Progress) -> None:
        """Open what a run that draws has besides."""
        app, options, setup, shared_gpu = self._app, self._options, self._setup, self._shared_gpu
        self._canvas = canvas
        self._surface, self._scene = canvas.surface, canvas.scene
        self._outputs = Outputs(self._surface, setup.fps, options.record, options.virtual_camera)
        self._controls = Controls(app, options, setup, self._surface, self)
        by_hand = setup.source.session.get("scripted") is False  # its user is played instead
        self._script = Script(app, self._callbacks) if scripted and not by_hand else None
        self._display = Display(
            canvas, self._reporter, self._figures, self._controls, shared_gpu.spans
        )
        self._warm = self._saved = False
        self._warm_ns = self._began_ns = 0
        self._preview = setup.preview
        self._frame_count = 0
        self._time_ns = 0  # of the frame, since the run began, or is counted if it is to end
        self._loop, self._follower = self._new_loop(), Follower()
        self._posing = Usual(POSING_NS, rare=0.1)
        self._first = FirstStart(
            setup.building,
            shared_gpu,
            self._names,
            self._figures,
            progress,
            self._clock,
            canvas,
        )
        self._ready_ns = 0  # when all DNNs were where they will stay
        shared_gpu.loops.append(self._loop)
        self._surface.give_back()

    def begin(self) -> None:
        """Call the app's start, and ask for what it asks for; have networks built beside."""
        super().begin()
        self._first.begin(self._loop)

    def begin_anew(self, notice: str) -> None:
        """The app's class is another one: as far as it is concerned, the run has just begun."""
        self._callbacks.begin_anew()
        self._controls.serve(self._app)
        self._controls.tell(notice)
        if self._script is not None:
            self._script = Script(self._app, self._callbacks)
        self._callbacks.call(self._app.on_start)
        self._request()

    def _new_loop(self) -> FrameLoop:
        return FrameLoop(
            self._shared_gpu.router,
            interval_ns=round(1e9 / self.fps),
            start_ns=self._clock(),
            drawing_ns=self._canvas.lone_render_ns + READY_FIRST_NS,
            load_limit=self._shared_gpu.processors.load_limit,
        )

    def until_finished(self) -> dict[str, Any]:
        """Frames until the end, and the summary."""
        try:
            while not self.finished:
                self.turn()
        except KeyboardInterrupt:
            log.warning("interrupted: ending the run")
            self._begin_nothing()
        except DeviceError as error:
            if not self._surface.hangs:
                raise
            self._outputs.give_up(error)
            self._begin_nothing()
        INTERRUPTS.ending()
        return self.finish()

    def _begin_nothing(self) -> None:
        """What is in vain by now would keep the outputs from being written."""
        if self._setup.building is not None:
            self._setup.building.stop()
        if self._app.world is not None and self._app.world.thread is not None:
            self._app.world.thread.end()
        self._scene.end()
        self._setup.source.hold()
        self._shared_gpu.executor.leave(self._names)

    def picture(self) -> np.ndarray:
        """What the last frame shows: RGB uint8 (h, w, 3)."""
        self._surface.make_current()
        picture = self._surface.read()
        self._surface.give_back()
        return picture

    # --- one frame -----------------------------------------------------------------------

    def turn(self) -> None:
        """One frame: returns when it is presented."""
        self._surface.make_current()
        try:
            self._turn()
        except BaseException:
            self._loop.abandoned(self._clock())
            raise
        self._surface.give_back()
        if self.onlooker is not None:
            self.onlooker.frame()
        INTERRUPTS.due()

    def _turn(self) -> None:
        loop, router = self._loop, self._router
        if not self._began_ns:  # the grid begins with the first frame
            self._began_ns = self._clock()
            loop.begin(self._shared_gpu.free_start_ns(loop, self._began_ns))
        start_ns, take_ns = loop.start_ns, loop.take_ns
        router.serve_until(take_ns)
        frame = self._load_newest()
        self._tell_scene()
        router.serve_until(loop.submit_ns)
        self._submit_ahead(frame)
        router.serve_until(start_ns)
        wait_until(start_ns, self._clock)
        self._shared_gpu.occupy_gpu()
        router.do(loop.started)
        render_ns = self._complete(start_ns)
        router.catch_up()
        self._scene.took(render_ns, loop.interval_ns)
        for each in self._shared_gpu.loops:
            each.worked(render_ns)
        self._follow_source(take_ns)
        until_ns = self._shared_gpu.next_start_ns(loop, self._clock())
        router.do(lambda now_ns: loop.opened(now_ns, until_ns))
        self._tell_frame()
        self._present(frame)
        router.deliver()
        self._shared_gpu.executor.watch()
        self._react()
        self._trace_journeys()
        told = (
            self.onlooker.message if self.onlooker is not None else "",
            self._callbacks.message,
            self._shared_gpu.executor.message_of(self._names),
            self._shared_gpu.coordinator.faults.newest,
            self._outputs.message,
            self._setup.sound.message if self._setup.sound is not None else "",
            self._first.message,
        )
        self._display.refresh(self._clock(), self._doing(), next(filter(None, told), ""))

    def _doing(self) -> str:
        """What is under way, in words: what is still being prepared, else the last choice."""
        loading = self._scene.loading
        models = f"loading {', '.join(loading)}" if loading else ""
        return "; ".join(filter(None, (self._first.tell(), models))) or self._reason

    def _load_newest(self) -> Frame:
        """Take the newest picture, and send it to the GPU."""
        began_ns = self._clock()
        frame = self._tell_frame()
        self._canvas.fit(frame)
        self._scene.load(frame.image, frame.sequence)
        self._loop.loaded(self._clock() - began_ns)
        return frame

    def _follow_source(self, take_ns: int) -> None:
        """Move the next frames to where pictures have just come. Those of several sessions keep
        apart from each other instead."""
        source = self._setup.source
        if source.arrival is None or not source.flowing or len(self._shared_gpu.loops) > 1:
            return
        self._follower.arrived(*source.arrival)
        poses = self._app.world.thread if self._app.world is not None else None
        if poses is not None and poses.took_ns:
            # A picture that is taken when its pose is about to be known is drawn with that.
            self._posing.observe(poses.took_ns)
            lead_ns = self._loop.submit_ns - self._loop.take_ns
            self._follower.spare_ns = self._posing.ns - lead_ns
        ahead_ns = time.perf_counter_ns() - self._clock()  # of the run's clock
        shift_ns = self._follower.shift_ns(take_ns + ahead_ns, self._loop.interval_ns)
        self._loop.shift(shift_ns)

    def _submit_ahead(self, frame: Frame) -> None:
        """Submit a frame so early that the GPU, which draws it when it is waited for, has all of it
        when it is due, and never waits for this thread in between."""
        began_ns = self._clock()
        self._submit(frame, began_ns, self._router.catch_up)
        self._loop.submitted(self._clock() - began_ns)

    def _submit(self, frame: Frame, now_ns: int, meanwhile: Callable[[], None]) -> None:
        """Let the app say what a frame shows, and submit that; ``meanwhile`` is called between."""
        camera = self._placed(frame, now_ns)
        self._scene.begin(frame.image, frame.sequence, camera, self._time_ns / 1e9)
        self._tracker.show(frame)
        self._scene.covered = self._display.covered
        self._callbacks.call(self._app.draw, self._scene)
        if self._controls.view == OverlayView.WORLD:
            self._scene.landmarks()
        meanwhile()
        self._display.paint(now_ns)
        self._scene.render()
        meanwhile()
        self._display.draw(now_ns)

    def _placed(self, frame: Frame, now_ns: int) -> Camera:
        """What took a frame, with its pose where the app has a world, and that is tracked."""
        world = self._app.world
        if world is None:
            return frame.camera
        before = world.state
        camera = world.show(frame, now_ns)
        if world.state != before:
            self._callbacks.call(self._app.on_tracking, world.state)
        for plane in world.changed:
            self._callbacks.call(self._app.on_plane, plane)
        return camera

    def redraw_ns(self) -> int:
        """Draw the last frame once more, with its picture sent anew, as each frame's is; what that
        takes of the GPU, in ns."""
        self._surface.make_current()
        self._frame = replace(self._frame, sequence=self._frame.sequence + 1)
        self._surface.wait()
        self._scene.load(self._frame.image, self._frame.sequence)
        self._submit(self._frame, self._clock(), lambda: None)
        self._time_ns += self._loop.interval_ns  # what moves is drawn as it moves
        began_ns = self._clock()
        self._surface.finish()
        return self._clock() - began_ns

    def reprint_ns(self) -> int:
        """Print the words over it once more; what that takes of the GPU, in ns."""
        self._surface.wait()
        self._display.lay_out(self._clock(), self._reason, "")
        began_ns = self._clock()
        self._display.print()
        return self._clock() - began_ns

    def _complete(self, start_ns: int) -> int:
        """Have the GPU draw what was submitted; return what it took of the GPU, in ns."""
        began_ns = self._clock()
        self._surface.finish()
        drawn_ns = self._clock()
        self._display.print()
        free_ns = self._clock()
        self._outputs.frame(start_ns)
        if self._preview:
            self._preview.frame(self._surface, self._frame.captured_ns)
            self._preview.tell(self._display.latest)
        self._controls.frame(start_ns)
        self._shared_gpu.spans.span(
            Lane.RENDER,
            f"frame {self._frame_count}",
            began_ns,
            free_ns,
            {"after_start_ms": (drawn_ns - start_ns) / 1e6},
        )
        self._loop.drawn(drawn_ns, free_ns - began_ns)
        return free_ns - began_ns

    def _present(self, frame: Frame) -> None:
        """Show the frame at its deadline; a late one at once."""
        present_ns = self._loop.present_ns
        self._surface.stage()
        ready_ns = self._clock()
        if ready_ns < present_ns:
            self._router.serve_until(present_ns - CALM_NS, results=False)
            wait_until(present_ns, self._clock)
        self._surface.present()
        times = self._loop.presented(self._clock(), ready_ns)
        if self._setup.source.flowing:
            self._figures.picture(time.perf_counter_ns() - frame.captured_ns)
        if not self._ready_s:
            self._ready_s = times.presented_ns / 1e9 - self._began_s
            shown_s = self._setup.shown_s
            self._startup_s = shown_s - self._began_s if shown_s else self._ready_s
        self._figures.presented(times)
        self._frame_count += 1
        self._time_ns += (1 + times.skipped) * self._loop.interval_ns
        if not self._warm and self._is_warm(times.presented_ns):
            self._warm, self._warm_ns = True, times.presented_ns
            if self._options.frames is not None or self._options.seconds is not None:
                self._time_ns = 0  # how long it took to begin does not matter
            self._count_afresh(times.presented_ns)

    def _is_warm(self, now_ns: int) -> bool:
        if not self._first.is_over or not self._shared_gpu.executor.preloaded.is_set():
            return False
        if not self._ready_ns:
            self._ready_ns = now_ns
            self._first.note(now_ns, self._began_s, self._startup_s)
            self._count_afresh(now_ns)
        if now_ns - self._ready_ns > WARM_UP_LIMIT_S * 1e9:
            return True
        if self._scene.loading:  # of models that the app draws from the start
            return False
        return len(self._figures.presented_ns) >= WARM_UP_FRAMES and all(
            dnn.latencies_ns or self._knows_newest(name)
            for name, dnn in self._figures.dnns.items()
            if not self._setup.deployments[name].dnn.on_event
        )

    def _knows_newest(self, dnn: str) -> bool:
        """True if the newest frame has its result: there is no more until another frame comes."""
        return self._results.get(dnn, (-1, None))[0] >= self._frame.sequence

    def _trace_journeys(self) -> None:
        """Each picture of a phone, from station to station."""
        for journey in self._preview.journeys_ended() if self._preview else ():
            behind_ns = time.perf_counter_ns() - self._clock()  # of the run's clock
            for name, began_ns, ended_ns in journey.legs():
                began_ns, ended_ns = began_ns - behind_ns, ended_ns - behind_ns
                self._shared_gpu.spans.span(f"phone: {name}", name, began_ns, ended_ns, {})

    def _count_afresh(self, now_ns: int) -> None:
        if self._preview is not None:
            self._preview.journeys.restart()
        self._figures.restart(now_ns)
        self._reporter.warm(now_ns)

    # --- what the user and the script do -------------------------------------------------------

    def _react(self) -> None:
        """Input, then the headless script, then what the app has requested."""
        for event in self._surface.poll():
            self._on_input(event)
        for event in self._preview.poll() if self._preview else ():
            self._on_input(event)
        for data in self._setup.source.inputs() if self._options.inputs else ():
            done = read_input(data)
            if done is not None and self._controls.repeatable(done):
                self._on_input(done)
        if self._warm:
            now_ns = self._clock()
            for event in self._controls.presses((now_ns - self._warm_ns) / 1e9):
                self._on_input(event)
            if self._script:
                self._script.play(now_ns)
        self._request()

    def _on_input(self, event: InputEvent) -> None:
        if self._kept is not None:
            self._kept.input(event)
        if self._controls.handle(event):
            return
        if isinstance(event, Key):
            self._callbacks.call(self._app.on_key, event)
        elif isinstance(event, Pointer):
            self._callbacks.call(self._app.on_pointer, event, self._scene)
        elif isinstance(event, Scroll):
            self._callbacks.call(self._app.on_scroll, event)

    def worked(self, processor: str, elapsed_ns: int, own: bool) -> None:
        """A chunk has run: gaps close earlier where the GPU hardly idles."""
        super().worked(processor, elapsed_ns, own)
        if processor == GPU:
            self._loop.worked(elapsed_ns)

    # --- what the controls change ------------------------------------------------------------

    def reconfigure(self, scheduler: str, mode: str, fps: float) -> None:
        """Go on with another policy, chunk mode or frame rate; counting starts afresh."""
        super().reconfigure(scheduler, mode, fps)
        if self._warm:
            self._count_afresh(self._clock())

    def _reconfigured(self, event: Reconfigured) -> None:
        self._router.do(lambda now_ns: self._loop.reconfigured(event, now_ns))

    def watch(self, source: Source) -> None:
        """Go on with another source; its frames follow those of the last one."""
        source.number_from(self._frame.sequence + 1)
        self._setup.source.observe, source.observe = None, self._observe
        self._setup.source, self._follower = source, Follower()

    # --- end ---------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the user has ended it, or what was asked for is over."""
        options, figures = self._options, self._figures
        if self._controls.ended or self._setup.source.ended:
            return True
        if not self._warm:
            return False
        if options.frames is not None and len(figures.presented_ns) >= options.frames:
            return True
        elapsed_ns = self._clock() - figures.started_ns
        return options.seconds is not None and elapsed_ns >= options.seconds * 1e9

    def finish(self) -> dict[str, Any]:
        """Save what was asked for, once, and sum up."""
        with contextlib.suppress(DeviceError):  # a host's context may be gone
            self._surface.make_current()
        summary, outputs, options = self.summary(), self._outputs, self._options
        if not self._saved:
            self._saved = True
            outputs.end()
            if self._kept is not None:
                self._kept.end()
            save = self._shared_gpu.save_trace
            outputs.save(
                "screenshot", options.screenshot, lambda at: save_picture(at, self.picture())
            )
            outputs.save("trace", options.trace, lambda at: save(at, self._app.name))
            outputs.end_recording()
            self.keep()
        start = self._first.summary
        kept = {**outputs.summary, **self.outputs}
        phone = self._preview.summary if self._preview is not None else None
        if phone is not None:
            summary = {**summary, "phone": phone}
        return {**summary, "start": start, "outputs": kept, "errors": self.errors}

    @property
    def figures(self) -> Figures:
        """What is counted while it runs."""
        return self._figures

    def _given_up(self, dnns: Mapping[str, Any]) -> list[str]:
        return [*super()._given_up(dnns), *(["drawing"] if self._surface.hangs else [])]

    @property
    def errors(self) -> list[str]:
        """What failed on the way, outputs too."""
        shown = self._preview.errors if self._preview else []
        own = [*self._first.errors, *self._controls.errors, *self._outputs.errors]
        world = self._app.world.errors if self._app.world is not None else []
        return [*super().errors, *own, *shown, *world]

    def close(self) -> None:
        """Leave the shared GPU, and finish the recordings; closing twice is allowed."""
        if self.closed:
            return
        with contextlib.ExitStack() as left:  # the last one first; all, even where one raises
            left.callback(self._controls.close)
            left.callback(super().close)
            left.callback(self._shared_gpu.loops.remove, self._loop)
            if self._preview:
                left.callback(self._preview.close)
            left.callback(self.finish)
