"""Bodies of requests: read and unpacked in steps, whatever comes."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heimdall.serve import bodies
from heimdall.serve.refusals import Reason, RefusedError

MOST = 200_000


def raw_deflate(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    "identity": lambda data: data,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    " deflate": raw_deflate,
}


def request(sent: bytes, encoding: str, piece: int, length: int | None = None) -> Any:
    async def pieces():
        for at in range(0, len(sent), piece):
            yield sent[at : at + piece]

    headers = {"Content-Encoding": encoding} if encoding else {}
    content = SimpleNamespace(iter_any=pieces)
    return SimpleNamespace(content_length=length, headers=headers, content=content)


def read(sent: bytes, encoding: str, piece: int = 65536, most: int = MOST) -> bytes:
    return bytes(asyncio.run(bodies.read(request(sent, encoding, piece), most)))


def refused(*given: Any, **more: Any) -> tuple[Reason, str]:
    with pytest.raises(RefusedError) as told:
        read(*given, **more)
    return told.value.reason, str(told.value)


@settings(max_examples=60, deadline=None)
@given(
    data=st.builds(lambda unit, times: unit * times, st.binary(max_size=300), st.integers(0, 600)),
    encoding=st.sampled_from(list(PACKED)),
    piece=st.integers(1, 70_000),
)
def test_what_was_sent_is_what_is_read(data, encoding, piece):
    sent = PACKED[encoding](data)
    assert read(sent, encoding, max(piece, len(sent) // 500 + 1)) == data


@settings(max_examples=100, deadline=None)
@given(sent=st.binary(max_size=500), encoding=st.sampled_from(["gzip", "deflate"]))
def test_noise_is_refused_or_is_something(sent, encoding):
    with contextlib.suppress(RefusedError):
        read(sent, encoding, 7)


def test_what_unpacks_to_too_much_takes_neither_memory_nor_the_loop():
    made = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    bomb = b"".join(made.compress(bytes(1 << 20)) for _ in range(256)) + made.flush()
    steps = 0

    async def count() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(0)

    async def both() -> None:
        counting = asyncio.ensure_future(count())
        with pytest.raises(RefusedError, match="may have 8388608 bytes") as told:
            await bodies.read(request(bomb, "gzip", len(bomb)), 8 << 20)
        assert told.value.reason is Reason.TOO_LARGE
        counting.cancel()

    tracemalloc.start()
    asyncio.run(both())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20
    assert steps > 100  # others had their turn after each of 128 steps


def test_too_much_is_refused_by_its_length_before_it_comes():
    with pytest.raises(RefusedError, match="may have 10 bytes"):
        asyncio.run(bodies.read(request(b"", "", 1, length=11), 10))
    assert refused(b"x" * 11, "", most=10)[0] is Reason.TOO_LARGE


def test_what_is_packed_otherwise_is_named():
    reason, text = refused(b"x", "br")
    assert reason is Reason.UNSUPPORTED
    assert "'br'" in text
    packed = gzip.compress(bytes(1000))
    assert "ends before" in refused(packed[:-4], "gzip")[1]
    assert "goes on" in refused(packed + b"more", "gzip")[1]
    assert "is no gzip" in refused(b"not packed at all", "gzip")[1]
