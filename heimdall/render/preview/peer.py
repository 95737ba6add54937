"""One page by WebRTC: the frames to it, and a camera, a microphone and a channel from it if it
drives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import av
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCSessionDescription,
)

from heimdall.capture.phone import PhonePictures, PhoneSound
from heimdall.render.preview import inside, replies
from heimdall.render.preview.intake import Intake, SoundIntake
from heimdall.render.preview.journeys import Journeys
from heimdall.render.preview.protocol import MessageError
from heimdall.render.preview.sender_clock import SenderClock
from heimdall.render.preview.video import CODECS, TICKS, Encoded

log = logging.getLogger(__name__)

_ANSWER_S = 10.0  # for an answer to an offer
_CLOSE_S = 2.0
_MOST_WAITING = 3  # frames on their way to one page; then all are left out up to a key frame
_SENT = 64  # frames that a page may still say it has shown
_WORD = 1 << 32


@dataclass(frozen=True)
class Turn:
    """A relay for phones that reach this machine in no other way. ``url``: turn:HOST:PORT."""

    url: str
    username: str
    password: str


class Peer:
    """A connection with one page. ``hear(text)`` is called with what comes by the data channel,
    "" for what is no text, ``want_key(codec)`` when the page needs a frame that needs none before
    it, ``changed()`` when ``connected`` has changed.

    All of it belongs to the event loop of the server's thread. Errors of what a page says are
    MessageErrors.
    """

    def __init__(
        self,
        hear: Callable[[str], object],
        want_key: Callable[[str], object],
        changed: Callable[[], object],
        turn: Turn | None = None,
    ) -> None:
        servers = [RTCIceServer([turn.url], turn.username, turn.password)] if turn else []
        self._connection = RTCPeerConnection(RTCConfiguration(servers))
        self._hear, self._want_key = hear, want_key
        self._changed = changed
        self._channel: RTCDataChannel | None = None
        self._outlet: _Outlet | None = None
        self._taking: list[asyncio.Future[None]] = []
        self._clocks: list[SenderClock] = []
        self.intake: Intake | None = None
        self.codec = ""  # of its video, once that is agreed on
        self.connected = False
        self._connection.on("connectionstatechange", self._state_changed)
        self._connection.on("datachannel", self._opened)

    async def answer(
        self,
        sdp: str,
        journeys: Journeys,
        pictures: PhonePictures | None = None,
        sound: PhoneSound | None = None,
    ) -> str:
        """Take an offer; the answer to it. Where the ``pictures`` of its camera go, and the
        ``sound`` of its microphone; None: they are not taken. Raises MessageError for what is no
        offer."""
        try:
            making = self._answer(sdp, journeys, pictures, sound)
            return await asyncio.wait_for(making, _ANSWER_S)
        except MessageError:
            raise
        except TimeoutError:
            raise MessageError(f"no answer could be made within {_ANSWER_S:g} s") from None
        except Exception as error:  # its parser raises whatever comes
            log.debug("an offer cannot be used", exc_info=True)
            raise MessageError(f"the offer cannot be used: {error!r:.200}") from None

    async def _answer(
        self,
        sdp: str,
        journeys: Journeys,
        pictures: PhonePictures | None,
        sound: PhoneSound | None,
    ) -> str:
        connection = self._connection
        if "a=fingerprint:" not in sdp:
            raise MessageError("the offer must have a fingerprint, by which its end is known")
        await connection.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        offered = connection.getTransceivers()
        videos = [each for each in offered if each.kind == "video"]
        sounds = [each for each in offered if each.kind == "audio"]
        if len(videos) != 1 or len(sounds) > 1:
            raise MessageError("the offer must have one video, and at most one sound")
        video = videos[0]
        for heard in sounds:
            heard.direction = "inactive" if sound is None else "recvonly"
        video.direction = "sendonly" if pictures is None else "sendrecv"
        answer = await connection.createAnswer()
        self.codec = _agreed(answer.sdp)
        self._outlet = _Outlet(
            lambda: inside.rtp_time(video.sender), self._ask_key, self._tell_drawn
        )
        video.sender.replaceTrack(self._outlet)
        inside.on_key_wanted(video.sender, self._ask_key)
        track: MediaStreamTrack | None = video.receiver.track
        if pictures is not None and track is not None:
            self.intake = Intake(video.receiver, self.codec, pictures, journeys)
            self._take(self.intake, track)
        for heard in sounds:
            if sound is not None:
                self._take(SoundIntake(heard.receiver, sound), heard.receiver.track)
        await connection.setLocalDescription(answer)
        return str(connection.localDescription.sdp)

    def _take(self, intake: Intake | SoundIntake, track: MediaStreamTrack) -> None:
        self._clocks.append(intake.clock)
        self._taking.append(asyncio.ensure_future(intake.run(track)))

    def compare(self, ahead_ms: float) -> None:
        """The page's clock, in ms since 1970, is that far ahead of ours."""
        for clock in self._clocks:
            clock.compare(ahead_ms)

    def send(self, encoded: Encoded) -> None:
        """A frame for the page, if it takes this kind of video."""
        if self._outlet is not None and self.connected:
            self._outlet.put(encoded)

    def say(self, text: str) -> None:
        """Words for the page, which may get lost."""
        channel = self._channel
        if channel is not None and channel.readyState == "open" and not channel.bufferedAmount:
            with contextlib.suppress(Exception):  # it is closing
                channel.send(text)

    def shown(self, rtp: int) -> Encoded | None:
        """The frame that has this RTP time; None: unknown, or forgotten."""
        return self._outlet.known(rtp) if self._outlet is not None else None

    async def close(self) -> None:
        """End it, whatever state it is in."""
        self.connected = False
        for taking in self._taking:
            taking.cancel()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self._connection.close(), _CLOSE_S)

    def _ask_key(self) -> None:
        self._want_key(self.codec)

    def _tell_drawn(self, rtp: int, encoded: Encoded) -> None:
        if self.intake is not None and self.intake.tracked:
            self.say(replies.drawn(rtp, encoded.drawn.captured_ns / 1e6))

    def _state_changed(self) -> None:
        self.connected = self._connection.connectionState == "connected"
        if self.connected:
            self._ask_key()
        self._changed()

    def _opened(self, channel: RTCDataChannel) -> None:
        if self._channel is not None:
            channel.close()  # one is enough
            return
        self._channel = channel
        channel.on("message", self._heard)

    def _heard(self, said: str | bytes) -> None:
        self._hear(said if isinstance(said, str) else "")


class _Outlet(MediaStreamTrack):
    """The frames of one page as aiortc asks for them, encoded already."""

    kind = "video"

    def __init__(
        self,
        rtp_time: Callable[[], int | None],
        ask_key: Callable[[], object],
        sent: Callable[[int, Encoded], object],
    ) -> None:
        super().__init__()
        self._rtp_time, self._ask_key, self._tell_sent = rtp_time, ask_key, sent
        self._frames: asyncio.Queue[Encoded] = asyncio.Queue()
        self._sent: dict[int, Encoded] = {}  # by RTP time
        self._last: Encoded | None = None
        self._whole = False  # what the page has got so far can be decoded

    def put(self, encoded: Encoded) -> None:
        if encoded.key:
            self._whole = True
        elif self._whole and self._frames.qsize() >= _MOST_WAITING:
            self._whole = False
            self._ask_key()
        if self._whole:
            self._frames.put_nowait(encoded)

    async def recv(self) -> av.Packet:
        self._remember()
        encoded = self._last = await self._frames.get()
        packet = av.Packet(encoded.data)
        packet.pts, packet.time_base = encoded.ticks, Fraction(1, TICKS)
        return packet

    def known(self, rtp: int) -> Encoded | None:
        return self._sent.get(rtp)

    def _remember(self) -> None:
        """What was given out last has been sent."""
        rtp = self._rtp_time()
        if self._last is None or rtp is None:
            return
        self._sent[rtp % _WORD] = self._last
        self._tell_sent(rtp % _WORD, self._last)
        while len(self._sent) > _SENT:
            del self._sent[next(iter(self._sent))]


def _agreed(answer: str) -> str:
    """The kind of video that an answer takes: the first of those it lists, by the offer's order.
    Raises MessageError where it is none of ours."""
    listed = re.search(r"^m=video \d+ \S+ (\d+)", answer, re.MULTILINE)
    named = listed and re.search(rf"^a=rtpmap:{listed[1]} (\w+)/90000", answer, re.MULTILINE)
    if not named or named[1] not in CODECS:
        raise MessageError(f"the offer must have one of {', '.join(CODECS)} first")
    return named[1]


def ice_servers(turn: Turn | None) -> Sequence[dict[str, str]]:
    """For the page: what it may reach this machine by besides its own network."""
    if turn is None:
        return []
    return [{"urls": turn.url, "username": turn.username, "credential": turn.password}]
