"""What a scenario declares: its DNNs, its rates, and how it reacts and draws.

A scenario is a subclass of App; class attributes declare, methods react. All methods run on
the main thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from heimdall.app.dnn import DNN
from heimdall.app.generate import Generate
from heimdall.errors import AppError, unknown
from heimdall.vocabulary.enums import Admission, Content, Luminance, RenderPriority

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import ParamSpec

    from heimdall.capture.source import Frame
    from heimdall.render import Key, Pointer, Scene, Scroll
    from heimdall.schedulers import Scheduler
    from heimdall.system.workers import Workers
    from heimdall.tracking import Anchor, Plane, Tracker, World
    from heimdall.vocabulary.enums import PriorityName

    P = ParamSpec("P")

R = TypeVar("R")
BACKGROUND_NICE = 10

log = logging.getLogger(__name__)


class App:
    """Base of every app. Override what differs; everything has a default."""

    title: ClassVar[str] = ""  # what people read of it; its name by default
    fps: ClassVar[float] = 30.0  # frames a second
    size: ClassVar[tuple[int, int]] = (1280, 720)  # width and height drawn, in pixels
    # The policy that picks the next chunk: a name, file.py[:Class], or a Scheduler of your own.
    scheduler: ClassVar[str | type[Scheduler] | Scheduler] = "max-total"
    render_priority: ClassVar[str] = RenderPriority.TOP  # or "equal": rendering waits its turn
    content: ClassVar[str] = Content.AGING  # or "paper": how content variation enters utility
    luminance: ClassVar[str] = Luminance.CELLS  # or "pixels": of what that variation is summed
    admission: ClassVar[str] = Admission.ONE_IN_FLIGHT  # or "replace": by a newer frame or request
    clip: ClassVar[str] = "box.mp4"  # in assets/media: played when there is no camera
    dnns: ClassVar[Sequence[DNN[Any]]] = ()  # and those that are attributes of the class
    sound_dnns: ClassVar[Sequence[DNN[Any]]] = ()  # more of them, in a run that is given sound
    # What the camera is found by, targets or the room itself, and what stands there; None unless
    # declared, so what uses it has declared it. Each run has its own.
    world: World = None  # type: ignore[assignment]
    keys: ClassVar[Mapping[str, str]] = {}  # the app's keys and what they do, for the help card
    gestures: ClassVar[Mapping[str, str]] = {}  # of mouse and hands, as {"drag": "move it"}

    _requests: list[tuple[str, dict[str, Any]]]
    _results: dict[str, tuple[Any, Frame]]
    _wanted: dict[str, DNN[Any]]  # DNNs that the app wants otherwise than declared, as they are
    _adjusted: set[str]  # of which the run has not heard
    _reset: set[str]  # ... either
    _tracker: Tracker | None  # of the run; None outside of one
    _background: Workers | None

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        own = [value for value in vars(cls).values() if isinstance(value, DNN)]
        writers = [value for value in vars(cls).values() if isinstance(value, Generate)]
        own += [dnn for writer in writers for dnn in writer.dnns]
        if own and isinstance(cls.dnns, Sequence):
            names = {dnn.name for dnn in own}
            given = "dnns" in vars(cls)  # beside the attributes: both count, twice is a mistake
            inherited = [dnn for dnn in cls.dnns if given or dnn.name not in names]
            cls.dnns = (*inherited, *own)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Not in __init__: a scenario's own one may well forget to call this one's.
        self = super().__new__(cls)
        self._requests, self._results = [], {}
        self._wanted, self._adjusted, self._reset = {}, set(), set()
        self._tracker = self._background = None
        self.dnns = cls.dnns  # type: ignore[misc]  # those of this run, whatever class comes after
        if cls.world is not None and hasattr(cls.world, "fresh"):  # else ``validate`` objects
            self.world = cls.world.fresh()
        return self

    @property
    def name(self) -> str:
        """What the app is called in reports."""
        return type(self).__name__.lower()

    def request(self, dnn: str, **options: Any) -> None:
        """Ask for one inference of ``dnn`` on the newest frame; options go to its pipeline.

        While one is in flight, only the newest request is kept.
        """
        self._check_declared(dnn)
        self._requests.append((dnn, options))

    def adjust(
        self,
        dnn: str,
        *,
        priority: PriorityName | None = None,
        rate_hz: float | None = None,
        latency_constraint_ms: float | None = None,
        max_rate_hz: float | None = None,
    ) -> None:
        """From now on run ``dnn`` by another priority, rate or latency constraint; an inference in
        flight, too.

        What is not given is as declared, so ``adjust(dnn)`` undoes it; a new ``rate_hz`` brings its
        own constraint, unless one is declared. May be called as often as you like: only a change
        is passed on. Raises AppError for an unknown DNN, ConfigError for values that cannot be.
        """
        self._check_declared(dnn)
        declared = next(each for each in self.dnns if each.name == dnn)
        given = {
            "priority": priority,
            "rate_hz": rate_hz,
            "latency_constraint_ms": latency_constraint_ms,
            "max_rate_hz": max_rate_hz,
        }
        changes: dict[str, Any] = {name: each for name, each in given.items() if each is not None}
        wanted = replace(declared, **changes)
        if wanted != self._wanted.get(dnn, declared):
            self._wanted[dnn] = wanted
            self._adjusted.add(dnn)

    def reset(self, dnn: str) -> None:
        """Have the state of ``dnn`` begin anew with zeros, from its next inference on: another
        speaker, another scene. One that hears forgets what was said. Raises AppError for an unknown
        DNN, and for one without ``state`` that does not hear.
        """
        self._check_declared(dnn)
        if not any(each.state or each.hears for each in self.dnns if each.name == dnn):
            raise AppError(f"DNN {dnn!r} has no state to reset; declare one: DNN(state={{...}})")
        self._reset.add(dnn)

    def latest(self, dnn: str) -> Any:
        """The newest result of ``dnn``, in pixels of the frame that it was found in; None before
        the first. Of a DNN that is an attribute, ``self.detect.latest`` knows its type as well."""
        self._check_declared(dnn)
        return self._results[dnn][0] if dnn in self._results else None

    def frame_of(self, dnn: str) -> Frame | None:
        """The frame that the newest result of ``dnn`` was found in; None before the first."""
        self._check_declared(dnn)
        return self._results[dnn][1] if dnn in self._results else None

    def tracked(self, dnn: str) -> Any:
        """The latest result of ``dnn``, moved with the picture to the frame being drawn.

        Boxes, points, text regions and masks follow what they were found on, and go over to
        each new result within a few frames; a Picture, and an app's own type, come as they are.
        None before the first result. Pixels are those of the frame being drawn.
        """
        self._check_declared(dnn)
        return self._tracker.carried(dnn) if self._tracker else None

    def anchor(self, point: tuple[float, float]) -> Anchor:
        """Pin virtual content to the world at ``point``, pixels of the frame being drawn.

        The Anchor's ``at``, ``scale`` and ``roll`` follow the picture as long as it is kept. Where
        the app's ``world`` is tracked and has something there, it is a WorldAnchor, with a ``pose``
        in metres; else one in the picture plane, whose ``pose`` is None.
        """
        if self.world is not None and self.world.tracked:
            found = self.world.hit(*point)
            if found is not None:
                return self.world.anchor(found)
        if self._tracker is None:
            raise AppError("anchor() needs a run: call it from on_result, draw or an input method")
        return self._tracker.anchor(point)

    def in_background(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run ``work(...)`` on a thread that gives way to frames and networks, in the order of
        asking; use it for what takes longer than a millisecond or two.

        The Future has the answer: look at ``done()`` in ``draw``, for waiting would stop the
        frames. An error in the work is logged, and raised by ``result()``.
        """
        from heimdall.system.priority import lower_priority
        from heimdall.system.workers import Workers

        if self._background is None:
            self._background = Workers("app", urgency=lambda: lower_priority(BACKGROUND_NICE))
        future: Future[R] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(work(*args, **kwargs))
            except (Exception, SystemExit) as error:
                # The app's own work: the thread goes on, and the error is reported.
                log.exception("%s: work in the background failed", self.name)
                future.set_exception(error)

        self._background.submit(run)
        return future

    def on_start(self) -> None:
        """Called once, before the first frame."""

    def on_result(self, dnn: str, result: Any, frame: Frame) -> None:
        """A DNN has finished; ``result`` is in pixels of ``frame``."""

    def on_tracking(self, state: str) -> None:
        """The app's ``world`` is now ``tracked``, or ``lost``: it keeps its last pose then, and
        what stands in it fades. ``self.world.reason`` says why a room is lost."""

    def on_plane(self, plane: Plane) -> None:
        """A plane was found in the room, or has changed: it has grown, or become one with another.
        ``self.world.found`` has all of them; each keeps its ``name``."""

    def draw(self, scene: Scene) -> None:
        """Add this frame's virtual content; the camera picture is already there."""

    def on_key(self, key: Key) -> None:
        """A key was pressed or released."""

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        """The mouse moved, or a button changed; ``scene.to_picture`` maps to picture pixels."""

    def on_scroll(self, scroll: Scroll) -> None:
        """The mouse wheel turned."""

    def demo_events(self) -> Iterator[float]:
        """Plays the user in headless runs: yields the seconds to wait before each step."""
        return iter(())

    # --- the run's side -------------------------------------------------------------------

    def _keep(self, dnn: str, result: Any, frame: Frame) -> None:
        """A result has come: ``latest`` has it from now on."""
        self._results[dnn] = (result, frame)

    def _end(self) -> None:
        """The run is over: end the app's own thread, and want everything as declared."""
        self._wanted, self._adjusted, self._reset = {}, set(), set()
        if self._background is not None:
            self._background.close()
            self._background = None

    def _check_declared(self, dnn: str) -> None:
        if dnn not in {declared.name for declared in self.dnns}:
            raise AppError(unknown("DNN", dnn, [declared.name for declared in self.dnns]))
