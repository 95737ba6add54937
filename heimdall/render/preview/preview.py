"""The preview as a run sees it: frames in, input out, and nothing that waits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from heimdall.render.events import InputEvent, Key
from heimdall.render.preview.address import Address, is_loopback
from heimdall.render.preview.encoder import Encoder
from heimdall.render.preview.inbox import Inbox
from heimdall.render.recorder import Copies
from heimdall.system.extras import need

if TYPE_CHECKING:
    from heimdall.analyzer.profiler import Progress
    from heimdall.render.surface import Surface

log = logging.getLogger(__name__)


class Preview:
    """Shows a run in a web page from its making until ``close``. For the main thread.

    ``title`` and ``keys`` (what each key does) are shown in the page. Raises ConfigError without
    aiohttp, and DeviceError where it cannot listen.
    """

    def __init__(self, address: Address, title: str, keys: Mapping[str, str]) -> None:
        need("aiohttp", "serve", "--serve")
        from heimdall.render.preview.server import Server  # aiohttp: only where it is needed

        self._inbox = Inbox()
        self._server = Server(address, title, keys, self._inbox)
        self._encoder = Encoder(self._server.publish)
        self._copies = Copies()
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
        return [*self._encoder.errors, *self._server.errors]

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

    def frame(self, surface: Surface) -> None:
        """A frame has been drawn: show it, if a viewer wants it. Best called after ``finish``."""
        if wanted := self._server.wanted:
            self._copies.ask(surface, time.monotonic())
        # A software GPU has copied when asking returns; another one gets a frame's time for it.
        under_way = 1 if wanted and not surface.software else 0
        while (taken := self._copies.take(leave=under_way)) is not None:
            self._encoder.put(*taken)

    def poll(self) -> list[InputEvent]:
        """What the viewers did since the last call, as a window would tell it."""
        return self._inbox.take()

    def close(self) -> None:
        """Tell the viewers that the run has ended, and end the threads. Call it while the surface
        is open; twice is allowed."""
        self._encoder.close()
        self._server.close()
        self._copies.release()
