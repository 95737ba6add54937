"""The pose of each new frame, on a thread of its own.

Only the newest frame waits; one that is overtaken is never looked at. No other thread waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import HeimdallError
from heimdall.system.faults import Faults, say
from heimdall.system.priority import lower_priority
from heimdall.tracking.pose import Tracking
from heimdall.tracking.pose.tracker import LOST
from heimdall.tracking.world.course import Course

if TYPE_CHECKING:
    from heimdall.capture import Frame

log = logging.getLogger(__name__)

NICE = 5  # as the capture thread: below the main thread, which may share its core
REMEMBERED = 4096  # frames whose cost is kept
GIVEN_UP = 5  # frames in a row that failed: what is known of the room is at fault


class Following(Protocol):
    """Says where the camera is, frame by frame: ``PoseTracker``, or one of a room."""

    @property
    def placed(self) -> dict[str, Pose]: ...

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Tracking: ...


Make = Callable[[], Following]


class PoseThread:
    """Follows ``tracker`` frame by frame and writes down ``course``; without a tracker it waits
    until ``begin_anew``. The thread starts with the first frame."""

    def __init__(self, tracker: Following | None = None) -> None:
        self.tracker, self.course = tracker, Course()
        self.placed = tracker.placed if tracker is not None else {}
        self.problem = ""  # why nothing is followed, or the last frame was not
        self._faults = Faults()
        self._failed = 0  # frames in a row
        self.took_ns = 0  # from handing over the last frame that was tracked to its pose
        self._costs_ns: deque[int] = deque(maxlen=REMEMBERED)
        self._changed = threading.Condition()
        self._frame: Frame | None = None
        self._handed_ns = 0
        self._order: tuple[Make, Frame] | None = None
        self._busy = self._ended = False
        self._thread: threading.Thread | None = None

    @property
    def errors(self) -> list[str]:
        """What has failed, each message once, and how often."""
        return self._faults.messages

    @property
    def costs_ms(self) -> list[float]:
        """What each of the last frames has taken of a core."""
        return [each / 1e6 for each in self._costs_ns.copy()]

    def hand(self, frame: Frame) -> None:
        """A new frame, on any thread; returns at once."""
        with self._changed:
            if self._ended or (self.tracker is None and self._order is None):
                return
            self._frame, self._handed_ns = frame, time.perf_counter_ns()
            self._wake()

    def begin_anew(self, make: Make, frame: Frame) -> None:
        """Follow what ``make``, called on the thread, gives instead, from ``frame`` on."""
        with self._changed:
            self._order, self._frame = (make, frame), None
            self._wake()

    def count_afresh(self) -> None:
        """Let ``costs_ms`` begin anew."""
        self._costs_ns.clear()

    def settle(self, timeout_s: float = 10.0) -> bool:
        """Wait until there is nothing to do; False if there still is. For tests and tools."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout_s)

    def end(self) -> None:
        """Look at no other frame."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self, timeout_s: float = 5.0) -> None:
        """``end``, and wait for the thread. Closing twice is allowed."""
        self.end()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _wake(self) -> None:
        if self._thread is None and not self._ended:
            self._thread = threading.Thread(target=self._main, name="pose", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    @property
    def _waiting(self) -> bool:
        return self._frame is not None or self._order is not None

    # --- the thread -------------------------------------------------------------------------

    def _main(self) -> None:
        lower_priority(NICE)
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if self._ended:
                    return
                order, self._order = self._order, None
                frame, self._frame = (None if order else self._frame), None
                handed_ns = self._handed_ns
                self._busy = True
            try:
                found = self._do(order, frame)
                if found is not None and found.tracked and order is None:
                    self.took_ns = time.perf_counter_ns() - handed_ns
            except Exception as error:  # costs the content its place for now, and never a frame
                if order is not None:
                    self.tracker, self.problem = None, _told(error)
                    self._faults.report(f"the world cannot be followed: {self.problem}", error)
                else:
                    self._fail(error, frame)

    def _fail(self, error: Exception, frame: Frame | None) -> None:
        """A frame that cannot be looked at is one in which the camera is lost; after several in a
        row nothing is known any more, and the world is found again from nothing."""
        self._failed += 1
        self.problem = f"pose: {_told(error)}"
        self._faults.report(f"finding the pose failed in a frame: {_told(error)}", error)
        if frame is not None:
            self.course.add(frame.captured_ns, Tracking(frame.sequence, LOST, None))
        forget = getattr(self.tracker, "forget", None)
        if self._failed % GIVEN_UP == 0 and forget is not None:
            try:
                forget()
                log.warning("nothing is known of the room any more: %d frames failed", GIVEN_UP)
            except Exception as worse:
                self._faults.report(f"forgetting the room failed: {_told(worse)}", worse)

    def _do(self, order: tuple[Make, Frame] | None, frame: Frame | None) -> Tracking | None:
        if order is not None:
            make, frame = order
            self.tracker, self.course, self.problem = make(), Course(), ""
        if self.tracker is None or frame is None:
            return None
        began_ns = time.thread_time_ns()
        found = self.tracker.advance(
            frame.image, frame.camera, frame.sequence, frame.captured_ns / 1e9
        )
        self._costs_ns.append(time.thread_time_ns() - began_ns)
        if self._failed:
            self._failed, self.problem = 0, ""
        self.placed = self.tracker.placed
        self.course.add(frame.captured_ns, found)
        return found


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, HeimdallError) else say(error)
