"""The page and its socket, by aiohttp on a thread of its own.

``/TOKEN/`` is the page, ``/TOKEN/socket`` a WebSocket: pictures and progress out, input and
receipts in. A client without the token gets nothing but one sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import TYPE_CHECKING

from aiohttp import WSCloseCode, WSMsgType, web

from heimdall.render.encoder import NICE, PROMPT
from heimdall.render.preview import address, protocol, replies
from heimdall.render.preview.address import Address
from heimdall.render.preview.door import Door
from heimdall.render.preview.inbox import Inbox
from heimdall.render.preview.jpegs import Picture
from heimdall.render.preview.viewer import STALLED_S, StalledError, Viewer
from heimdall.system.priority import lower_priority
from heimdall.system.token import VARIABLE, is_same, read_token

if TYPE_CHECKING:
    from heimdall.render.panel import Status
    from heimdall.render.preview.phone import Phones, Screens
    from heimdall.render.preview.video import Encoded
    from heimdall.system.certificate import Certificate

log = logging.getLogger(__name__)

MOST_VIEWERS = 4
_MOST_CONNECTIONS = 32  # a viewer's socket, and what its page loads
ENDED, STALLED = 4000, 4001  # codes of closing that the page understands; others are standard
_CLOSING_S = 1.0  # for a page to answer that its socket is closed
_END_S = 10.0  # for all pages and their connections to be closed
_HEARTBEAT_S = 15.0
_SCRIPTS = ("page.js", "touch.js", "content.js", "xr.js", "figures.js", "save.js", "phone.js")
_FILES = {"": "text/html", "page.css": "text/css", **dict.fromkeys(_SCRIPTS, "text/javascript")}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_REFUSED = {
    "gave_way": "that were silent gave way to new ones",
    "full": "found all places taken",
    "no_handle": "for want of handles",
}
_OF_PHONES = (
    protocol.Clock
    | protocol.Sensed
    | protocol.Surfaces
    | protocol.Lit
    | protocol.Seen
    | protocol.Line
)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Serves from its making until ``close``. Raises DeviceError where it cannot listen, and
    ConfigError where HEIMDALL_TOKEN is no token.

    ``title`` and ``keys`` are for the page; what viewers do arrives in ``inbox``. ``wanted`` tells
    whether a picture drawn now would be sent to a viewer. ``url`` holds the token: the
    environment's, or one of this server's own. Its methods are for any thread.
    """

    def __init__(
        self,
        place: Address,
        title: str,
        keys: Mapping[str, str],
        inbox: Inbox,
        certificate: Certificate | None = None,
        screens: Screens | None = None,
        want_key: Callable[[str], object] = lambda codec: None,
        allow: Callable[[str, float], object] = lambda codec, share: None,
    ) -> None:
        given = read_token()
        self._socket = address.listen(place)
        self._host = place[0]
        self._inbox = inbox
        self._hello = replies.hello(title, keys, screens.hello if screens else None)
        self._progress = ""
        self._token = given or secrets.token_urlsafe(18)
        self._tls = certificate.context if certificate else None
        origin = address.origin((place[0], self._socket.getsockname()[1]), secure=bool(certificate))
        self.url = f"{origin}/{self._token}/"
        # What may be printed: a token of somebody's own is theirs to know.
        self.told = self.url if given is None else f"{origin}/${VARIABLE}/"
        self.wanted = False
        self.codecs: frozenset[str] = frozenset()  # kinds of video that are wanted
        self._phones: Phones | None = None
        if screens is not None:
            from heimdall.render.preview.phone import Phones  # aiortc: only where it is needed

            self._phones = Phones(screens, want_key, allow, self._note_wishes)
        self._longest = protocol.LONGEST_OFFER if screens else protocol.LONGEST
        self._viewers: dict[Viewer, web.WebSocketResponse] = {}
        self._size: tuple[int, int] | None = None
        self._files = _read_files()
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        self._door = Door(_MOST_CONNECTIONS)
        self._thread = threading.Thread(target=self._run, name="preview-server", daemon=True)
        self._thread.start()

    def publish(self, picture: Picture) -> None:
        """Offer a picture to every viewer."""
        self._call(self._publish, picture)

    def send(self, encoded: Encoded, codec: str) -> None:
        """A frame of a video, for every page that takes such."""
        self._call(self._send, encoded, codec)

    def progress(self, what: str, share: float) -> None:
        """Tell how far loading is."""
        self._call(self._tell, replies.progress(what, share))

    def status(self, status: Status) -> None:
        """Tell how the run fares."""
        if self._viewers:
            self._call(lambda: self._tell_all(replies.status(status)))

    @property
    def errors(self) -> list[str]:
        """How many connections were not let in, or ended for new ones; nothing of none."""
        closed = self._door.closed
        refused = [f"{closed[why]} {words}" for why, words in _REFUSED.items() if closed[why]]
        return [f"preview: connections turned away: {', '.join(refused)}"] if refused else []

    def close(self) -> None:
        """Tell the viewers that the run has ended, and end the thread."""
        self._call(self._ending.set)
        self._thread.join(_END_S)
        if self._thread.is_alive():
            log.warning("the preview did not end within %g s: it is left behind", _END_S)

    def _call(self, function: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended: there is no viewer to tell
            self._loop.call_soon_threadsafe(function, *arguments)

    # --- below, everything runs in the loop --------------------------------------------------

    def _run(self) -> None:
        lower_priority(NICE if self._phones is None else PROMPT)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:
            log.exception("the preview has ended")
        finally:
            self.wanted = False
            self._socket.close()
            self._loop.close()

    async def _serve(self) -> None:
        application = web.Application(middlewares=[self._guard], client_max_size=1024)
        application.router.add_get("/{token}", self._to_page)
        application.router.add_get("/{token}/socket", self._serve_viewer)
        application.router.add_get("/{token}/{name:.*}", self._file)
        # Malformed requests are the sender's business: no traceback on this side.
        runner = web.AppRunner(
            application, access_log=None, logger=_quiet(), shutdown_timeout=_CLOSING_S
        )
        await runner.setup()
        assert runner.server is not None
        async with self._door.open(runner.server, self._socket, self._tls):
            await self._ending.wait()
        await asyncio.gather(
            *(self._dismiss(each, ENDED, "the run has ended") for each in self._viewers.values())
        )
        await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Let in requests with the token that call this machine by its own name."""
        try:
            with self._door.answering(request):
                self._admit(request)
                response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(_HEADERS)
            raise
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _admit(self, request: web.Request) -> None:
        if not address.is_own_host(request.headers.get("Host", ""), self._host):
            raise web.HTTPForbidden(text="Open the preview by this machine's address or name.\n")
        given = request.match_info.get("token", "")
        if not is_same(given, self._token):
            raise web.HTTPForbidden(
                text="This needs the whole address that Heimdall printed, with the token in it.\n"
            )

    async def _to_page(self, request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"/{self._token}/")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in self._files:
            raise web.HTTPNotFound(text="There is no such page.\n")
        if name == "" and len(self._viewers) >= MOST_VIEWERS:
            raise web.HTTPServiceUnavailable(text=f"{_full()}\n")
        return web.Response(text=self._files[name], content_type=_FILES[name], charset="utf-8")

    async def _serve_viewer(self, request: web.Request) -> web.StreamResponse:
        if not address.is_same_origin(
            request.headers.get("Origin"), request.headers.get("Host", "")
        ):
            raise web.HTTPForbidden(text="Only the preview's own page may connect.\n")
        socket = web.WebSocketResponse(
            max_msg_size=self._longest,
            heartbeat=_HEARTBEAT_S,
            compress=False,
            timeout=_CLOSING_S,
        )
        await socket.prepare(request)
        if len(self._viewers) >= MOST_VIEWERS:
            await self._dismiss(socket, WSCloseCode.TRY_AGAIN_LATER, _full())
            return socket
        viewer = Viewer(socket.send_bytes, self._note_wishes)
        self._viewers[viewer] = socket
        try:
            await self._attend(viewer, socket, request.transport)
        finally:
            del self._viewers[viewer]
            if self._phones is not None:
                await self._phones.leave(viewer)
            self._inbox.put(viewer.hands.release(), always=True)
            self._note_wishes()
        return socket

    async def _attend(
        self,
        viewer: Viewer,
        socket: web.WebSocketResponse,
        transport: asyncio.Transport | None,
    ) -> None:
        """Feed a viewer and listen to it, until one of both ends."""
        tasks = [
            asyncio.ensure_future(self._feed(viewer, socket)),
            asyncio.ensure_future(self._listen(viewer, socket)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            tasks[1].cancel()  # closing reads the socket, which one task may do at a time
            await asyncio.wait(tasks[1:])
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.result()
        except StalledError:
            reason = f"no picture was shown for {STALLED_S:g} s"
            await self._dismiss(socket, STALLED, reason)
            if transport:  # what it has not taken by now it never will
                transport.abort()
        except protocol.MessageError as error:
            log.debug("a viewer is refused: %s", error)
            await self._dismiss(socket, WSCloseCode.POLICY_VIOLATION, str(error))
        except ConnectionError:
            pass  # it has gone
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _feed(self, viewer: Viewer, socket: web.WebSocketResponse) -> None:
        await socket.send_str(self._hello)
        if self._progress and self._size is None:
            await socket.send_str(self._progress)
        self._note_wishes()
        await viewer.feed()

    async def _listen(self, viewer: Viewer, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            if message.type is WSMsgType.ERROR:  # too long, or no WebSocket frame: it is closed
                return
            if message.type is not WSMsgType.TEXT:
                raise protocol.MessageError("the message is not a text")
            viewer.count_message()
            said = protocol.read(message.data)
            if isinstance(said, protocol.Offered):
                await self._negotiate(viewer, socket, said)
            elif (answer := self._take(viewer, said)) is not None:
                await socket.send_str(answer)

    async def _negotiate(
        self, viewer: Viewer, socket: web.WebSocketResponse, offered: protocol.Offered
    ) -> None:
        if self._phones is None:
            raise protocol.MessageError("this run shows itself to no phone")

        def hear(text: str) -> None:
            """Words by the channel, which may be anything: the page goes when they are wrong."""
            if viewer not in self._viewers or socket.closed or viewer.refused:
                return
            try:
                viewer.count_message()
                if len(text) > protocol.LONGEST:
                    raise protocol.MessageError("the message is too long")
                answer = self._take(viewer, protocol.read(text))
                if answer is not None and self._phones is not None:
                    self._phones.say(viewer, answer)
            except protocol.MessageError as error:
                viewer.refused = True
                leaving = self._dismiss(socket, WSCloseCode.POLICY_VIOLATION, str(error))
                asyncio.ensure_future(leaving).add_done_callback(_forgive)

        for answer in await self._phones.offered(viewer, offered, hear):
            await socket.send_str(answer)

    def _take(self, viewer: Viewer, message: protocol.Message) -> str | None:
        """Heed what a page says; an answer, if that is due."""
        if isinstance(message, protocol.Shown):
            viewer.shown(message.number, message.took_ms / 1000)
            return None
        if isinstance(message, protocol.Watching):
            viewer.watch(message.on)
            return None
        if self._phones is not None:
            if isinstance(message, _OF_PHONES):
                return self._phones.take(viewer, message)
            if not self._phones.drives(viewer):
                return None
        if not self._inbox.put(viewer.hands.take(message, self._size)):
            raise protocol.MessageError("more input than the app can take")
        return None

    async def _dismiss(self, socket: web.WebSocketResponse, code: int, reason: str) -> None:
        """Close a socket, whether or not its other end is still there."""
        with contextlib.suppress(Exception):
            close = socket.close(code=code, message=reason.encode()[:123])
            await asyncio.wait_for(close, 2 * _CLOSING_S)

    def _publish(self, picture: Picture) -> None:
        self._size = picture.size
        for viewer in self._viewers:
            viewer.offer(picture)

    def _send(self, encoded: Encoded, codec: str) -> None:
        self._size = encoded.size
        if self._phones is not None:
            self._phones.send(encoded, codec)

    def _tell(self, progress: str) -> None:
        self._progress = progress
        self._tell_all(progress)

    def _tell_all(self, text: str) -> None:
        for socket in self._viewers.values():
            sending = asyncio.ensure_future(socket.send_str(text))
            sending.add_done_callback(_forgive)

    def _note_wishes(self) -> None:
        self.wanted = any(viewer.wants for viewer in self._viewers)
        self.codecs = self._phones.codecs if self._phones is not None else frozenset()


def _full() -> str:
    return f"{MOST_VIEWERS} viewers are watching already: close one of their pages"


def _read_files() -> dict[str, str]:
    page = resources.files(__package__) / "page"
    names = {name: name or "index.html" for name in _FILES}
    return {name: (page / file).read_text(encoding="utf-8") for name, file in names.items()}


def _quiet() -> logging.Logger:
    """A log of what clients do wrong, for debugging."""
    logger = logging.Logger(f"{__name__}.http")
    logger.addHandler(logging.NullHandler())
    return logger


def _forgive(sending: asyncio.Future[None]) -> None:
    """A viewer that has gone meanwhile needs no news."""
    if not sending.cancelled():
        sending.exception()
