"""Bodies of requests by HTTP: read, and unpacked step by step, until there is too much."""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from aiohttp import web

from heimdall.serve.refusals import Reason, RefusedError, wrong

_STEP = 64 << 10  # bytes that are unpacked at a time: a fraction of a millisecond


class _Unpacker(Protocol):
    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """What this piece of the body holds, in steps."""

    def end(self) -> None:
        """Refuse a body that ends too soon."""


async def read(request: web.Request, most: int) -> bytearray:
    """The body, unpacked. Refused as soon as it has more than ``most`` bytes, packed or not; the
    event loop is never kept for longer than a step takes."""
    if (request.content_length or 0) > most:
        raise too_large(most)
    unpacker = _unpacker(request.headers.get("Content-Encoding", ""))
    parts: deque[bytes] = deque()
    came = size = 0
    async for piece in request.content.iter_any():
        came += len(piece)
        for part in unpacker.unpack(piece):
            parts.append(part)
            size += len(part)
            if max(size, came) > most:
                raise too_large(most)
            await asyncio.sleep(0)
    unpacker.end()
    return await _joined(parts, size)


async def _joined(parts: deque[bytes], size: int) -> bytearray:
    """All in one, in steps too: to copy 64 MiB at once takes as long as drawing a frame."""
    found, at = bytearray(size), 0
    while parts:
        part = parts.popleft()
        found[at : at + len(part)] = part
        at += len(part)
        await asyncio.sleep(0)
    return found


def too_large(most: int) -> RefusedError:
    """A body of more than ``most`` bytes."""
    return RefusedError(
        Reason.TOO_LARGE, f"a request may have {most} bytes: use shared memory for more"
    )


def _unpacker(encoding: str) -> _Unpacker:
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _Plain()
    if name in ("gzip", "deflate"):
        return _Packed(name)
    raise RefusedError(
        Reason.UNSUPPORTED,
        f"Content-Encoding {encoding[:40]!r}: send it by gzip, deflate, or as it is",
    )


class _Plain:
    def unpack(self, packed: bytes) -> Iterator[bytes]:
        yield packed

    def end(self) -> None:
        pass


class _Packed:
    def __init__(self, name: str) -> None:
        self._name = name
        self._inner: zlib._Decompress | None = None

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        if self._inner is None:
            self._inner = zlib.decompressobj(self._window(packed))
        more = True
        while more and not self._inner.eof:
            try:
                part = self._inner.decompress(packed, _STEP)
            except zlib.error as error:
                raise wrong(f"the body is no {self._name}: {error}") from error
            packed = self._inner.unconsumed_tail
            more = bool(packed) or len(part) == _STEP  # it may hold back what was too much
            yield part
        if self._inner.unused_data or (packed and self._inner.eof):
            raise wrong(f"the body goes on behind the end of its {self._name}")

    def end(self) -> None:
        if self._inner is not None and not self._inner.eof:
            raise wrong(f"the body ends before its {self._name} does")

    def _window(self, packed: bytes) -> int:
        """As zlib has it: of gzip, of deflate, and of deflate without a header, which some send."""
        if self._name == "gzip":
            return 16 + zlib.MAX_WBITS
        return zlib.MAX_WBITS if packed[0] & 0x0F == zlib.DEFLATED else -zlib.MAX_WBITS
