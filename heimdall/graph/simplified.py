"""Simplified models are kept as files: an app's five networks are then read in 0.1 s, not 0.3.

A file's name changes with the model, the shapes asked for, and everything that simplifies. A
damaged file is noticed and replaced; those not used for longest go when there are too many.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

from heimdall.errors import ConfigError, ModelError
from heimdall.graph import onnx_file, weights
from heimdall.graph.external_data import external_files
from heimdall.system import paths

log = logging.getLogger(__name__)

KEPT_BYTES = 4 << 30  # both networks of a language model of 360 million parameters
_FORMAT = 4
_BLOCK_BYTES = 1 << 20
_EXTERNAL = b"location"  # a key of each entry that names another file
_DIGEST_BYTES = 32  # of the rest, at the start of a file
_HEAD = struct.Struct("<BI")  # then the opset and the bytes of the model; the weights are last


class Simplified(NamedTuple):
    """A model and its opset; ``weights`` holds what is detached from it (see ``weights``), each
    an array that cannot be written."""

    model: onnx.ModelProto
    opset: int
    weights: Mapping[str, np.ndarray]


class Scanned(NamedTuple):
    """What must be known of a model file before it is parsed, or instead of that."""

    digest: hashlib._Hash  # SHA-256 of its content; ``copy`` it to add to it
    external: bool  # weights may be in other files


def scan(path: Path) -> Scanned:
    """Go through a model file, a block at a time: into memory that is new, as a whole file needs
    it, reading takes five times as long. Raises OSError."""
    digest, external, block = hashlib.sha256(), False, bytearray(_BLOCK_BYTES)
    overlap = len(_EXTERNAL) - 1  # the word may lie across two blocks
    with path.open("rb", buffering=0) as opened:
        while count := opened.readinto(memoryview(block)[overlap:]):
            digest.update(memoryview(block)[overlap : overlap + count])
            external = external or block.find(_EXTERNAL, 0, overlap + count) >= 0
            block[:overlap] = block[count : overlap + count]
    return Scanned(digest, external)


def simplified_model(
    path: Path, scanned: Scanned, shapes: onnx_file.Inputs | Sequence[int] | None
) -> Simplified:
    """What ``onnx_file.read_model`` returns for a file that ``scan`` went through, kept for the
    next time. Raises ModelError as that does."""
    raw = path.read_bytes() if scanned.external else b""
    others = _digest_of_others(path, raw) if scanned.external else b""
    file = None if others is None else _file(scanned, others, shapes)
    kept = _read(file) if file else None
    if kept is not None:
        return kept
    raw = raw or path.read_bytes()
    if hashlib.sha256(raw).digest() != scanned.digest.digest():
        raise ModelError(f"model {path} has changed while it was read")
    model, opset = onnx_file.read_model(path, raw, shapes)
    if others and others != _digest_of_others(path, raw):
        raise ModelError(f"weights of model {path} have changed while they were read")
    found = Simplified(model, opset, weights.detach(model))
    if file:
        _write(file, found)
    return found


def _digest_of_others(path: Path, raw: bytes) -> bytes | None:
    """Of the files in which a model's weights are; None where not all can be read, as reading the
    model then says."""
    digest = hashlib.sha256()
    try:
        for other in external_files(path, raw):
            digest.update(scan(other).digest.digest())
    except (OSError, ModelError):
        return None
    return digest.digest()


def _file(
    scanned: Scanned, others: bytes, shapes: onnx_file.Inputs | Sequence[int] | None
) -> Path | None:
    digest = scanned.digest.copy()
    digest.update(others + f"\0{shapes!r}\0{version()}".encode())
    try:
        return paths.cache_dir() / "graphs" / f"{digest.hexdigest()[:32]}.onnx"
    except ConfigError as error:
        log.debug("simplified models are not kept: %s", error)
        return None


@cache
def version() -> str:
    """Changes with all that takes part in simplifying."""
    import onnxruntime

    versions = f"{onnx.__version__} {onnxruntime.__version__} {_FORMAT}"
    digest = hashlib.sha256(versions.encode())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _read(file: Path) -> Simplified | None:
    try:
        with file.open("rb") as opened:
            digest, head = opened.read(_DIGEST_BYTES), opened.read(_HEAD.size)
            opset, size = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
            model = opened.read(size)
            floats = np.fromfile(opened, np.float32)
            whole = os.fstat(opened.fileno()).st_size
    except OSError:
        return None
    read = sum(map(len, (digest, head, model))) + floats.nbytes
    if whole != read or _digest(head, model, floats.data) != digest:
        log.warning("simplified model %s is damaged: making it again", file)
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # used now
    bare = onnx.ModelProto.FromString(model)
    return Simplified(bare, opset, weights.arrays(bare, floats))


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _write(file: Path, found: Simplified) -> None:
    """Best effort: without the file the model is simplified again next time."""
    content = found.model.SerializeToString()
    floats = (array.reshape(-1).data for array in found.weights.values())
    parts = [_HEAD.pack(found.opset, len(content)), content, *floats]
    try:
        paths.replace_file(file, [_digest(*parts), *parts])
        _forget_oldest(file.parent)
    except OSError as error:
        paths.say_unsaved(file, error, "the model is simplified again next time")


def _forget_oldest(folder: Path) -> None:
    found = ((item.stat(), item) for item in folder.glob("*.onnx"))
    files = sorted(found, key=lambda entry: entry[0].st_mtime_ns)
    held = sum(stat.st_size for stat, _ in files)
    for stat, item in files:
        if held <= KEPT_BYTES:
            break
        item.unlink(missing_ok=True)
        held -= stat.st_size
