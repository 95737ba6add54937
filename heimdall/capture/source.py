"""Where frames come from: camera, video file, stream or still image, read on a thread of its own.

The newest frame wins. ``Source.latest`` never waits, so a slow, hanging or dead source costs the
main thread nothing: it draws the last frame again while the capture thread keeps trying.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.capture.camera_files import fitting
from heimdall.capture.lens import Camera
from heimdall.capture.mcap_reader import McapReader
from heimdall.capture.opening import camera_of, find_source
from heimdall.capture.pictures import as_picture
from heimdall.capture.readers import Reader, camera_likely
from heimdall.errors import ConfigError, DeviceError, HeimdallError
from heimdall.system.faults import Faults
from heimdall.system.interrupts import INTERRUPTS
from heimdall.system.priority import lower_priority

log = logging.getLogger(__name__)

OPEN_TIMEOUT_S = 15.0  # a camera takes 1-3 s; a stream's own timeouts below are shorter
# A live source that gives nothing for so long, and for three times its usual, is reported.
SILENCE_S, TIMES_USUAL = 1.0, 3
RETRY_S = (0.5, 1.0, 1.5)  # after each failed attempt; the last one repeats
CATCH_UP = 4  # frames a clip may be behind before its schedule starts afresh
SANE_AGE_NS = 1_000_000_000  # of a picture that has just been read
NICE = 5  # below the main thread, which may share its core


@dataclass(frozen=True, eq=False)
class Frame:
    """A picture, BGR uint8 (h, w, 3), never written to again.

    ``sequence`` counts frames from 0, dropped ones included; ``captured_ns`` is the
    ``time.perf_counter_ns`` at which it was taken where its camera tells, else read; of a clip, at
    which it was due. ``camera`` is what took it, for pictures of
    this size: as calibrated, else a guess that says so; with its pose where that is known.
    """

    image: np.ndarray
    sequence: int
    captured_ns: int
    camera: Camera = None  # type: ignore[assignment]  # a guess unless given

    def __post_init__(self) -> None:
        height, width = self.image.shape[:2]
        object.__setattr__(self, "camera", fitting(self.camera, width, height))


class Source:
    """Frames from ``open_reader``, read by a daemon thread from construction to ``close``.

    A clip waits at its first frame until someone asks for ``latest``, so that start-up eats
    none of it; from then on it keeps its own pace, dropping what is not fetched in time.
    """

    def __init__(
        self,
        open_reader: Callable[[], Reader],
        name: str,
        *,
        loop: bool = True,
        fps: float = 0,
        camera: Camera | None = None,
    ) -> None:
        self.name = name
        self.camera = self._known = camera  # as calibrated; None: it is not
        self.dropped = 0  # frames that were replaced or passed over undelivered
        self.ended = False  # a clip played once has no more frames
        # The newest frame's number, when it was captured, and when (``time.perf_counter_ns``) it
        # could first be taken.
        self.arrival: tuple[int, int, int] | None = None
        self._open_reader, self._loop, self._fps = open_reader, loop, fps
        self._frame: Frame | None = None
        self._delivered = True
        self._error: str | None = None
        self._faults = Faults()  # what was wrong at any time
        self._usual_ns = 0  # between the last two pictures
        self._reader: Reader | None = None
        self._silent = -1  # the last picture before it was silent
        self._failure: Exception | None = None  # the first attempt to open raised this
        self._live = self._still = False
        self._pace_text = ""
        self.session: Mapping[str, Any] = {}  # of a session that was kept: what run it was
        self._inputs: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._sequence = 0
        self._changed = threading.Condition()
        self._opened = threading.Event()
        self._wanted = threading.Event()
        self._held: Frame | None = None
        self._stepping = False
        self._stop = threading.Event()
        # Hears of each frame, on the capture thread, before that frame is handed on.
        self.observe: Callable[[Frame], None] | None = None
        self._thread = threading.Thread(target=self._main, name="capture", daemon=True)
        self._thread.start()

    def latest(self) -> Frame | None:
        """The newest frame (the same again while there is no newer, or it is held); None before
        the first."""
        with self._changed:
            if self._held is not None:
                self._take_step()
                return self._held
            self._wanted.set()
            self._delivered = True
            return self._frame

    def hold(self) -> None:
        """Give the present frame until ``release``; a clip waits meanwhile, a camera goes on."""
        with self._changed:
            self._held = self._frame
            self._wanted.clear()

    def step(self) -> None:
        """While held: on to the next frame of a clip, the newest of a camera."""
        self._stepping = True

    def _take_step(self) -> None:
        if self._stepping and self._frame is not self._held:
            self._held, self._delivered, self._stepping = self._frame, True, False
            self._wanted.set()  # wakes a clip that waits, for one frame
            self._wanted.clear()

    def release(self) -> None:
        """End ``hold``."""
        with self._changed:
            self._held, self._stepping = None, False

    @property
    def held(self) -> bool:
        """True if ``latest`` gives the same frame for now."""
        return self._held is not None

    @property
    def flowing(self) -> bool:
        """True if newer pictures come: the source is not held, and no still image."""
        return not (self._still or self.held)

    def inputs(self) -> list[dict[str, Any]]:
        """What the user of a recorded session did, since the last call, until the newest frame."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._inputs.get_nowait())
        return found

    def number_from(self, sequence: int) -> None:
        """Count frames from ``sequence`` on, where they follow those of another source. Called
        once, before the first ``latest``."""
        with self._changed:
            if self._frame is not None:
                self._frame = replace(self._frame, sequence=sequence)
                sequence += 1
            self._sequence = sequence

    def wait_first(self, timeout_s: float) -> Frame | None:
        """The newest frame, waiting at most ``timeout_s`` for the first one; None without any."""
        with self._changed:
            with INTERRUPTS.at_once():
                self._changed.wait_for(lambda: self._frame or self.ended, timeout_s)
            return self._frame

    def wait_open(self, timeout_s: float = OPEN_TIMEOUT_S) -> None:
        """Return when the source is open. Raises the error of the first attempt, or DeviceError
        when it takes longer; the source is closed then."""
        try:
            with INTERRUPTS.at_once():
                opened = self._opened.wait(timeout_s)
        except BaseException:  # the user does not wait for it
            self.close(timeout_s=0.1)
            raise
        if opened and self._failure is None:
            return
        failure = self._failure
        self.close(timeout_s=0.1)
        if isinstance(failure, HeimdallError):
            raise failure
        if failure is not None:
            raise DeviceError(f"cannot open {self._say(failure)}") from failure
        raise DeviceError(f"{self.name} did not answer within {timeout_s:g} s; is it in use?")

    @property
    def error(self) -> str | None:
        """What is wrong at the moment; None while frames arrive."""
        with self._changed:
            frame, error, arrival = self._frame, self._error, self.arrival
        if error is None and (absent := getattr(self._reader, "absent", "")):
            return f"{self.name}: {absent}"
        if error is None and self._live and frame is not None and arrival is not None:
            silence_ns = time.perf_counter_ns() - arrival[2]
            if silence_ns > max(SILENCE_S * 1e9, TIMES_USUAL * self._usual_ns):
                if self._silent != arrival[0]:
                    self._silent = arrival[0]
                    self._faults.report(f"{self.name} gave no picture for a while")
                return f"{self.name}: no picture for {silence_ns / 1e9:.0f} s"
        return error

    @property
    def errors(self) -> list[str]:
        """What was wrong at any time, each message once; it may work again."""
        return self._faults.messages

    @property
    def live(self) -> bool:
        """True for a camera or stream."""
        return self._live

    def describe(self) -> str:
        """One phrase for people and reports: ``video box.mp4, 640x480 at 29.97 fps, looped``."""
        frame = self._frame
        shape = f", {frame.image.shape[1]}x{frame.image.shape[0]}" if frame else ""
        return self.name + shape + self._pace_text

    def close(self, timeout_s: float = 0.5) -> None:
        """Stop. A read that hangs is left to the daemon thread, which then cleans up itself."""
        self._stop.set()
        self._wanted.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    # --- the capture thread ------------------------------------------------------------------

    def _main(self) -> None:
        lower_priority(NICE)
        attempt = 0
        while not self._stop.is_set():
            published = self._sequence
            try:
                finished = self._play()
            except Exception as error:
                # whatever a driver raises, the last frame stays and the source is tried again
                finished = self._failed(error)
            if finished:
                break
            attempt = 0 if self._sequence > published else attempt
            self._stop.wait(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            attempt += 1
        with self._changed:
            self._changed.notify_all()

    def _failed(self, error: Exception) -> bool:
        """Note the error; True when the source never opened and there is nothing to retry."""
        if not self._opened.is_set():
            self._failure = error
            self._opened.set()
            return True
        self._report(str(error) if isinstance(error, HeimdallError) else self._say(error))
        return False

    def _play(self) -> bool:
        """Open and read to the end; True when the source is finished, False to try again."""
        reader = self._open_reader()
        try:
            if self._stop.is_set():
                return True
            self._live, self._reader = reader.live, reader
            self.name = getattr(reader, "name", self.name)
            self.session = reader.session if isinstance(reader, McapReader) else {}
            self._opened.set()
            if reader.live:
                return self._follow(reader)
            return self._pace(reader)
        finally:
            reader.close()

    def _follow(self, reader: Reader) -> bool:
        while not self._stop.is_set():
            image = reader.read()
            if image is None:
                self._report(f"{self.name} stopped giving pictures; trying again")
                return False
            self._publish(image, _taken_ns(reader), getattr(reader, "seen_by", None))
        return True

    def _pace(self, reader: Reader) -> bool:
        """Play a clip on an absolute schedule, one pass after the other."""
        rate = self._fps or reader.fps
        if not rate:  # a still image
            return self._publish_still(reader)
        self._pace_text = f" at {rate:.4g} fps, {'looped' if self._loop else 'once'}"
        interval_ns = round(1e9 / rate)
        due_ns = 0
        while not self._stop.is_set():
            first, image = self._sequence, reader.read()
            while image is not None and not self._stop.is_set():
                self._wait_until(due_ns)  # decoded before, or every picture would come later
                self._follow_recording(reader)
                self._publish(image, due_ns or None)
                if not self._wanted.is_set():
                    self._wanted.wait()
                    due_ns = 0
                due_ns = self._next_due(reader, due_ns, interval_ns)
                image = reader.read()
            self._wait_until(due_ns)
            if self._stop.is_set():
                return True
            if not self._loop:
                self.ended = True
                return True
            if self._sequence == first:
                self._report(f"{self.name}: no more frames can be decoded; opening it again")
                return False
            if not reader.rewind():
                return False
        return True

    def _wait_until(self, due_ns: int) -> None:
        self._stop.wait(max(0, due_ns - time.perf_counter_ns()) / 1e9)

    def _next_due(self, reader: Reader, due_ns: int, interval_ns: int) -> int:
        """When the next frame is due: as long after the last one as the source says, else in an
        interval. Late frames are passed over undecoded; far behind (a suspended machine),
        the schedule starts afresh rather than race."""

        gap_ns = lambda: interval_ns  # noqa: E731
        if not self._fps:
            gap_ns = getattr(reader, "gap_ns", gap_ns)
        now_ns = time.perf_counter_ns()
        gap = gap_ns()
        if due_ns + gap < now_ns - CATCH_UP * interval_ns:
            return now_ns + gap
        due_ns += gap
        while due_ns < now_ns - interval_ns and reader.skip():
            self._sequence += 1
            self.dropped += 1
            due_ns += gap_ns()
        return due_ns

    def _follow_recording(self, reader: Reader) -> None:
        """Hand on what a recorded session holds beside its pictures."""
        if isinstance(reader, McapReader):
            self.camera = camera_of(reader, self._known)
            while reader.inputs:
                self._inputs.put(reader.inputs.pop(0))

    def _publish_still(self, reader: Reader) -> bool:
        image = reader.read()
        if image is None:
            raise DeviceError(f"{self.name} holds no picture")
        self._still = True
        self._publish(image)
        return True

    def _publish(
        self,
        image: np.ndarray,
        captured_ns: int | None = None,
        seen_by: Callable[[Camera], Camera] | None = None,
    ) -> None:
        try:
            picture = as_picture(image)
        except ConfigError as error:
            if self._frame is None:
                raise
            self._report(f"{self.name}: a picture is left out: {error}")
            self._sequence += 1
            self.dropped += 1
            return
        frame = Frame(
            picture,
            self._sequence,
            captured_ns or time.perf_counter_ns(),
            self.camera,  # type: ignore[arg-type]
        )
        if seen_by is not None:
            frame = replace(frame, camera=seen_by(frame.camera))
        if self.observe:
            self.observe(frame)
        with self._changed:
            self.dropped += not self._delivered
            self._frame, self._delivered, self._error = frame, False, None
            now_ns, before = time.perf_counter_ns(), self.arrival
            self._usual_ns = now_ns - before[2] if before else 0
            self.arrival = frame.sequence, frame.captured_ns, now_ns
            self._sequence += 1
            self._changed.notify_all()

    def _say(self, error: Exception) -> str:
        return f"{self.name}: {_text(error)}"

    def _report(self, error: str) -> None:
        self._faults.report(error)
        with self._changed:
            self._error = error


def open_source(
    spec: str | int | Path | Source | None,
    *,
    size: tuple[int, int] | None = None,
    fps: float | None = None,
    camera_fps: float | None = None,
    loop: bool = True,
    default: Path | None = None,
) -> Source:
    """Open a camera (its index), a video or image file, a folder of pictures or numbered ones
    (``%04d.png``), a session that was kept (its path), a stream (its URL) or another kind of source
    (``kind:rest``, see ``capture.kinds``). A Source is returned as it is.

    ``None`` means camera 0 where there is one, else the clip ``default``. ``size`` (width,
    height) is asked of a camera, ``camera_fps`` too; ``fps`` is both that and the pace of a clip.
    ``loop=False`` plays a clip once.

    Raises ConfigError for a path that is no readable file, DeviceError for a camera, stream or
    file that gives no picture; each names the source.
    """
    if isinstance(spec, Source):
        return spec
    if spec is None:
        if camera_likely(0):
            try:
                return open_source(0, size=size, fps=fps, camera_fps=camera_fps, loop=loop)
            except DeviceError as error:
                plays = f"{default.name} plays" if default else "there is no clip"
                log.warning("%s; %s", error, plays)
        if default is None:
            raise DeviceError("no camera found; name a video file, an image or a stream instead")
        spec = default
    found = find_source(str(spec), size=size, fps=camera_fps or fps)
    source = Source(found.open_reader, found.name, loop=loop, fps=fps or 0, camera=found.camera)
    source.wait_open()
    return source


def _taken_ns(reader: Reader) -> int | None:
    """When a camera says that it took the last picture, by ``time.perf_counter_ns``; None where
    it does not, or by another clock."""
    taken_ns: int | None = getattr(reader, "taken_ns", None)
    sane = taken_ns is not None and 0 <= time.perf_counter_ns() - taken_ns < SANE_AGE_NS
    return taken_ns if sane else None


def _text(error: Exception) -> str:
    """The first line: OpenCV's messages go on with source files and conditions."""
    return str(error).partition("\n")[0].strip() or type(error).__name__
