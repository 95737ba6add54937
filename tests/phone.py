"""A phone for tests, without a browser: a page's words by a socket, and WebRTC by aiortc."""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from collections.abc import Awaitable, Callable
from fractions import Fraction
from typing import Any, TypeVar

import aiohttp
import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from av import AudioFrame, VideoFrame

WAIT_S = 60.0
VOICE_RATE, BLOCK = 48_000, 960  # samples a second, and of a block

T = TypeVar("T")


class Lens(MediaStreamTrack):
    """Sees ``level``, a grey, in a picture of ``size``; 30 a second."""

    kind = "video"

    def __init__(self, size: tuple[int, int] = (160, 120)) -> None:
        super().__init__()
        self.size, self.level = size, 0
        self._began_s, self._count = time.monotonic(), 0

    async def recv(self) -> VideoFrame:
        self._count += 1
        await asyncio.sleep(max(0.0, self._began_s + self._count / 30 - time.monotonic()))
        picture = np.full((self.size[1], self.size[0], 3), self.level, np.uint8)
        frame = VideoFrame.from_ndarray(picture, format="bgr24")
        frame.pts, frame.time_base = self._count * 3000, Fraction(1, 90000)
        return frame


class Voice(MediaStreamTrack):
    """Hums at ``hertz`` and ``volume``, in blocks of 20 ms as a browser sends them."""

    kind = "audio"

    def __init__(self, hertz: float = 400.0, volume: float = 0.5) -> None:
        super().__init__()
        self._hertz, self._volume = hertz, volume
        self._began_s, self._count = time.monotonic(), 0

    async def recv(self) -> AudioFrame:
        await asyncio.sleep(max(0.0, self._began_s + self._count * 0.02 - time.monotonic()))
        times = (np.arange(BLOCK) + self._count * BLOCK) / VOICE_RATE
        samples = self._volume * np.sin(2 * np.pi * self._hertz * times)
        both = (32767 * samples.repeat(2)[None]).astype(np.int16)
        frame = AudioFrame.from_ndarray(both, "s16", "stereo")
        frame.sample_rate, frame.time_base = VOICE_RATE, Fraction(1, VOICE_RATE)
        frame.pts = self._count * BLOCK
        self._count += 1
        return frame


class Phone:
    """One page. ``frames`` are pictures that it was shown, RGB uint8."""

    def __init__(self, socket: Any, name: str) -> None:
        self.socket, self.name = socket, name
        self.said: list[dict[str, Any]] = []
        self.frames: list[np.ndarray] = []
        self.closed: int | None = None
        self.lens = Lens()
        self.voice: Voice | None = None  # None: its user refuses
        self.channel: RTCDataChannel | None = None
        self._connection: RTCPeerConnection | None = None
        self._tasks = [asyncio.ensure_future(self._listen())]

    async def offer(self, *, drives: bool = True) -> str:
        """What a page offers, for ``connect`` or to be spoilt."""
        connection = self._connection = RTCPeerConnection(RTCConfiguration([]))
        self.channel = connection.createDataChannel("words", ordered=False, maxRetransmits=0)
        self.channel.on("message", lambda said: self.said.append(json.loads(said)))
        if drives:
            connection.addTransceiver(self.lens, "sendrecv")
        else:
            connection.addTransceiver("video", "recvonly")
        if self.voice is not None:
            connection.addTransceiver(self.voice, "sendonly")

        def shown(track: MediaStreamTrack) -> None:
            self._tasks.append(asyncio.ensure_future(self._watch(track)))

        connection.on("track", shown)
        await connection.setLocalDescription(await connection.createOffer())
        return str(connection.localDescription.sdp)

    async def connect(self, *, drives: bool = True) -> dict[str, Any]:
        """Offer, and take the answer; which role it has."""
        sdp = await self.offer(drives=drives)
        await self.say(type="offer", sdp=sdp, page=self.name, drives=drives)
        role = await self.hear("role")
        if not role["why"]:
            await self.take((await self.hear("answer"))["sdp"])
        return role

    async def take(self, sdp: str) -> None:
        assert self._connection is not None
        await self._connection.setRemoteDescription(RTCSessionDescription(sdp, "answer"))
        await self.until(lambda: self._connection.connectionState == "connected")
        await self.until(lambda: self.channel.readyState == "open")

    async def say(self, **message: Any) -> None:
        await self.socket.send_json(message)

    def tell(self, **message: Any) -> None:
        """By the channel."""
        assert self.channel is not None
        self.channel.send(json.dumps(message))

    async def hear(self, kind: str) -> dict[str, Any]:
        """The first message of that kind that was not heard yet."""

        def found() -> bool:
            return any(each["type"] == kind for each in self.said)

        await self.until(found)
        message = next(each for each in self.said if each["type"] == kind)
        self.said.remove(message)
        return message

    async def until(self, condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + WAIT_S
        while not (value := condition()):
            assert time.monotonic() < end, (self.said[-3:], self.closed)
            await asyncio.sleep(0.01)
        return value

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.socket.close()

    async def _listen(self) -> None:
        async for message in self.socket:
            if message.type is aiohttp.WSMsgType.TEXT:
                self.said.append(json.loads(message.data))
        self.closed = self.socket.close_code or 0

    async def _watch(self, track: MediaStreamTrack) -> None:
        while True:
            frame = await track.recv()
            assert isinstance(frame, VideoFrame)
            self.frames.append(frame.to_ndarray(format="rgb24"))


def with_phones(
    url: str, body: Callable[[Callable[..., Awaitable[Phone]]], Awaitable[T]], **client: Any
) -> T:
    """Runs ``body(open_)``, where ``await open_(name)`` is a phone with the page open."""

    async def run() -> T:
        phones: weakref.WeakSet[Phone] = weakref.WeakSet()  # one that has gone is forgotten
        secure = aiohttp.TCPConnector(ssl=False)  # nobody has signed the certificate
        async with aiohttp.ClientSession(connector=secure, **client) as session:

            async def open_(name: str = "a page") -> Phone:
                socket = await session.ws_connect(f"{url}socket", max_msg_size=0)
                phone = Phone(socket, name)
                phones.add(phone)
                assert (await phone.hear("hello"))["phone"] is not None
                return phone

            try:
                return await asyncio.wait_for(body(open_), 2 * WAIT_S)
            finally:
                await asyncio.gather(*(phone.close() for phone in list(phones)))

    return asyncio.run(run())
