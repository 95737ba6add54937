"""Heimdall in another program: an app, or only its networks, without owning the loop.

    with Session("shopping", size=(1280, 720)) as session:
        session.push(image)       # BGR, from wherever
        session.step()            # one frame, presented
        picture = session.picture()

Sessions of one process share its GPU: they have one coordinator, whichever was first, and are
used from one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import traceback
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import moderngl
import numpy as np

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import DNN, App, RunOptions, create, load_app, validate
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pushed import PushedSource
from heimdall.errors import AppError, ConfigError
from heimdall.render.hosted import HostedSurface, reclaimed
from heimdall.runtime.loop.base import Listener
from heimdall.runtime.loop.live import LiveRun
from heimdall.runtime.loop.undrawn import UndrawnRun
from heimdall.runtime.opening.opening import Opening
from heimdall.runtime.opening.setup import RunContext
from heimdall.runtime.session.models import Model
from heimdall.runtime.telemetry.summary import RunSummary
from heimdall.system.forks import Owned
from heimdall.system.interrupts import INTERRUPTS
from heimdall.vocabulary.enums import Priority

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heimdall.app.feed import Wishes
    from heimdall.app.options import RunArguments
    from heimdall.graph.onnx_file import Inputs
    from heimdall.runtime.telemetry.figures import Figures

_PUSHED_SIZE = (640, 360)  # of the black picture before the first frame, where nothing is drawn


class Session(Owned):
    """One app, or a list of DNNs, in a program that has its own loop.

    ``app``: a name of ``heimdall run``, a file, an App class or instance, DNNs alone, of which
    nothing is drawn, or none, for requests to models that are registered. ``render``: draw
    (default: if there is an app). ``source``: where frames come from, as for ``heimdall run``, or a
    Source; None: they are pushed. ``context``: a ``moderngl.Context`` of the host's GL context,
    current on this thread, to draw in, and ``framebuffer`` what the picture is copied to; else a
    context of its own is used, in a ``window`` if asked for. ``on_result(dnn, result, frame)``
    hears of every result, as the app does. ``process``: the process is there for the session, and
    may be set for steady frames (thread priorities and cores, timers, garbage collector, OpenCV's
    threads, a real-time software GPU); all of that is as before when the last session is closed,
    and without it nothing is touched. Other ``options`` are those of RunOptions.

    Every method belongs to the thread that opened the session; models that it registers may be
    asked from any. Raises HeimdallError when it
    cannot open, and for whatever is asked of it that makes no sense.
    """

    def __init__(
        self,
        app: str | Path | type[App] | App | Sequence[DNN] | None = None,
        *,
        render: bool | None = None,
        context: moderngl.Context | None = None,
        framebuffer: moderngl.Framebuffer | None = None,
        window: bool = False,
        on_result: Listener | None = None,
        process: bool = False,
        progress: Progress = no_progress,
        **options: Unpack[RunArguments],
    ) -> None:
        self._app = as_app(type("Requests", (App,), {}) if app is None else app)
        self._draws = not (app is None or _is_dnns(app)) if render is None else render
        self._context, self._framebuffer = context, framebuffer
        if context is not None and not self._draws:
            raise ConfigError("context is for drawing: leave it out, or render=False")
        if framebuffer is not None and context is None:
            raise ConfigError("framebuffer needs the context that it belongs to")
        if framebuffer is not None:
            options.setdefault("size", framebuffer.size)
        given: dict[str, Any] = {**options, "headless": not window}
        try:
            self._options = RunOptions(**given)
        except TypeError as error:  # no such option
            raise ConfigError(f"Session(): {str(error).partition('() ')[2] or error}") from error
        for name in ("record", "screenshot", "virtual_camera", "serve", "phone"):
            if not self._draws and given.get(name):
                raise ConfigError(f"{name} is for pictures, and nothing is drawn: leave it out")
        self._pushed: PushedSource | None = None
        if self._options.source is None and not self._options.by_phone:
            size = self._options.size or (self._app.size if self._draws else _PUSHED_SIZE)
            self._pushed = PushedSource(size)
        self._on_result, self._process = on_result, process
        self._progress = progress
        self._opening: Opening | None = None
        self._run: LiveRun | UndrawnRun | None = None
        self._thread: int | None = None
        self._opened_s = 0.0
        self._last: RunSummary | None = None
        self._closed = False

    # --- from first to last ------------------------------------------------------------------

    def open(self) -> Session:
        """Open devices and networks; the first time on a machine that takes a while."""
        if self._closed or self._run is not None:
            raise AppError("a session is opened once: make another")
        self._thread, self._opened_s = threading.get_ident(), time.perf_counter()
        self.own()
        place = RunContext(
            process=self._process,
            draws=self._draws,
            surface=self._surface if self._context is not None else None,
            source=self._pushed,
            began_s=self._opened_s,
        )
        self._opening = Opening(self._app, self._options, place, None, self._progress)
        try:
            with INTERRUPTS.held():
                self._run = self._opening.open(self._on_result)
        except BaseException as error:
            with reclaimed(self._context):
                traceback.clear_frames(error.__traceback__)  # or they would keep what was made
                self._run = None
                self._opening.close()  # of what was interrupted as soon as it was open
                self._opening = None
            raise
        return self

    def _surface(self, size: tuple[int, int]) -> HostedSurface:
        assert self._context is not None
        return HostedSurface(self._context, size, self._framebuffer)

    def close(self) -> None:
        """Free everything, in any state; closing twice is allowed. In a fork of the process
        that opened it nothing is done."""
        if self._closed or self.foreign:
            return
        self._check_thread()
        opening = self._opening is not None and self._run is None
        if opening or (self._run is not None and self._run.shared_gpu.busy):
            raise AppError("close() within step(): a callback cannot close a session")
        self._closed = True
        with reclaimed(self._context), INTERRUPTS.held():
            try:
                if isinstance(self._run, LiveRun) and self._run.onlooker is not None:
                    self._run.onlooker.end()
                if self._run is not None:
                    self._last = self._summary(self._run.finish())
            finally:
                self._run = None
                if self._opening is not None:
                    self._opening.close()
                    self._opening = None

    def __enter__(self) -> Session:
        return self if self._run is not None else self.open()

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- frames ------------------------------------------------------------------------------

    def push(
        self,
        image: np.ndarray,
        captured_ns: int | None = None,
        *,
        camera: Camera | None = None,
        motion: Motion | None = None,
    ) -> None:
        """The newest frame: BGR uint8 (h, w, 3), not to be written to afterwards. ``captured_ns``:
        when it was taken, by ``time.perf_counter_ns``; None: now. ``camera``: what took it; None: a
        guess. ``motion``: what its sensors said then.

        Raises ConfigError for a wrong shape or type, and for a frame that is older than the last.
        """
        run = self._running()
        if self._pushed is None:
            raise AppError("this session has a source of its own: open it without source= to push")
        self._pushed.push(image, captured_ns, camera, motion)
        if isinstance(run, UndrawnRun):
            run.pushed()

    def step(self, timeout_s: float | None = None) -> None:
        """One frame: returns when it is presented. Without drawing: serve the networks until there
        is a result, nothing runs any more, or ``timeout_s`` is over."""
        run = self._running()
        with self._once():
            if isinstance(run, UndrawnRun):
                run.turn(timeout_s)
            else:
                run.turn()

    def picture(self) -> np.ndarray:
        """What the last frame shows: RGB uint8 (h, w, 3). Waits for the GPU."""
        return self._drawing().picture()

    @property
    def finished(self) -> bool:
        """Whether the user has ended it, its source has, or the frames or seconds asked for are
        over."""
        return self._running().finished

    # --- results -----------------------------------------------------------------------------

    def latest(self, dnn: str) -> Any:
        """The newest result of a DNN, in pixels of the frame that it is of; None before the
        first."""
        self._running()
        self._check_dnn(dnn)
        return self._app.latest(dnn)

    def request(self, dnn: str, **options: Any) -> Future[Any]:
        """Ask for one inference of a DNN on the newest frame; ``options`` go to its pipeline.

        The future gets the first result on that frame or a later one (while one inference runs,
        only the newest request is kept), or AppError if it fails. ``wait`` for it, or step.
        """
        run = self._running()
        self._check_dnn(dnn)
        sequence = run.newest_sequence
        return run.expect(dnn, sequence, run.ask(dnn, options))

    def reset(self, dnn: str) -> None:
        """Have the state of a DNN begin anew with zeros (``App.reset``)."""
        run = self._running()
        self._check_dnn(dnn)
        self._app.reset(dnn)
        run.reset()

    def adjust(self, dnn: str, **wishes: Unpack[Wishes]) -> None:
        """From its next inference on, run a DNN by another ``priority``, ``rate_hz``,
        ``latency_constraint_ms`` or ``max_rate_hz``; what is not given is as declared
        (``App.adjust``)."""
        run = self._running()
        self._check_dnn(dnn)
        self._app.adjust(dnn, **wishes)
        run.adjust()

    def result(self, dnn: str) -> Future[Any]:
        """The next result of a DNN, on the newest frame or a later one."""
        run = self._running()
        self._check_dnn(dnn)
        return run.expect(dnn, run.newest_sequence)

    def wait(self, future: Future[Any], timeout_s: float | None = None) -> Any:
        """Step until a future of this session has its result, and return that.

        Raises what went wrong, and TimeoutError after ``timeout_s``.
        """
        run = self._running()
        until_ns = None if timeout_s is None else run.now_ns() + round(timeout_s * 1e9)
        while not future.done():
            if until_ns is not None and run.now_ns() >= until_ns:
                raise TimeoutError(f"no result within {timeout_s:g} s")
            with self._once():
                if isinstance(run, UndrawnRun):
                    run.serve()
                else:
                    run.turn()
        return future.result()

    def infer(self, image: np.ndarray, timeout_s: float | None = None) -> dict[str, Any]:
        """Push a frame, and wait until each continuous DNN has a result of it, by its name.

        Raises what ``push`` and ``wait`` raise.
        """
        self.push(image)
        names = [dnn.name for dnn in self._app.dnns if not dnn.on_event]
        futures = {name: self.result(name) for name in names}
        return {name: self.wait(future, timeout_s) for name, future in futures.items()}

    def serve_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let an asyncio loop of this thread serve the networks, so that results come without
        ``step``. For sessions that draw nothing: frames need their thread for themselves."""
        run = self._running()
        if not isinstance(run, UndrawnRun):
            raise AppError(
                "a session that draws is driven by step(): frames cannot wait for others"
            )
        run.serve_on(loop, self._once)

    def awaited(self, future: Future[Any]) -> Awaitable[Any]:
        """A future of this session for ``await``; see ``serve_on``."""
        return asyncio.wrap_future(future)

    # --- its app and its figures -------------------------------------------------------------

    @property
    def app(self) -> App:
        """The app that runs."""
        return self._app

    # --- models for requests -----------------------------------------------------------------

    def register(
        self,
        model: str | Path,
        slo_ms: float,
        *,
        name: str | None = None,
        priority: str = Priority.NORMAL,
        shapes: Inputs | None = None,
        expires: bool = False,
    ) -> Model:
        """Serve an ONNX file (a path, or a bundled file's name): each request to it is one
        inference on tensors of its own, to be answered within ``slo_ms``. Sessions that register
        the same file share its networks.

        It is loaded and profiled for every processor before this returns, which takes seconds
        where that was never done here: register before frames are drawn. ``name``: default is the
        file's. ``shapes`` fixes free input dimensions by input; a number there is what that
        input always is. ``expires``: a request that has not
        begun when its SLO is over is dropped, whatever the policy. Raises ModelError for a file
        that cannot be run, ConfigError for a wrong SLO or priority, AppError for a name that is
        taken.
        """
        registered_models = self._running().registered_models(self._answer)
        taken = [dnn.name for dnn in self._app.dnns]
        return registered_models.register(
            model,
            slo_ms,
            name=name,
            priority=priority,
            shapes=shapes,
            expires=expires,
            taken=taken,
        )

    @property
    def models(self) -> Mapping[str, Model]:
        """The models that are registered, by name."""
        return self._running().registered_models(self._answer).models

    def serve(self, until: threading.Event | None = None) -> None:
        """Serve requests of other threads until ``until`` is set, or for ever. For sessions that
        draw nothing; those that draw serve in ``step``."""
        run = self._running()
        if not isinstance(run, UndrawnRun):
            raise AppError("a session that draws serves requests in step()")
        while until is None or not until.is_set():
            with self._once():
                run.serve()

    def _answer(
        self, future: Future[dict[str, np.ndarray]], timeout_s: float | None
    ) -> dict[str, np.ndarray]:
        if threading.get_ident() == self._thread:
            answer: dict[str, np.ndarray] = self.wait(future, timeout_s)
            return answer
        try:
            return future.result(timeout_s)
        except FutureTimeoutError as error:
            raise TimeoutError(f"no answer within {timeout_s:g} s") from error

    # --- its figures -------------------------------------------------------------------------

    def summary(self) -> RunSummary:
        """The figures until now; the last ones when it is closed."""
        return self._last or self._summary(self._running().summary())

    def _summary(self, data: Mapping[str, Any]) -> RunSummary:
        wall_s = round(time.perf_counter() - self._opened_s, 3)
        return RunSummary.from_dict({**data, "wall_s": wall_s})

    @property
    def drawing(self) -> Figures | None:
        """The frames as they are counted; None where nothing is drawn. What it is may be read by
        any thread."""
        run = self._running()
        return run.figures if isinstance(run, LiveRun) else None

    def until_finished(self) -> RunSummary:
        """Step until it is over, save what was asked for, and return the summary."""
        run = self._running()
        if not isinstance(run, LiveRun):
            raise AppError("a session that draws nothing has no end of its own")
        with self._once():
            return self._summary(run.until_finished())

    # --- checks ------------------------------------------------------------------------------

    def _running(self) -> LiveRun | UndrawnRun:
        self._check_thread()
        if self._closed:
            raise AppError("the session is closed")
        if self._run is None:
            raise AppError("the session is not open: use it in a `with` block, or call open()")
        return self._run

    def _drawing(self) -> LiveRun:
        run = self._running()
        if not isinstance(run, LiveRun):
            raise AppError("nothing is drawn in this session: open it with an app, or render=True")
        return run

    def _check_thread(self) -> None:
        self.check_process("a session")
        if self._thread not in (None, threading.get_ident()):
            raise AppError("a session belongs to the thread that opened it")

    def _check_dnn(self, dnn: str) -> None:
        names = [each.name for each in self._app.dnns]
        if dnn not in names:
            raise AppError(f"no DNN {dnn!r} in this session; it has: {', '.join(names)}")

    @contextlib.contextmanager
    def _once(self) -> Any:
        """Refuse a step within a step: from a callback, say, of whichever session."""
        shared_gpu = self._running().shared_gpu
        if shared_gpu.busy:
            raise AppError("step() within step(): a callback may push and request, but not step")
        with INTERRUPTS.held():
            shared_gpu.busy = True
            try:
                yield
            finally:
                shared_gpu.busy = False


def as_app(app: str | Path | type[App] | App | Sequence[DNN]) -> App:
    """An App of what a session may be given. Raises AppError or ConfigError where it is none."""
    if isinstance(app, App):
        validate(type(app))
        return app
    if isinstance(app, type) and issubclass(app, App):
        found = app
    elif isinstance(app, str | Path):
        found = load_app(str(app))
    elif _is_dnns(app):
        if not app:
            raise AppError("no DNN is given: a session needs an app, or DNNs to run")
        found = type("Networks", (App,), {"dnns": tuple(app)})
    else:
        raise AppError(
            f"{app!r} is no app: give a name, a file, an App class or instance, or a list of DNNs"
        )
    validate(found)
    return create(found)


def _is_dnns(app: object) -> bool:
    return isinstance(app, Sequence) and not isinstance(app, str)
