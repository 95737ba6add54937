"""What a user calls a source, and how it is opened: for runs, `heimdall pose` and `heimdall
calibrate` alike."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from heimdall.capture.camera_files import known_camera
from heimdall.capture.kinds import SOURCES, split_kind
from heimdall.capture.lens import Camera
from heimdall.capture.mcap_reader import MAGIC, McapReader
from heimdall.capture.readers import (
    NETPBM,
    Reader,
    open_file,
    open_stream,
    read_picture,
    without_password,
)
from heimdall.capture.series import is_pattern, open_folder, open_numbered
from heimdall.errors import ConfigError

PLAYLISTS = {".m3u8", ".m3u", ".mpd", ".sdp"}  # videos that are text


@dataclass(frozen=True)
class Opening:
    """A source that is to be opened: ``name`` as messages call it; ``open_reader`` may take its
    time, and raises DeviceError where it gives no picture; ``camera``: as calibrated, if so."""

    name: str
    open_reader: Callable[[], Reader]
    camera: Camera | None


def find_source(
    spec: str, *, size: tuple[int, int] | None = None, fps: float | None = None
) -> Opening:
    """A camera (its index), a file, a folder or series of pictures, a session that was kept, a URL,
    or another kind of source (``kind:rest``). Raises ConfigError for a path that is no readable
    file."""
    if not spec.strip():
        raise ConfigError("the source has no name; give a camera index, file, image or stream URL")
    spec = spec.removeprefix("file://")
    if kind := split_kind(spec):
        opener = partial(SOURCES.find(kind[0]), kind[1], size=size, fps=fps)
        name = f"{kind[0]} {without_password(kind[1])}".strip()
        return Opening(name, opener, known_camera(spec))
    if "://" in spec:
        name = f"stream {without_password(spec)}"
        return Opening(name, partial(open_stream, spec), known_camera(spec))
    path = Path(spec).expanduser()
    return Opening(*_by_path(path), known_camera(str(path)))


def camera_of(reader: Reader, known: Camera | None) -> Camera | None:
    """What took the last picture of ``reader``: as calibrated, else as a session has it."""
    kept = reader.camera if isinstance(reader, McapReader) else None
    if known is None or kept is None:
        return kept or known
    return replace(known, motion=kept.motion, device=kept.device)


def _by_path(path: Path) -> tuple[str, Callable[[], Reader]]:
    name = f"pictures {path.name}"
    if path.is_dir():
        return name, partial(open_folder, path, name, read_picture)
    if is_pattern(path) and not path.exists():
        return name, partial(open_numbered, path, name, read_picture)
    try:
        if path.is_fifo():  # opening it would wait for a writer, perhaps for ever
            raise ConfigError(f"source {path} is a pipe; give a video or image file")
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"cannot read source {path}: {reason}; check the path") from error
    if not head:
        raise ConfigError(f"source {path} is empty; give a video or image file")
    if head.startswith(MAGIC) or path.suffix.lower() == ".mcap":
        return f"session {path.name}", partial(McapReader, path)
    if _is_text(head) and path.suffix.lower() not in PLAYLISTS:
        raise ConfigError(f"source {path} is a text file; give a video or image file")
    return f"video {path.name}", partial(open_file, path)


def _is_text(head: bytes) -> bool:
    """libav has a demuxer that plays any text as a film of a terminal."""
    if re.match(NETPBM + rb"|YUV4MPEG2 ", head):  # their levels may be any letters
        return False
    control = set(head) & (set(range(32)) - set(b"\t\n\f\r\x1b"))
    return not control
