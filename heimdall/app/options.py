"""What a user may ask of one run, checked once: the options of ``heimdall run``, as a value."""

from __future__ import annotations

import math
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from heimdall.errors import ConfigError, unknown
from heimdall.vocabulary.enums import ChunkMode, Content, OverlayView

MAX_FPS = 1000.0
VIDEOS = (".mp4",)
PICTURES = (".png", ".jpg", ".jpeg")
MAX_SIDE = 16384  # the largest texture that common GPUs draw to
MAX_PORT = 65535


@dataclass(frozen=True)
class RunOptions:
    """Options of one run. None means: as the app declares, or Heimdall's own default.

    Raises ConfigError on a value outside its range, naming the option.
    """

    source: str | int | None = None  # camera index, file, stream URL or image; None: the app's clip
    fps: float | None = None  # target frame rate
    size: tuple[int, int] | None = None  # width, height in pixels of the picture drawn
    scheduler: str | None = None
    mode: str = ChunkMode.ELASTIC
    offload: bool = True  # may DNNs move between GPU and CPU
    content: str | None = None
    device: str | None = None  # OpenCL device (part of its name, or number) or provider
    headless: bool = False
    serve: tuple[str, int] | None = None  # host and port of the browser preview; 0: any free port
    frames: int | None = None  # stop after so many frames
    seconds: float | None = None  # stop after so much time
    record: Path | None = None
    screenshot: Path | None = None  # the last frame
    trace: Path | None = None
    gpu_cores: int | None = None  # cores of the software GPU
    overlay: str = OverlayView.PANEL
    full_screen: bool = False
    press: tuple[tuple[float, str], ...] = ()  # (seconds after warm-up, key): pressed by itself
    realtime: bool | None = None  # real-time software GPU; None: where permitted

    def __post_init__(self) -> None:
        if self.fps is not None and not 0 < self.fps <= MAX_FPS:
            raise ConfigError(f"--fps {self.fps:g}: must be above 0 and at most {MAX_FPS:g}")
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise ConfigError(f"--seconds {self.seconds:g}: must be above 0")
        if self.frames is not None and self.frames < 1:
            raise ConfigError(f"--frames {self.frames}: must be at least 1")
        if self.serve is not None and not (self.serve[0] and 0 <= self.serve[1] <= MAX_PORT):
            host, port = self.serve
            raise ConfigError(
                f"--serve {host}:{port}: give a host, and a port from 0 to {MAX_PORT}"
            )
        if self.gpu_cores is not None and self.gpu_cores < 1:
            raise ConfigError(f"--gpu-cores {self.gpu_cores}: must be at least 1")
        if self.size is not None and not all(1 <= side <= MAX_SIDE for side in self.size):
            width, height = self.size
            raise ConfigError(f"--size {width}x{height}: sides must be from 1 to {MAX_SIDE} pixels")
        if self.scheduler is not None:
            from heimdall.schedulers import SCHEDULERS  # here: `heimdall --help` needs none

            _one_of("scheduler", self.scheduler, tuple(SCHEDULERS))
        _one_of("mode", self.mode, ChunkMode.values())
        _one_of("overlay", self.overlay, OverlayView.values())
        if self.content is not None:
            _one_of("content", self.content, Content.values())
        for name, endings in (("record", VIDEOS), ("screenshot", PICTURES), ("trace", ())):
            check_writable(f"--{name}", getattr(self, name), endings)

    @property
    def windowless(self) -> bool:
        """Whether the run has no window: it was asked for none, or is shown in a browser."""
        return self.headless or self.serve is not None

    @property
    def scripted(self) -> bool:
        """Whether the app's script plays its user: nobody else can."""
        return self.headless and self.serve is None


def parse_size(text: str) -> tuple[int, int]:
    """``"1280x720"`` to ``(1280, 720)``; ConfigError when it is not WIDTHxHEIGHT."""
    match = re.fullmatch(r"([0-9]{1,6})[xX×]([0-9]{1,6})", text.strip())
    if match is None:
        raise ConfigError(f"size {text!r}: expected WIDTHxHEIGHT in pixels, such as 1280x720")
    return int(match[1]), int(match[2])


def parse_serve(text: str) -> tuple[str, int]:
    """``"8080"`` to ``("127.0.0.1", 8080)``, ``"0.0.0.0:8080"`` and ``"[::1]:8080"`` as they say;
    ConfigError when it is not [HOST:]PORT."""
    match = re.fullmatch(r"(?:(\[[0-9A-Fa-f:.%a-z]+\]|[^\s:/\[\]]+):)?([0-9]{1,5})", text.strip())
    if match is None or int(match[2]) > MAX_PORT:
        raise ConfigError(
            f"serve {text!r}: expected [HOST:]PORT, such as 8080 or 0.0.0.0:8080 (port 0: any free)"
        )
    return (match[1] or "127.0.0.1").strip("[]"), int(match[2])


def parse_source(text: str | None) -> str | int | None:
    """A camera's number as an int; a file, image or stream URL as it stands."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,3}", text) else text


def parse_press(text: str) -> tuple[float, str]:
    """``"2.5:f5"`` to ``(2.5, "f5")``; ConfigError when it is not SECONDS:KEY."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?):(\S+)", text.strip())
    if match is None:
        raise ConfigError(f"press {text!r}: expected SECONDS:KEY, such as 2.5:f5")
    return float(match[1]), match[2].lower()


def _one_of(name: str, value: str, valid: tuple[str, ...]) -> None:
    if value not in valid:
        raise ConfigError(unknown(name, value, valid))


def check_writable(option: str, path: Path | None, endings: tuple[str, ...] = ()) -> None:
    """Find out before a long run, not after it, that its result has nowhere to go; makes the
    folder. Raises ConfigError naming the option."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise ConfigError(f"{option} {path}: is a folder; give a file name")
        if endings and path.suffix.lower() not in endings:
            raise ConfigError(f"{option} {path}: the name must end in {' or '.join(endings)}")
        folder = path.absolute().parent
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            with path.open("ab"):
                pass
        else:
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"{option} {path}: cannot write there ({reason})") from error
