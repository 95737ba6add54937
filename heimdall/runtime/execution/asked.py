"""The client of a DNN whose jobs are not about pictures: each has a subject of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from heimdall.errors import AppError
from heimdall.runtime.execution.frames import FrameRun, Frames
from heimdall.runtime.execution.runs import RegisteredDnn, RunningJob
from heimdall.vocabulary.events import Drop, Prepare

if TYPE_CHECKING:
    import numpy as np

S = TypeVar("S")


class Asked(Frames, Generic[S]):
    """Subjects one after the other. What comes with a result is the picture that was the newest
    when its job began."""

    quick = False  # whether to prepare a subject takes no time, as for some numbers
    missing = ""  # what an app is told that asks where there is no subject; {name}: of the DNN

    def __init__(self, *arguments: Any, ask: Callable[[], None], **more: Any) -> None:
        """``ask`` for a job; from any thread."""
        super().__init__(*arguments, **more)
        self._ask = ask

    def take(self) -> S | None:
        """The subject of a job that begins."""
        raise NotImplementedError

    def dropped_with(self, subject: S, action: Drop) -> None:
        """Its job was dropped."""
        raise NotImplementedError

    def heard(self, subject: S, value: Any) -> Any:
        """What the app gets of a result that counts."""
        return value

    def begin(self, action: Prepare, registered: RegisteredDnn, now_ns: int) -> RunningJob:
        return AskedRun(self, registered, now_ns, self.take())

    def dropped(self, action: Drop, run: RunningJob | None) -> None:
        if isinstance(run, AskedRun) and run.subject is not None:
            self.dropped_with(run.subject, action)

    def luminance(self, image: np.ndarray) -> float:
        """What is no picture has none."""
        return 0.0


class AskedRun(FrameRun, Generic[S]):
    """A job about a subject."""

    def __init__(
        self, client: Asked[S], registered: RegisteredDnn, requested_ns: int, subject: S | None
    ) -> None:
        super().__init__(client, registered, requested_ns, subject)
        self.subject, self._asked, self.quick = subject, client, client.quick

    def prepare(self, stage: int) -> tuple[int, float]:
        if self.subject is None:
            raise AppError(self._asked.missing.format(name=self.registered.name))
        return super().prepare(stage)

    def _heard(self, value: Any) -> Any:
        assert self.subject is not None
        return self._asked.heard(self.subject, value)
