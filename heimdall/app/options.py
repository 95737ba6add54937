"""What a user may ask of one run, checked once: the options of ``heimdall run``, as a value.

Errors name the argument; the command line turns that into its own flag.
"""

from __future__ import annotations

import errno
import math
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from heimdall.coordinator.coordinator import admission_limit
from heimdall.errors import ArgumentError, ConfigError, unknown
from heimdall.system.classes import is_file
from heimdall.system.paths import bundled
from heimdall.system.policy import parse_policy
from heimdall.vocabulary.enums import (
    ChunkMode,
    Content,
    Luminance,
    Name,
    OverlayView,
    PhoneView,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heimdall.capture import Source
    from heimdall.engine import Engine
    from heimdall.engine.remote import RemoteEngine
    from heimdall.schedulers import Scheduler

MAX_FPS = 1000.0
VIDEOS = (".mp4",)
SESSIONS = (".mcap",)
PICTURES = (".png", ".jpg", ".jpeg")
MAX_SIDE = 16384  # the largest texture that common GPUs draw to
MAX_PORT = 65535
PHONE = "phone"  # the source that is a phone's camera
# The same each time, for browsers remember by it what their users allowed.
PHONE_PORT = 8443
_NAMES: dict[str, type[Name]] = {
    "mode": ChunkMode,
    "overlay": OverlayView,
    "content": Content,
    "luminance": Luminance,
    "phone": PhoneView,
}
_OUTPUTS = {"record": VIDEOS, "screenshot": PICTURES, "trace": (), "capture": SESSIONS}


@dataclass(frozen=True)
class RunOptions:
    """Options of one run. None means: as the app declares, or Heimdall's own default.

    Where a name is accepted, so is what it names: a Source, a Scheduler or its class, an Engine.
    A run closes its source at the end, even one that the caller opened; an Engine stays open.

    Raises ConfigError on a value outside its range, naming the argument.
    """

    source: str | int | Path | Source | None = None  # camera index, file, stream URL or image
    # For DNNs that hear: "microphone", "microphone:NAME", "phone" (that of ``phone``), or a file.
    sound: str | None = None
    fps: float | None = None  # target frame rate
    size: tuple[int, int] | None = None  # width, height in pixels of the picture drawn
    scheduler: str | type[Scheduler] | Scheduler | None = None  # name, file.py[:Class], or one
    mode: str = ChunkMode.ELASTIC  # or "static": one chunk of the static partition a gap
    offload: bool = True  # may DNNs move between GPU and CPU
    content: str | None = None  # "aging" or "paper": how a changing scene counts
    luminance: str | None = None  # "cells" or "pixels": of what its change is summed
    admission: str | None = None  # "replace", or of requests "queue(n)": n of a model wait at most
    device: str | Engine | None = None  # OpenCL device (part of its name, or number), provider
    headless: bool = False  # draw without a window
    serve: tuple[str, int] | None = None  # host and port of the browser preview; 0: any free port
    # A phone's browser is the screen, and the camera without another source: "video" (or True), or
    # "overlay": it shows its own camera, and over it what the app draws.
    phone: str | bool | None = None
    certificate: Path | None = None  # of its page's HTTPS: a PEM file with the key
    turn: str | None = None  # a relay for phones elsewhere: turn:USER:PASSWORD@HOST:PORT
    frames: int | None = None  # stop after so many frames
    seconds: float | None = None  # stop after so much time
    record: Path | None = None  # a video (.mp4)
    screenshot: Path | None = None  # the last frame
    virtual_camera: str | None = None  # be a camera for video calls: "any", or a device's name
    trace: Path | None = None  # a timeline for Perfetto
    capture: Path | None = None  # keeps the session (.mcap), which may be a source later
    lossless: bool = False  # its pictures
    inputs: bool = True  # of a kept session as source: what its user did is done again
    gpu_cores: int | None = None  # cores of the software GPU
    cpu_workers: int | None = None  # DNNs that the CPU runs at once, each on a core (default 1)
    remote: str | RemoteEngine | None = None  # a server DNNs may run on too: grpc://HOST:PORT
    overlay: str = OverlayView.PANEL  # or "timeline", "world", "small", "off"
    full_screen: bool = False  # fill the screen
    press: tuple[tuple[float, str], ...] = ()  # (seconds after warm-up, key): pressed by itself
    realtime: bool | None = None  # real-time software GPU; None: where permitted
    gpu_policy: str | None = None  # of the software GPU's threads: rr, rr-N, fifo, normal
    build_first: bool = False  # all networks for the GPU before the first frame
    # What requests run on: "gpu", "cpu", further devices as in ``device``, engines. Default: both.
    processors: Sequence[str | Engine] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.phone, bool) or (self.phone is None and self.source == PHONE):
            wanted = self.phone is True or self.source == PHONE
            object.__setattr__(self, "phone", PhoneView.VIDEO if wanted else None)
        if self.phone == PhoneView.OVERLAY and not self.by_phone:
            problem = "its own camera is what a phone shows with phone='overlay': leave source out"
            raise ArgumentError(problem, argument="source", value=str(self.source))
        if self.phone and self.serve is None:
            object.__setattr__(self, "serve", ("0.0.0.0", PHONE_PORT))
        for name in ("certificate", "turn"):
            if getattr(self, name) is not None and not self.phone:
                value = str(getattr(self, name)) if name == "certificate" else "..."
                raise ArgumentError("goes with phone", argument=name, value=value)
        if self.sound == PHONE and not self.phone:
            raise ArgumentError("goes with phone", argument="sound", value=PHONE)
        for name in ("record", "screenshot", "trace", "capture", "certificate"):
            if isinstance(path := getattr(self, name), str):  # as people type them
                object.__setattr__(self, name, Path(path))
        check_number("fps", self.fps, above=0, most=MAX_FPS)
        check_number("seconds", self.seconds, above=0)
        check_number("frames", self.frames, least=1)
        check_number("gpu_cores", self.gpu_cores, least=1)
        check_number("cpu_workers", self.cpu_workers, least=1)
        if isinstance(self.cpu_workers, float):
            raise ArgumentError(
                "must be a whole number", argument="cpu_workers", value=self.cpu_workers
            )
        if self.serve is not None and not (self.serve[0] and 0 <= self.serve[1] <= MAX_PORT):
            problem = f"give a host, and a port from 0 to {MAX_PORT}"
            raise ArgumentError(problem, argument="serve", value=self.serve)
        if self.size is not None:
            check_size(self.size)
        for _, key in self.press:
            check_key(key)
        if self.scheduler is not None:
            check_scheduler(self.scheduler)
        for name, kind in _NAMES.items():
            value = getattr(self, name)
            if value != getattr(RunOptions, name) and value not in kind.values():
                raise ConfigError(unknown(name, value, kind.values()))
        if isinstance(self.remote, str):
            from heimdall.engine.remote import parse_address

            parse_address(self.remote)
        policy = self.gpu_policy
        if policy is not None and self.realtime not in (None, parse_policy(policy).realtime):
            problem = "is the opposite of realtime: leave one of them out"
            raise ArgumentError(problem, argument="gpu_policy", value=policy)
        if self.admission is not None:
            admission_limit(self.admission)
        if self.capture is not None and str(self.source) == str(self.capture):
            problem = "is the source: what is read would be overwritten"
            raise ArgumentError(problem, argument="capture", value=self.capture)
        if self.lossless and self.capture is None:
            raise ArgumentError("goes with capture", argument="lossless", value=True)
        for name, endings in _OUTPUTS.items():
            check_output(name, getattr(self, name), endings)

    def make_room(self) -> None:
        """Make the folders of all outputs, as the run begins. Raises ArgumentError where one has
        nowhere to go."""
        for name, endings in _OUTPUTS.items():
            check_writable(name, getattr(self, name), endings)

    @property
    def windowless(self) -> bool:
        """Whether the run has no window: it was asked for none, or is shown in a browser."""
        return self.headless or self.serve is not None

    @property
    def by_phone(self) -> bool:
        """Whether pictures come from the camera of the phone that shows them."""
        return bool(self.phone) and self.source in (None, PHONE)

    @property
    def scripted(self) -> bool:
        """True if the app's script plays its user, as there is no other input."""
        return self.headless and self.serve is None


class RunArguments(TypedDict, total=False):
    """The options of a run as keyword arguments: ``run(app, headless=True, seconds=5)``."""

    source: str | int | Path | Source | None
    sound: str | None
    fps: float | None
    size: tuple[int, int] | None
    scheduler: str | type[Scheduler] | Scheduler | None
    mode: str
    offload: bool
    content: str | None
    luminance: str | None
    admission: str | None
    device: str | Engine | None
    headless: bool
    serve: tuple[str, int] | None
    phone: str | bool | None
    certificate: Path | str | None
    turn: str | None
    frames: int | None
    seconds: float | None
    record: Path | str | None
    screenshot: Path | str | None
    virtual_camera: str | None
    trace: Path | str | None
    capture: Path | str | None
    lossless: bool
    inputs: bool
    gpu_cores: int | None
    cpu_workers: int | None
    remote: str | RemoteEngine | None
    overlay: str
    full_screen: bool
    press: tuple[tuple[float, str], ...]
    realtime: bool | None
    gpu_policy: str | None
    build_first: bool
    processors: Sequence[str | Engine] | None


def check_number(
    argument: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> None:
    """Raise ArgumentError unless ``value`` is None or a finite number in that range."""
    if value is None:
        return
    limits = [f"above {above:g}"] if above is not None else []
    limits += [f"at least {least:g}"] if least is not None else []
    limits += [f"at most {most:g}"] if most is not None else []
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        problem = f"must be a finite number {' and '.join(limits)}"
    elif (
        math.isnan(value)
        or (above is not None and value <= above)
        or (least is not None and value < least)
        or (most is not None and value > most)
    ):
        problem = f"must be {' and '.join(limits)}"
    else:
        return
    raise ArgumentError(problem, argument=argument, value=value)


def check_size(size: object) -> None:
    """Raise ArgumentError unless it is (width, height), in pixels that can be drawn."""
    sides = size if isinstance(size, tuple | list) else ()
    if len(sides) != 2 or not all(isinstance(side, int) for side in sides):
        problem = "must be (width, height) in pixels"
    elif not all(1 <= side <= MAX_SIDE for side in sides):
        problem = f"sides must be from 1 to {MAX_SIDE} pixels"
    else:
        return
    raise ArgumentError(problem, argument="size", value=size)


def check_scheduler(scheduler: str | type[Scheduler] | Scheduler, where: str = "") -> None:
    """Raise ConfigError, beginning with ``where``, unless it is the name of a scheduler, or one;
    AppError where its file is at fault."""
    from heimdall.schedulers import SCHEDULERS, name_of  # here: `heimdall --help` needs none

    try:
        named = isinstance(scheduler, str) and not is_file(scheduler)
        if named and (scheduler not in SCHEDULERS or not where):
            SCHEDULERS.find(str(scheduler))
        name_of(scheduler)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}" if where else str(error)) from error


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
    """A camera's number as an int; a file, image or stream URL as it stands, and where there is no
    such file, a bundled one of that name."""
    if text is None or re.fullmatch(r"[0-9]{1,3}", text):
        return None if text is None else int(text)
    ours = bundled(text, "media")
    return str(ours) if ours.is_absolute() else text


def parse_press(text: str) -> tuple[float, str]:
    """``"2.5:f5"`` to ``(2.5, "f5")``; ConfigError when it is not SECONDS:KEY, or no key."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?):(\S+)", text.strip())
    if match is None:
        raise ConfigError(f"press {text!r}: expected SECONDS:KEY, such as 2.5:f5")
    key = match[2].lower()
    check_key(key)
    return float(match[1]), key


def check_key(name: str) -> None:
    """Raise ConfigError unless a key is called that."""
    from heimdall.render.events import KEYS  # here: `heimdall --help` needs none

    if len(name) != 1 and name not in KEYS:
        raise ConfigError(f"{unknown('key', name, KEYS)}, or the character that it prints")


def check_output(argument: str, path: Path | None, endings: tuple[str, ...] = ()) -> None:
    """Find out from a name that nothing can be written there; makes nothing. Raises
    ArgumentError."""
    if path is None:
        return
    try:
        problem = _unfit(path, endings)
    except OSError as error:
        problem = f"cannot write there ({error.strerror or error})"
    if problem:
        raise ArgumentError(problem, argument=argument, value=path)


def _unfit(path: Path, endings: tuple[str, ...]) -> str:
    """Why nothing can be written there; "" where that is not known yet."""
    if path.is_dir():
        return "is a folder; give a file name"
    if endings and path.suffix.lower() not in endings:
        return f"the name must end in {' or '.join(endings)}"
    there = path
    while not there.exists():
        there = there.absolute().parent
    if there is not path and not there.is_dir():
        return f"cannot write there ({os.strerror(errno.ENOTDIR)})"
    return "" if os.access(there, os.W_OK) else f"cannot write there ({os.strerror(errno.EACCES)})"


def check_writable(argument: str, path: Path | None, endings: tuple[str, ...] = ()) -> None:
    """Find out before a long run, not after it, that its result has nowhere to go; makes the
    folder. Raises ArgumentError."""
    check_output(argument, path, endings)
    if path is None:
        return
    try:
        folder = path.absolute().parent
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            with path.open("ab"):
                pass
        else:
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        problem = f"cannot write there ({error.strerror or error})"
        raise ArgumentError(problem, argument=argument, value=path) from error
