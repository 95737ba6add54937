"""What a running app has of one of its DNNs: its results, and the door to ask for more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heimdall.capture.source import Frame
    from heimdall.vocabulary.enums import PriorityName

T = TypeVar("T")


class Wishes(TypedDict, total=False):
    """What an app may want of a DNN otherwise than declared, while it runs."""

    priority: PriorityName | None
    rate_hz: float | None
    latency_constraint_ms: float | None
    max_rate_hz: float | None


class Feed(Generic[T]):
    """The results of one DNN: ``self.detect`` in an app that declares ``detect = DNN(...)``.

    ``T`` is the result's type: ``list[Detection]`` for nanodet, ``Mask`` for selfie, and so on.
    """

    __slots__ = ("_app", "name")

    def __init__(self, app: Any, name: str) -> None:
        self._app, self.name = app, name

    def __repr__(self) -> str:
        return f"<Feed of {self.name}>"

    @property
    def latest(self) -> T | None:
        """The newest result, in pixels of ``frame``; None before the first."""
        return self._app.latest(self.name)  # type: ignore[no-any-return]

    @property
    def frame(self) -> Frame | None:
        """The frame that ``latest`` was found in."""
        return self._app.frame_of(self.name)  # type: ignore[no-any-return]

    @property
    def tracked(self) -> T | None:
        """The newest result, moved with the picture to the frame being drawn (``App.tracked``)."""
        return self._app.tracked(self.name)  # type: ignore[no-any-return]

    def request(self, **options: Any) -> None:
        """Ask for one inference on the newest frame (``App.request``)."""
        self._app.request(self.name, **options)

    def reset(self) -> None:
        """Have its state begin anew with zeros (``App.reset``)."""
        self._app.reset(self.name)

    def adjust(self, **wishes: Unpack[Wishes]) -> None:
        """Want it more urgently or more often than declared from now on (``App.adjust``)."""
        self._app.adjust(self.name, **wishes)
