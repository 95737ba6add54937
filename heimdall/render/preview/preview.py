"""The preview as a run sees it: frames in, input out, and nothing that waits."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heimdall.capture.phone import PhonePictures, PhoneSound
from heimdall.render.encoder import PROMPT, Drawn, Encoder
from heimdall.render.events import InputEvent, Key
from heimdall.render.preview.address import Address, is_loopback, own_names
from heimdall.render.preview.inbox import Inbox
from heimdall.render.preview.journeys import Journey, Journeys
from heimdall.render.preview.jpegs import Jpegs
from heimdall.render.recorder import Copies
from heimdall.system import certificate
from heimdall.system.extras import need

if TYPE_CHECKING:
    from heimdall.analyzer.profiler import Progress
    from heimdall.render.panel import Status
    from heimdall.render.preview.video import Encoded, Video
    from heimdall.render.surface import Surface

log = logging.getLogger(__name__)

_FIGURES_S = 0.5  # between two figures for the page


@dataclass(frozen=True)
class PhoneOptions:
    """The page is a phone's screen: ``camera``, its pictures in the same way, the first one dark
    and of ``size`` (width, height). ``overlay``: it shows its camera itself, and frames
    are laid over that by their opacity. ``certificate``: a PEM file, else Heimdall's own.
    ``turn``: a relay, turn:USER:PASSWORD@HOST:PORT. ``sound``: its microphone is heard, too."""

    camera: bool
    size: tuple[int, int]
    overlay: bool = False
    certificate: Path | None = None
    turn: str | None = None
    sound: bool = False


class Preview:
    """Shows a run in a web page from its making until ``close``. For the main thread.

    ``title`` and ``keys`` (what each key does) are shown in the page. With ``phone`` it is served
    by HTTPS, and pictures go both ways by WebRTC. Raises ConfigError without aiohttp, or aiortc for
    a phone, and DeviceError where it cannot listen.
    """

    def __init__(
        self,
        address: Address,
        title: str,
        keys: Mapping[str, str],
        phone: PhoneOptions | None = None,
    ) -> None:
        need("aiohttp", "serve" if phone is None else "phone", "--serve")
        from heimdall.render.preview.server import Server  # aiohttp: only where it is needed

        self._inbox, self._copies = Inbox(), Copies()
        self.pictures: PhonePictures | None = None  # of a phone's camera
        self.sound: PhoneSound | None = None  # of its microphone
        self.journeys = Journeys()
        self._videos: dict[str, Video] = {}
        of_phone = {} if phone is None else self._prepare(address[0], phone)
        self._server = Server(address, title, keys, self._inbox, **of_phone)
        self._jpegs = Encoder("preview-encoder", Jpegs(), self._server.publish)
        self._encoders = {codec: self._encoder(video) for codec, video in self._videos.items()}
        self._is_phones = phone is not None
        self._told: Status | None = None
        self._told_s = 0.0
        if phone is not None:
            self._announce(of_phone["certificate"])
            return
        log.info("the picture is at %s", self._server.told)
        if not is_loopback(address[0]):
            log.warning(
                "other machines can reach the preview, and nothing is encrypted: who has its "
                "address sees the picture and presses keys"
            )

    @property
    def url(self) -> str:
        """The page's address; any client that has it may watch and press keys."""
        return self._server.url

    @property
    def errors(self) -> list[str]:
        """What has failed, each message once, and who was turned away."""
        failed = [error for encoder in self._encoders.values() for error in encoder.errors]
        return [*self._jpegs.errors, *failed, *self._server.errors]

    @property
    def summary(self) -> dict[str, Any] | None:
        """How pictures of a phone fared; None: there is no phone."""
        if not self._is_phones:
            return None
        overtaken = sum(encoder.overtaken for encoder in self._encoders.values())
        came = self.pictures
        unread, undecoded = (came.overtaken, came.undecoded) if came is not None else (0, 0)
        late = {"not_drawn": unread, "not_encoded": overtaken, "not_decoded": undecoded}
        return {**self.journeys.summary, **late}

    def progress(self, inner: Progress) -> Progress:
        """Progress that the page shows as well. Escape in the page ends the program as Ctrl-C
        does."""

        def tell(what: str, done: int, total: int) -> None:
            inner(what, done, total)
            self._server.progress(what, done / max(total, 1))
            if threading.current_thread() is threading.main_thread():
                for event in self.poll():
                    if isinstance(event, Key) and event.name == "escape":
                        raise KeyboardInterrupt

        return tell

    def frame(self, surface: Surface, captured_ns: int = 0) -> None:
        """A frame has been drawn that shows the camera's picture of ``captured_ns``: show it, if a
        viewer wants it. Best called after ``finish``."""
        wanted = self._server.wanted or bool(self._server.codecs)
        if wanted:
            self._copies.ask(surface, Drawn(time.perf_counter_ns(), captured_ns))
        # A software GPU has copied when asking returns; another one gets a frame's time for it.
        under_way = 1 if wanted and not surface.software else 0
        while (taken := self._copies.take(leave=under_way)) is not None:
            if self._server.wanted:
                self._jpegs.put(*taken)
            for codec in self._server.codecs:
                self._encoders[codec].put(*taken)

    def tell(self, status: Status) -> None:
        """The figures of now, for the page's charts; the same object again is no news."""
        now_s = time.perf_counter()
        if status is not self._told and now_s - self._told_s >= _FIGURES_S:
            self._told, self._told_s = status, now_s
            self._server.status(status)

    def poll(self) -> list[InputEvent]:
        """What the viewers did since the last call, as a window would tell it."""
        return self._inbox.take()

    def journeys_ended(self) -> list[Journey]:
        """Pictures of the phone that were shown since the last call."""
        return self.journeys.take() if self._is_phones else []

    def end(self) -> None:
        """No picture of a phone is waited for any more."""
        if self.pictures is not None:
            self.pictures.end()

    def close(self) -> None:
        """Tell the viewers that the run has ended, and end the threads. Call it while the surface
        is open; twice is allowed."""
        self.end()
        self._jpegs.close()
        for encoder in self._encoders.values():
            encoder.close()
        self._server.close()
        self._copies.release()

    # --- a phone ---------------------------------------------------------------------------------

    def _prepare(self, host: str, phone: PhoneOptions) -> dict[str, Any]:
        """What the server needs for phones."""
        need("aiortc", "phone", "--phone")
        from heimdall.render.preview.phone import Screens, parse_turn
        from heimdall.render.preview.video import CODECS, Video

        if phone.certificate is not None:
            shown = certificate.load(phone.certificate)
        else:
            shown = certificate.own(own_names(host))
        if phone.camera:
            self.pictures = PhonePictures(phone.size)
        if phone.sound:
            self.sound = PhoneSound()
        self._videos = {codec: Video(codec, phone.overlay) for codec in CODECS}
        turn = parse_turn(phone.turn) if phone.turn is not None else None
        return {
            "certificate": shown,
            "screens": Screens(self.pictures, self.sound, self.journeys, phone.overlay, turn),
            "want_key": lambda codec: self._videos[codec].want_key(),
            "allow": lambda codec, share: setattr(self._videos[codec], "share", share),
        }

    def _announce(self, shown: certificate.Certificate) -> None:
        """Where a phone finds the page: for people, and for what reads the address."""
        said = [self._server.told]
        if shown.own:
            said.append(
                "The browser warns of a certificate that nobody has signed: Heimdall made it. "
                f"Its fingerprint is\n{shown.fingerprint[:48]}\n{shown.fingerprint[48:]}"
            )
        code = _code(self._server.url) if sys.stderr.isatty() else ""
        print("\n".join([*said, code]).rstrip(), file=sys.stderr, flush=True)

    def _encoder(self, video: Video) -> Encoder[Encoded]:
        def send(made: Encoded) -> None:
            self._server.send(made, video.codec)

        return Encoder(f"preview-{video.codec}", video, send, nice=PROMPT)


def _code(url: str) -> str:
    """A QR code of blocks, for a terminal."""
    import io

    import segno

    drawn = io.StringIO()
    segno.make(url, error="l").terminal(drawn, compact=True)
    return drawn.getvalue()
