"""Where sound comes from: a microphone or a file, read on a thread of its own, in windows as
networks want them.

Times are those of frames (``time.perf_counter_ns``). PyAV decodes and resamples; microphones are
sounddevice's (PortAudio), an extra.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from heimdall.capture.source import NICE, RETRY_S
from heimdall.errors import ConfigError, DeviceError, HeimdallError
from heimdall.system import paths
from heimdall.system.extras import need
from heimdall.system.faults import Faults
from heimdall.system.priority import lower_priority
from heimdall.vocabulary.hearing import Hearing

log = logging.getLogger(__name__)

SILENCE_S = 1.0  # a microphone that gives nothing for so long has gone
MICROPHONE = "microphone"


@dataclass(frozen=True, eq=False)
class Sound:
    """A window: mono float32 samples in -1..1 of ``rate``, never written to again. ``sequence``
    counts windows from 0; ``captured_ns``: when its last sample was recorded, of a file when that
    was due."""

    samples: np.ndarray
    rate: int
    sequence: int
    captured_ns: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate


class SoundReader(ABC):
    """Blocks of samples, in their order, from the calling thread."""

    @abstractmethod
    def read(self) -> tuple[np.ndarray, int, int] | None:
        """The next block, mono float32, its rate, and when its last sample was recorded; waits for
        that. None at the end. Raises DeviceError where there is no more though it is not over."""

    def close(self) -> None:  # noqa: B027 - optional
        """Give the device back."""


class Mono:
    """Decoded sound as mono float32. FFmpeg's own mix of two channels is 1.4 times as loud as
    either."""

    def __init__(self) -> None:
        self._floats: av.AudioResampler | None = None

    def __call__(self, frame: av.AudioFrame) -> np.ndarray:
        """The samples of one frame more, at its own rate."""
        self._floats = self._floats or av.AudioResampler(
            format="fltp", layout=frame.layout, rate=frame.sample_rate
        )
        return _joined(each.to_ndarray().mean(0) for each in self._floats.resample(frame))


class FileReader(SoundReader):
    """A file's first track of sound, at its own pace from the first ``read`` on."""

    def __init__(self, path: Path) -> None:
        """Raises DeviceError for what cannot be read, and a file without sound."""
        try:
            self._container = av.open(str(path))
        except (OSError, ValueError) as error:  # FFmpeg's errors are of these
            raise DeviceError(f"cannot read sound from {path}: {error}") from error
        if not self._container.streams.audio:
            self._container.close()
            raise DeviceError(f"{path} has no sound")
        self._path = path
        self._frames = self._container.decode(audio=0)
        self._mono = Mono()
        self._began_ns, self._done = 0, 0.0  # when it began, and the seconds that were read

    def read(self) -> tuple[np.ndarray, int, int] | None:
        try:
            frame = next(self._frames, None)
        except (OSError, ValueError) as error:
            raise DeviceError(f"cannot read on in {self._path}: {error}") from error
        if frame is None:
            return None
        rate = frame.sample_rate
        samples = self._mono(frame)
        self._began_ns = self._began_ns or time.perf_counter_ns()
        self._done += len(samples) / rate
        due_ns = self._began_ns + round(1e9 * self._done)
        time.sleep(max(0, due_ns - time.perf_counter_ns()) / 1e9)
        return samples, rate, due_ns

    def close(self) -> None:
        self._container.close()


class PushedReader(SoundReader):
    """Blocks that another thread ``put``s as they come; ``gone``: what is wrong where none do."""

    def __init__(self, gone: str) -> None:
        self._gone = gone
        self._blocks: queue.SimpleQueue[tuple[np.ndarray, int, int]] = queue.SimpleQueue()

    def put(self, samples: np.ndarray, rate: int, ended_ns: int) -> None:
        """A block, as ``read`` gives it."""
        self._blocks.put((samples, rate, ended_ns))

    def read(self) -> tuple[np.ndarray, int, int] | None:
        try:
            return self._blocks.get(timeout=SILENCE_S)
        except queue.Empty:
            raise DeviceError(self._gone) from None


class MicrophoneReader(PushedReader):
    """A microphone by number or part of its name; None: the system's own."""

    def __init__(self, device: int | str | None = None) -> None:
        """Raises ConfigError without sounddevice, DeviceError where there is no such device."""
        super().__init__("the microphone gives nothing any more")
        need("sounddevice", "hear", "--sound microphone")
        try:
            import sounddevice
        except OSError as error:  # PortAudio itself is missing
            raise DeviceError(f"sound needs PortAudio: {error}") from error
        try:
            self._stream = sounddevice.InputStream(
                device=device, channels=1, dtype="float32", callback=self._heard
            )
            self._rate = round(self._stream.samplerate)
            self._stream.start()
        except (sounddevice.PortAudioError, ValueError) as error:
            raise DeviceError(f"no microphone {'' if device is None else device!r}: {error}") from (
                error
            )

    def _heard(self, block: np.ndarray, frames: int, times: object, status: object) -> None:
        """On PortAudio's thread: must not wait."""
        late_s = getattr(times, "currentTime", 0.0) - getattr(times, "inputBufferAdcTime", 0.0)
        began_ns = time.perf_counter_ns() - round(1e9 * max(0.0, late_s))
        self.put(block[:, 0].copy(), self._rate, began_ns + round(1e9 * frames / self._rate))

    def close(self) -> None:
        with contextlib.suppress(Exception):  # PortAudio's, of a device that has gone
            self._stream.close()


class Windows:
    """Cuts blocks of any rate into windows; where the rate changes, it begins anew."""

    def __init__(self, hearing: Hearing) -> None:
        self._hearing = hearing
        self._resampler: av.AudioResampler | None = None
        self._rate = 0  # of the blocks
        self._kept = np.zeros(0, np.float32)
        self._count = 0

    def cut(self, block: np.ndarray, rate: int, ended_ns: int) -> list[Sound]:
        """The windows that end with this block."""
        if rate != self._rate:
            self._rate, self._kept = rate, np.zeros(0, np.float32)
            self._resampler = av.AudioResampler(
                format="flt", layout="mono", rate=self._hearing.rate
            )
        self._kept = np.concatenate([self._kept, self._resampled(block)])
        found, wanted = [], self._hearing
        while len(self._kept) >= wanted.window:
            left = len(self._kept) - wanted.window
            captured_ns = ended_ns - round(1e9 * left / wanted.rate)
            samples = self._kept[: wanted.window].copy()
            samples.flags.writeable = False
            found.append(Sound(samples, wanted.rate, self._count, captured_ns))
            self._kept = self._kept[wanted.step :]
            self._count += 1
        return found

    def _resampled(self, block: np.ndarray) -> np.ndarray:
        if not len(block) or self._rate == self._hearing.rate:
            return block
        assert self._resampler is not None
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(block[None], np.float32), format="flt", layout="mono"
        )
        frame.sample_rate = self._rate
        return _joined(each.to_ndarray()[0] for each in self._resampler.resample(frame))


def _joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    """One after the other; there may be none."""
    return np.concatenate([np.zeros(0, np.float32), *parts])


class SoundSource:
    """Sound that is read by a daemon thread, from the first listener on until ``close``.

    A microphone that vanishes is told of, and tried again until it is back; a file that has ended
    begins anew where it is to ``loop``. Samples that are no numbers are told of, and are silence.
    """

    def __init__(
        self, open_reader: Callable[[], SoundReader], name: str, *, loop: bool = True
    ) -> None:
        """Opens it once, on this thread. Raises what that raises."""
        self.name, self.ended = name, False
        self._open_reader, self._loop = open_reader, loop
        self._reader: SoundReader | None = open_reader()
        self._listeners: list[tuple[Windows, Callable[[Sound], None]]] = []
        self._faults = Faults()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._main, name="sound", daemon=True)

    def listen(self, hearing: Hearing, hear: Callable[[Sound], None]) -> None:
        """Have ``hear`` called with each window, on the sound's thread: it must not wait. Of a
        sound that has ended, or was closed, nothing comes."""
        self._listeners = [*self._listeners, (Windows(hearing), hear)]
        if self._thread.ident is None and not self._stop.is_set():  # it begins once
            self._thread.start()

    @property
    def message(self) -> str:
        """What is wrong with it now; empty: nothing."""
        return self._faults.newest

    def close(self) -> None:
        """Read nothing more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2 * SILENCE_S)
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _main(self) -> None:
        lower_priority(NICE)
        attempts = 0
        while not self._stop.is_set():
            try:
                if self._reader is None:
                    self._reader = self._open_reader()
                block = self._reader.read()
            except HeimdallError as error:
                self._lost(str(error))
                self._stop.wait(RETRY_S[min(attempts, len(RETRY_S) - 1)])
                attempts += 1
                continue
            if attempts:
                log.warning("sound of %s is back", self.name)
                attempts = 0
            if block is None:
                self._reader.close()
                self._reader = None
                if not self._loop:
                    self.ended = True
                    return
                continue
            samples = self._checked(block[0])
            for windows, hear in self._listeners:
                for each in windows.cut(samples, *block[1:]):
                    hear(each)

    def _checked(self, samples: np.ndarray) -> np.ndarray:
        """In -1..1: what is no number would stay in filters and in states of networks."""
        if not np.isfinite(samples).all():
            self._faults.report(f"sound of {self.name}: samples that are no numbers are silence")
        sane: np.ndarray = np.clip(np.nan_to_num(samples), -1, 1)
        return sane

    def _lost(self, why: str) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._faults.report(f"sound of {self.name}: {why}")


def open_sound(name: str, *, loop: bool = True) -> SoundSource:
    """Sound by its name: ``microphone``, ``microphone:`` and a number or part of a name, or a file
    (WAV, FLAC, MP3, Opus, the sound of a video), of yours or bundled. Raises ConfigError for a file
    that is not there, DeviceError for what cannot be opened."""
    kind, _, rest = name.partition(":")
    if kind == MICROPHONE:
        device = int(rest) if rest.isdigit() else rest or None
        return SoundSource(lambda: MicrophoneReader(device), name, loop=loop)
    path = paths.bundled(name, "media")
    if not path.is_file():
        raise ConfigError(f"no sound {name!r}: give a file, or {MICROPHONE}")
    return SoundSource(lambda: FileReader(path), path.name, loop=loop)
