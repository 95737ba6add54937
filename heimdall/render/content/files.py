"""Gets at a glTF file's bytes: the .glb container, data URIs, and files beside it.

A model may name files in its own folder only: one from elsewhere must not read what else lies on
the machine.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from heimdall.errors import ModelError
from heimdall.render.content.schema import Document, parse, pick

MOST_BYTES = 256 << 20  # of one file
_MAGIC, _JSON, _BINARY = b"glTF", 0x4E4F534A, 0x004E4942


class Files:
    """One model's JSON and the bytes that it names."""

    def __init__(self, folder: Path, content: bytes):
        self._folder = folder.resolve()
        text, self._binary = _opened(content) if content[:4] == _MAGIC else (content, None)
        self.document: Document = parse(text)
        self._buffers: dict[int, bytes] = {}

    def view(self, index: int) -> memoryview:
        """The bytes of a buffer view."""
        view = pick(self.document.bufferViews, index, "bufferViews")
        content = self._buffer(view.buffer)
        end = view.byteOffset + view.byteLength
        if end > len(content):
            raise ModelError(
                f"bufferViews[{index}] ends at byte {end} of buffer {view.buffer}, which has "
                f"{len(content)}: the file is cut off or broken"
            )
        return memoryview(content)[view.byteOffset : end]

    def beside(self, uri: str, what: str) -> bytes:
        """The bytes of a data URI or of a file in the model's folder."""
        if uri.startswith("data:"):
            return _inline(uri, what)
        name = unquote(uri)
        if "://" in name or name.startswith(("/", "\\", "file:")) or Path(name).is_absolute():
            raise ModelError(f"{what} names {name!r}: only files in the model's folder are read")
        try:
            place = (self._folder / name).resolve()
            inside, there = place.is_relative_to(self._folder), place.is_file()
        except (OSError, ValueError) as error:  # no file can have such a name
            raise ModelError(f"{what} names {name[:80]!r}, which is no file's name") from error
        if not inside:
            raise ModelError(f"{what} names {name!r}, outside of the model's folder: refused")
        if not there:
            raise ModelError(f"{what} names {name!r}, which is not in {self._folder}")
        with naming(place):
            return read_bytes(place)

    def _buffer(self, index: int) -> bytes:
        if index not in self._buffers:
            self._buffers[index] = self._load(index)
        return self._buffers[index]

    def _load(self, index: int) -> bytes:
        buffer = pick(self.document.buffers, index, "buffers")
        if buffer.uri is not None:
            content = self.beside(buffer.uri, f"buffers[{index}]")
        elif index == 0 and self._binary is not None:
            content = self._binary
        else:
            raise ModelError(f"buffers[{index}] has no data: neither a uri nor a .glb's own chunk")
        if len(content) < buffer.byteLength:
            raise ModelError(
                f"buffers[{index}] should have {buffer.byteLength} bytes and has {len(content)}: "
                "the file is cut off or broken"
            )
        return content


def read_bytes(path: Path) -> bytes:
    """A whole file; ModelError where it cannot be read, or is too large to be a model."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ModelError(f"it has {size >> 20} MiB; {MOST_BYTES >> 20} are read at most")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}") from error


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Within this block a ModelError gets the file's name put before it."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{path.name}: {error}") from error
    except (MemoryError, RecursionError) as error:
        raise ModelError(f"{path.name}: too large to be read") from error


def _opened(data: bytes) -> tuple[bytes, bytes | None]:
    """A .glb's JSON, and its binary chunk if it has one."""
    if len(data) < 20:
        raise ModelError(f"a .glb of {len(data)} bytes: the file is cut off")
    _, version, length = struct.unpack_from("<4sII", data)
    if version != 2:
        raise ModelError(f".glb of version {version}: only 2 is drawn; convert the file")
    if length > len(data):
        raise ModelError(f".glb should have {length} bytes and has {len(data)}: it is cut off")
    chunks: dict[int, bytes] = {}
    at = 12
    while at + 8 <= length:
        size, kind = struct.unpack_from("<II", data, at)
        if at + 8 + size > length:
            raise ModelError(f".glb: a chunk of {size} bytes goes beyond the file's end")
        chunks.setdefault(kind, data[at + 8 : at + 8 + size])
        at += 8 + size
    if _JSON not in chunks:
        raise ModelError(".glb has no JSON chunk: the file is broken")
    return chunks[_JSON], chunks.get(_BINARY)


def _inline(uri: str, what: str) -> bytes:
    head, _, content = uri.partition(",")
    if not head.endswith(";base64"):
        return unquote(content).encode("latin-1", "replace")
    try:
        return base64.b64decode(content, validate=False)
    except (binascii.Error, ValueError) as error:
        raise ModelError(f"{what}: its data URI is not valid base64 ({error})") from error
