"""What a scenario declares: its DNNs, its rates, and how it reacts and draws.

A scenario is a subclass of App; class attributes declare, methods react. All methods run on
the main thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from heimdall.app.dnn import DNN
from heimdall.errors import AppError, unknown
from heimdall.vocabulary.enums import Content, RenderPriority

if TYPE_CHECKING:
    from heimdall.capture.source import Frame
    from heimdall.render import Key, Pointer, Scene, Scroll
    from heimdall.tracking import Anchor, Tracker


class App:
    """Base of every scenario. Override what differs; everything has a sensible default."""

    title: ClassVar[str] = ""
    fps: ClassVar[float] = 30.0
    size: ClassVar[tuple[int, int]] = (1280, 720)
    scheduler: ClassVar[str] = "max-total"
    render_priority: ClassVar[str] = RenderPriority.TOP  # or "equal": rendering waits its turn
    content: ClassVar[str] = Content.AGING  # or "paper": how content variation enters utility
    clip: ClassVar[str] = "box.mp4"  # in assets/media: played when there is no camera
    dnns: ClassVar[Sequence[DNN]] = ()
    keys: ClassVar[Mapping[str, str]] = {}  # the app's keys and what they do, for the help card

    requests: list[tuple[str, dict[str, Any]]]
    tracker: Tracker | None  # of the run; None outside of one

    def __new__(cls, *args: Any, **kwargs: Any) -> App:
        # Not in __init__: a scenario's own one may well forget to call this one's.
        self = super().__new__(cls)
        self.requests = []
        self.tracker = None
        return self

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def request(self, dnn: str, **options: Any) -> None:
        """Ask for one inference of ``dnn`` on the newest frame; options go to its pipeline.

        While one is in flight, only the newest request is kept.
        """
        self._check_declared(dnn)
        self.requests.append((dnn, options))

    def carried(self, dnn: str) -> Any:
        """The latest result of ``dnn``, moved with the picture to the frame being drawn.

        Boxes, points, text regions and masks follow what they were found on, and go over to
        each new result within a few frames; a Picture, and an app's own type, come as they are.
        None before the first result. Pixels are those of the frame being drawn.
        """
        self._check_declared(dnn)
        return self.tracker.carried(dnn) if self.tracker else None

    def anchor(self, point: tuple[float, float]) -> Anchor:
        """Pin virtual content to the world at ``point``, pixels of the frame being drawn.

        The Anchor's ``at``, ``scale`` and ``roll`` follow the picture as long as it is kept.
        """
        if self.tracker is None:
            raise AppError("anchor() needs a run: call it from on_result, draw or an input method")
        return self.tracker.anchor(point)

    def start(self) -> None:
        """Called once, before the first frame."""

    def _check_declared(self, dnn: str) -> None:
        if dnn not in {declared.name for declared in self.dnns}:
            raise AppError(unknown("DNN", dnn, [declared.name for declared in self.dnns]))

    def on_result(self, dnn: str, result: Any, frame: Frame) -> None:
        """A DNN has finished; ``result`` is in pixels of ``frame``."""

    def draw(self, scene: Scene) -> None:
        """Add this frame's virtual content; the camera picture is already there."""

    def on_key(self, key: Key) -> None:
        """A key was pressed or released."""

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        """The mouse moved, or a button changed; ``scene.to_picture`` maps to picture pixels."""

    def on_scroll(self, scroll: Scroll) -> None:
        """The mouse wheel turned."""

    def script(self) -> Iterator[float]:
        """The event script of headless runs: yields the seconds to wait before each step."""
        return iter(())
