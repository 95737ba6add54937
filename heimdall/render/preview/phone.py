"""The phone that drives a run, and the pages that watch it, each by WebRTC."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median_high

from heimdall.capture.phone import PhonePictures, PhoneSound
from heimdall.errors import ConfigError
from heimdall.render.preview import replies
from heimdall.render.preview.journeys import Journeys
from heimdall.render.preview.peer import Peer, Turn, ice_servers
from heimdall.render.preview.protocol import (
    Clock,
    Line,
    Lit,
    Message,
    Offered,
    Seen,
    Sensed,
    Surfaces,
)
from heimdall.render.preview.video import Encoded, allowed
from heimdall.render.preview.viewer import Viewer

_TAKEN = "another phone drives already: close its page, or watch here"
GONE = "the phone is away; its page connects again by itself"
_FIGURES_S = 0.5  # between two figures for the page


@dataclass
class Screens:
    """What phones have to do with a run: ``pictures`` of the camera and ``sound`` of the microphone
    (None: the run has another source), ``journeys`` of what they show, whether that is an
    ``overlay``, and a relay."""

    pictures: PhonePictures | None
    sound: PhoneSound | None = None
    journeys: Journeys = field(default_factory=Journeys)
    overlay: bool = False
    turn: Turn | None = None

    @property
    def hello(self) -> dict[str, object]:
        """For every page: no secret is in it."""
        taken = {"camera": self.pictures is not None, "sound": self.sound is not None}
        return {**taken, "overlay": self.overlay}


class Phones:
    """Every page's peer. ``want_key(codec)``: somebody needs a frame that needs none before it;
    ``allow(codec, share)``: which share of its bits lines can take. Event loop only."""

    def __init__(
        self,
        screens: Screens,
        want_key: Callable[[str], object],
        allow: Callable[[str, float], object],
        changed: Callable[[], object],
    ) -> None:
        self._screens, self._want_key = screens, want_key
        self._allow, self._changed = allow, changed
        self._peers: dict[Viewer, Peer] = {}
        self._shares: dict[Viewer, float] = {}  # of a video's bits that each page's line can take
        self._driver: Viewer | None = None
        self._pages: dict[Viewer, str] = {}
        self._told_s = 0.0

    @property
    def codecs(self) -> frozenset[str]:
        """The kinds of video that pages take now."""
        return frozenset(peer.codec for peer in self._peers.values() if peer.connected)

    def drives(self, viewer: Viewer) -> bool:
        """Whether what the page's user does is done."""
        return viewer is self._driver

    async def offered(
        self, viewer: Viewer, message: Offered, hear: Callable[[str], object]
    ) -> list[str]:
        """The messages that answer an offer. Raises MessageError for what is none."""
        driver, turn = self._driver, self._screens.turn
        if message.drives:
            if driver not in (None, viewer) and self._pages.get(driver) != message.page:
                return [replies.role(False, _TAKEN)]
            # At once: what its user does meanwhile counts, and no other page comes between.
            self._driver, self._pages[viewer] = viewer, message.page
            if driver not in (None, viewer):  # the same page by a new line
                self._pages.pop(driver, None)
                await self._drop(driver)
            if turn is not None and not message.relayed and self.drives(viewer):
                return [replies.role(True, ice=ice_servers(turn))]
        await self._drop(viewer)
        if message.drives and not self.drives(viewer):  # that page by a newer line still
            return [replies.role(False, _TAKEN)]
        peer = Peer(hear, self._want_key, lambda: self._heed(viewer), turn)
        self._peers[viewer], self._pages[viewer] = peer, message.page
        screens = self._screens
        taken = (screens.pictures, screens.sound) if message.drives else ()
        try:
            sdp = await peer.answer(message.sdp, screens.journeys, *taken)
        except BaseException:
            await self.leave(viewer)
            raise
        return [replies.role(self.drives(viewer)), replies.answer(sdp)]

    async def leave(self, viewer: Viewer) -> None:
        """A page has gone."""
        self._pages.pop(viewer, None)
        if viewer is self._driver:
            self._driver = None
            if self._screens.pictures is not None:
                self._screens.pictures.absent = GONE
            if self._screens.sound is not None:
                self._screens.sound.driven = False
        await self._drop(viewer)

    async def _drop(self, viewer: Viewer) -> None:
        """End a page's connection; it may have another."""
        peer = self._peers.pop(viewer, None)
        self._shares.pop(viewer, None)
        viewer.by_video = False
        if peer is not None:
            self._share_bits(peer.codec)
            await peer.close()
            self._changed()

    def take(self, viewer: Viewer, message: Message) -> str | None:
        """What a page says of pictures and clocks; an answer, if that is due."""
        peer = self._peers.get(viewer)
        if isinstance(message, Clock):
            if peer is not None and message.epoch_ms is not None:
                peer.compare(message.epoch_ms)
            return replies.clock(message.sent_ms, time.perf_counter_ns() / 1e6)
        if peer is None:
            return None
        if isinstance(message, Sensed) and peer.intake is not None:
            peer.intake.sensed(message)
        elif isinstance(message, Surfaces) and peer.intake is not None:
            peer.intake.surfaces(message)
        elif isinstance(message, Lit) and peer.intake is not None:
            peer.intake.lit(message)
        elif isinstance(message, Line):
            self._shares[viewer] = allowed(self._shares.get(viewer, 1.0), message.lost)
            self._share_bits(peer.codec)
        elif isinstance(message, Seen) and self.drives(viewer):
            self._seen(peer, message)
        return None

    def say(self, viewer: Viewer, text: str) -> None:
        """Words for one page by its channel, which may get lost."""
        peer = self._peers.get(viewer)
        if peer is not None:
            peer.say(text)

    def _share_bits(self, codec: str) -> None:
        """One video goes to all pages that take its kind. The driver's line says how many bits it
        has; where none drives, half of the pages can take as many."""
        if not codec:
            return  # it was never agreed on
        lines = {
            viewer: self._shares.get(viewer, 1.0)
            for viewer, peer in self._peers.items()
            if peer.codec == codec and peer.connected
        }
        if not lines:
            share = 1.0
        elif self._driver in lines:
            share = lines[self._driver]
        else:
            share = median_high(lines.values())
        self._allow(codec, share)

    def send(self, encoded: Encoded, codec: str) -> None:
        """A frame for all who take this kind of video."""
        for peer in self._peers.values():
            if peer.codec == codec:
                peer.send(encoded)

    def _seen(self, peer: Peer, message: Seen) -> None:
        encoded, journeys = peer.shown(message.rtp), self._screens.journeys
        if encoded is None:
            return
        drawn = encoded.drawn
        at_ns = {"drawn": drawn.at_ns, "encoded": encoded.encoded_ns}
        journeys.note(drawn.captured_ns, **at_ns, shown=round(message.at_ms * 1e6))
        now_s = time.perf_counter()
        if now_s - self._told_s > _FIGURES_S:
            self._told_s = now_s
            peer.say(replies.figures(journeys.latest_ms))

    def _heed(self, viewer: Viewer) -> None:
        peer = self._peers.get(viewer)
        viewer.by_video = peer is not None and peer.connected
        if peer is not None:
            self._share_bits(peer.codec)
        if self.drives(viewer) and self._screens.sound is not None:
            self._screens.sound.driven = viewer.by_video
        self._changed()


def parse_turn(text: str) -> Turn:
    """``turn:USER:PASSWORD@HOST:PORT`` (or turns:). Raises ConfigError for anything else, without
    the password."""
    match = re.fullmatch(r"(turns?):([^:@/\s]+):([^\s]+)@([^@\s/]+)", text)
    if match is None:
        raise ConfigError("turn: expected turn:USER:PASSWORD@HOST:PORT")
    scheme, user, password, host = match.groups()
    return Turn(f"{scheme}:{host}", user, password)
