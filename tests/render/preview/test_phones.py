"""A phone as camera and screen, over the network that it would use."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import socket
import ssl
import threading
import time
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import cv2
import numpy as np
import psutil
import pytest

from heimdall.capture import Camera
from heimdall.capture.sound import Sound, SoundSource
from heimdall.errors import ConfigError
from heimdall.render.events import Pointer
from heimdall.render.preview import PhoneOptions, Preview
from heimdall.render.preview import preview as preview_module
from heimdall.render.preview.phone import GONE, Phones, Screens, parse_turn
from heimdall.render.preview.protocol import Line, MessageError, Offered
from heimdall.render.preview.video import H264
from heimdall.render.preview.viewer import Viewer
from heimdall.system.certificate import CONFIG
from heimdall.vocabulary.hearing import Hearing
from tests.phone import Lens, Phone, Voice, with_phones

PLACE = ("127.0.0.1", 0)
SIZE = (160, 120)
OPTIONS = PhoneOptions(camera=True, size=SIZE)


@pytest.fixture(scope="module", autouse=True)
def _own_folder(tmp_path_factory):
    before = os.environ.get(CONFIG)
    os.environ[CONFIG] = str(tmp_path_factory.mktemp("config"))
    yield
    if before is None:
        del os.environ[CONFIG]
    else:
        os.environ[CONFIG] = before


@pytest.fixture
def preview():
    opened = Preview(PLACE, "Test", {"s": "say so"}, OPTIONS)
    opened.pictures.read()  # the dark one, before there is a phone
    yield opened
    opened.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("preview")]


async def drawn(preview, surface, phone, until, captured_ns: int = 0):
    """Frames of red, until the phone has seen what it is to see."""
    end = time.monotonic() + 60
    while not (value := until()):
        assert time.monotonic() < end, (phone.said[-3:], preview.errors)
        surface.framebuffer.clear(1, 0, 0)
        preview.frame(surface, captured_ns)
        await asyncio.sleep(1 / 60)
    return value


def read(preview) -> np.ndarray:
    return preview.pictures.read()


async def reading(preview) -> np.ndarray:
    return await asyncio.to_thread(read, preview)


# --- pictures both ways ---------------------------------------------------------------------------


def test_the_camera_comes_in_and_frames_go_out(preview, headless):
    async def body(open_):
        phone: Phone = await open_()
        phone.lens.level = 130
        assert (await phone.connect())["drives"]
        picture = await reading(preview)
        assert picture.shape == (120, 160, 3)
        assert abs(float(picture.mean()) - 130) < 8
        assert preview.pictures.absent == ""
        await drawn(preview, headless, phone, lambda: phone.frames)
        shown = phone.frames[-1]
        assert shown.shape == (360, 640, 3)
        assert shown[..., 0].mean() > 200
        assert shown[..., 1:].mean() < 60

    with_phones(preview.url, body)
    end = time.monotonic() + 60
    while preview.pictures.absent != GONE:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert preview.errors == []


async def compared(open_) -> Phone:
    """A phone that is connected, and has told what its clock says."""
    phone = await open_()
    await phone.connect()
    epoch_ms = 1000 * time.time() - time.perf_counter_ns() / 1e6
    await phone.say(type="clock", sent=5.0, epoch=epoch_ms)
    return phone


def test_what_the_sensors_said_comes_with_its_picture(preview):
    async def body(open_):
        phone = await compared(open_)
        answer = await phone.hear("clock")
        assert answer["sent"] == 5.0
        assert abs(answer["now"] - time.perf_counter_ns() / 1e6) < 60_000

        async def sense():
            while True:
                now = time.perf_counter_ns() / 1e6
                phone.tell(type="sensed", at=now, sent=now, down=[0, 2, 0], acceleration=[1, 0, 0])
                await asyncio.sleep(0.01)

        sensing = asyncio.ensure_future(sense())
        end = time.monotonic() + 60
        while (camera := preview.pictures.seen_by(Camera.guess(640, 480))).motion is None:
            await reading(preview)
            assert time.monotonic() < end
        sensing.cancel()
        assert camera.motion.down.tolist() == [0, 1, 0]
        assert (camera.guessed, camera.device) == (True, None)
        age_ns = time.perf_counter_ns() - preview.pictures.taken_ns
        assert 0 < age_ns < 60e9

    with_phones(preview.url, body)


def test_where_the_phone_tracks_itself_comes_with_its_picture(preview):
    async def body(open_):
        phone = await compared(open_)
        place = {"at": [1, 2, 3], "turn": [0, 0, 0, 1]}
        corners = [[0, 0], [1, 0], [0, 1]]
        plane = {"id": 4, "place": place, "outline": corners, "kind": "horizontal"}

        async def sense():
            while True:
                now = time.perf_counter_ns() / 1e6
                phone.tell(type="surfaces", planes=[plane])
                phone.tell(type="light", towards=[0, 2, 0], main=[1, 1, 0.5], around=[0, 0, 0.5])
                viewed = {"place": place, "lens": [0.8, 1.0, 0.5, 0.5]}
                phone.tell(type="sensed", at=now, sent=now, viewed=viewed)
                await asyncio.sleep(0.01)

        sensing = asyncio.ensure_future(sense())
        end = time.monotonic() + 60
        while not (device := preview.pictures.seen_by(Camera.guess(640, 480)).device):
            await reading(preview)
            assert time.monotonic() < end
        while not (device.planes and device.light):
            await reading(preview)
            device = preview.pictures.seen_by(Camera.guess(640, 480)).device or device
            assert time.monotonic() < end
        sensing.cancel()
        assert device.pose.position.tolist() == [1, 2, 3]
        assert [(each.id, each.kind) for each in device.planes] == [(4, "horizontal")]
        assert device.light.towards.tolist() == [0, 1, 0]
        assert device.light.main.tolist() == [1, 1, 0.5]

    with_phones(preview.url, body)


def test_a_phone_that_tracks_itself_is_told_what_a_frame_was_drawn_for(preview, headless):
    async def body(open_):
        phone = await compared(open_)
        await reading(preview)
        place = {"at": [0, 0, 0], "turn": [0, 0, 0, 1]}
        viewed = {"place": place, "lens": [0.8, 1.0, 0.5, 0.5]}
        now = time.perf_counter_ns() / 1e6
        phone.tell(type="sensed", at=now, sent=now, viewed=viewed)

        def told():
            return [each for each in phone.said if each["type"] == "drawn"]

        await drawn(preview, headless, phone, lambda: len(told()) > 2, 123_456_789_000)
        assert {each["captured"] for each in told()} == {123_456.789}
        assert len({each["rtp"] for each in told()}) == len(told())

    with_phones(preview.url, body)


def test_the_way_of_a_picture_is_known_from_camera_to_screen(preview, headless):
    async def body(open_):
        phone = await open_()
        await phone.connect()
        await reading(preview)
        captured_ns = preview.pictures.taken_ns
        await drawn(preview, headless, phone, lambda: len(phone.frames) > 3, captured_ns)
        server = preview._server._phones
        peer = next(iter(server._peers.values()))

        def sent():
            return peer._outlet._sent

        await drawn(preview, headless, phone, sent, captured_ns)
        rtp = list(sent())[-1]  # a browser tells it of what it shows
        phone.tell(type="seen", rtp=rtp, at=time.perf_counter_ns() / 1e6)
        (journey,) = await phone.until(preview.journeys_ended)
        assert next(iter(journey.at_ns)) == "captured"
        assert {"received", "decoded", "drawn", "encoded", "shown"} <= set(journey.at_ns)
        assert (await phone.hear("figures"))["latency"] > 0

    with_phones(preview.url, body)
    assert preview.summary["shown"] == 1


def test_a_camera_that_is_turned_goes_on(preview):
    async def body(open_):
        phone = await open_()
        await phone.connect()
        for size in ((120, 160), (320, 240), (160, 120)):
            phone.lens.size = size
            end = time.monotonic() + 60
            while (await reading(preview)).shape[:2] != size[::-1]:
                assert time.monotonic() < end

    with_phones(preview.url, body)


@pytest.mark.slow
def test_a_camera_of_4k_is_taken(preview):
    async def body(open_):
        phone = await open_()
        phone.lens = Lens((3840, 2160))
        await phone.connect()
        assert (await reading(preview)).shape == (2160, 3840, 3)

    with_phones(preview.url, body)


# --- sound ----------------------------------------------------------------------------------------


@pytest.fixture
def hearing():
    """A preview that hears, and what its sound's source has heard."""
    preview = Preview(PLACE, "Test", {}, PhoneOptions(camera=True, size=SIZE, sound=True))
    found: list[Sound] = []
    source = SoundSource(lambda: preview.sound, "phone")
    source.listen(Hearing(16_000, 1_600), found.append)
    yield preview, found, source
    source.close()
    preview.close()


def test_the_microphone_is_heard_by_the_clock_of_frames(hearing):
    preview, found, source = hearing

    async def body(open_):
        phone = await open_()
        phone.voice = Voice(hertz=400.0, volume=0.5)
        assert (await phone.connect())["drives"]
        epoch_ms = 1000 * time.time() - time.perf_counter_ns() / 1e6
        await phone.say(type="clock", sent=5.0, epoch=epoch_ms)
        await phone.until(lambda: len(found) > 80)  # reports come after some seconds

    with_phones(preview.url, body)
    heard = np.concatenate([each.samples for each in found[20:60]])
    spectrum = np.abs(np.fft.rfft(heard * np.hanning(len(heard))))
    assert np.argmax(spectrum) * 16_000 / len(heard) == pytest.approx(400, abs=2)
    assert np.sqrt((heard**2).mean()) == pytest.approx(0.5 / np.sqrt(2), rel=0.1)
    assert source.message == ""
    steps_ms = np.diff([each.captured_ns for each in found[60:]]) / 1e6
    assert np.median(steps_ms) == pytest.approx(100, abs=5)


def test_a_phone_that_gives_no_sound_is_told_of_and_one_that_left_is_not(hearing):
    preview, found, source = hearing

    async def body(open_):
        mute = await open_("page")
        assert (await mute.connect())["drives"]
        await mute.until(lambda: "allow its page to use the microphone" in source.message)
        again = await open_("page")
        again.voice = Voice()
        await again.connect()
        await again.until(lambda: len(found) > 3)

    with_phones(preview.url, body)
    end = time.monotonic() + 60
    while preview.sound.driven:
        assert time.monotonic() < end
        time.sleep(0.01)
    silence, rate, _ = preview.sound.read() or pytest.fail("it has ended")
    while len(silence):  # what had come before
        silence, rate, _ = preview.sound.read()
    assert rate == 48_000
    assert preview.errors == []


def test_sound_that_nobody_wants_is_refused(preview, headless):
    async def body(open_):
        phone = await open_()
        phone.voice = Voice()
        assert (await phone.connect())["drives"]
        await drawn(preview, headless, phone, lambda: phone.frames)
        peer = next(iter(preview._server._phones._peers.values()))
        (heard,) = [each for each in peer._connection.getTransceivers() if each.kind == "audio"]
        assert heard.currentDirection == "inactive"

    assert preview.sound is None
    with_phones(preview.url, body)


# --- who drives, and who watches ------------------------------------------------------------------


def test_one_drives_and_another_is_told_so_and_watches(preview, headless):
    async def body(open_):
        first, second = await open_("first"), await open_("second")
        assert (await first.connect())["drives"]
        refused = await second.connect()
        assert not refused["drives"]
        assert "another phone drives" in refused["why"]
        assert await second.connect(drives=False) == {"type": "role", "drives": False, "why": ""}
        await drawn(preview, headless, second, lambda: first.frames and second.frames)
        await second.say(type="pointer", x=0.1, y=0.1, buttons=1)
        await first.say(type="pointer", x=0.5, y=0.5, buttons=1)
        events = await first.until(preview.poll)
        assert [each.buttons for each in events if isinstance(each, Pointer)] == [{"left"}]
        assert events[0].x == pytest.approx(639 / 2)
        await first.close()
        await drawn(preview, headless, second, lambda: preview.pictures.absent == GONE)
        assert (await second.connect())["drives"]

    with_phones(preview.url, body)


def test_a_page_that_is_loaded_again_takes_its_own_place(preview):
    async def body(open_):
        before = await open_("page")
        await before.connect()
        again = await open_("page")  # the first one's end has not been heard of
        assert (await again.connect())["drives"]
        again.lens.level = 77
        end = time.monotonic() + 60
        while abs(float((await reading(preview)).mean()) - 77) > 8:
            assert time.monotonic() < end

    with_phones(preview.url, body)


def test_a_phone_may_be_a_screen_alone(headless):
    preview = Preview(PLACE, "Test", {}, PhoneOptions(camera=False, size=SIZE))

    async def body(open_):
        phone = await open_()
        assert (await phone.connect())["drives"]
        await drawn(preview, headless, phone, lambda: phone.frames)
        phone.tell(type="pointer", x=0, y=0, buttons=2)
        await phone.until(preview.poll)

    assert preview.pictures is None
    with_phones(preview.url, body)
    preview.close()


class Held:
    """Stands in for a connection: it closes once it is let go."""

    codec, connected, intake = H264, True, None

    def __init__(self, go=None):
        self.go = go

    async def close(self):
        if self.go is not None:
            await self.go.wait()


def held(go=None) -> Any:
    return Held(go)


def viewer() -> Viewer:
    async def send(data):
        """Nobody looks."""

    return Viewer(send, lambda: None)


def phones(turn=None, **listening) -> Phones:
    nothing = {name: lambda *_: None for name in ("want_key", "allow", "changed")}
    return Phones(Screens(None, turn=turn), **{**nothing, **listening})


def offered(page: str, **more) -> Offered:
    return Offered(sdp="", page=page, drives=True, **more)


def test_nobody_comes_between_while_the_driver_connects_again():
    async def body():
        driven, go = phones(), asyncio.Event()
        first, again, other = viewer(), viewer(), viewer()
        driven._driver, driven._pages[first] = first, "page"
        driven._peers[first] = held(go)
        coming = asyncio.ensure_future(driven.offered(again, offered("page"), print))
        await asyncio.sleep(0)  # it waits for the old line's end
        (said,) = await driven.offered(other, offered("other"), print)
        assert "another phone drives" in json.loads(said)["why"]
        assert driven.drives(again)
        go.set()
        with pytest.raises(MessageError):  # its offer is empty
            await coming

    asyncio.run(body())


def test_one_bad_line_among_several_costs_the_others_nothing():
    shares = []
    driven = phones(allow=lambda codec, share: shares.append((codec, share)))
    pages = [viewer() for _ in range(4)]
    driven._peers = {each: held() for each in pages}
    for _ in range(20):
        for each in pages:
            driven.take(each, Line(lost=0.3 if each is pages[0] else 0.0))
    assert shares[-1] == (H264, 1.0)
    driven._driver = pages[0]  # its user sees it: it has a picture that arrives
    driven.take(pages[1], Line(lost=0.0))
    assert shares[-1] == (H264, pytest.approx(0.1))
    asyncio.run(driven.leave(pages[0]))
    assert shares[-1] == (H264, 1.0)


def test_the_relays_password_goes_to_who_drives_and_to_nobody_else():
    turn = parse_turn("turn:me:secret@relay.example:3478")
    assert "secret" not in json.dumps(Screens(None, turn=turn).hello)

    async def body():
        driven = phones(turn)
        (said,) = await driven.offered(viewer(), offered("first"), print)
        assert json.loads(said)["ice"][0]["credential"] == "secret"
        (said,) = await driven.offered(viewer(), offered("second"), print)
        assert "secret" not in said

    asyncio.run(body())


def test_clocks_are_compared_by_the_channel_too(preview):
    async def body(open_):
        phone = await compared(open_)
        await phone.hear("clock")
        phone.tell(type="clock", sent=6.0, epoch=None)
        assert (await phone.hear("clock"))["sent"] == 6.0

    with_phones(preview.url, body)


# --- who is not let in, and what is no message ----------------------------------------------------


def test_without_the_token_there_is_nothing(preview):
    async def body():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as client:
            for path in ("", "x/", "x/socket"):
                base = preview.url.rsplit("/", 2)[0]
                async with client.get(f"{base}/{path}") as answer:
                    assert answer.status == 403
            foreign = {"Origin": "https://evil.example"}
            async with client.get(f"{preview.url}socket", headers=foreign) as answer:
                assert answer.status == 403

    asyncio.run(body())


def test_plain_http_gets_no_word(preview):
    where = urlsplit(preview.url)
    with socket.create_connection((where.hostname, where.port)) as plain:
        plain.settimeout(60)
        plain.sendall(f"GET {where.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            assert b"HTTP/" not in plain.recv(4096)


SPOILT = {
    "empty": lambda sdp: "",
    "words": lambda sdp: "no SDP at all\r\n" * 50,
    "half": lambda sdp: sdp[: len(sdp) // 2],
    "no video": lambda sdp: sdp.replace("m=video", "m=audio"),
    "no codec": lambda sdp: sdp.replace("H264", "H999").replace("VP8", "VP99"),
    "no numbers": lambda sdp: sdp.replace("96", "x").replace("97", "-1"),
    "no fingerprint": lambda sdp: "\r\n".join(
        line for line in sdp.splitlines() if "fingerprint" not in line
    ),
    "two videos": lambda sdp: sdp + sdp[sdp.index("m=video") :],
    "two sounds": lambda sdp: sdp + 2 * sdp[sdp.index("m=video") :].replace("m=video", "m=audio"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_an_offer_that_is_none_is_refused_and_others_go_on(preview, spoil):
    async def body(open_):
        phone = await open_("bad")
        sdp = spoil(await phone.offer())
        await phone.say(type="offer", sdp=sdp, page="bad", drives=True)
        await phone.until(lambda: phone.closed)
        assert phone.closed == aiohttp.WSCloseCode.POLICY_VIOLATION
        other = await open_("good")
        assert (await other.connect())["drives"]

    with_phones(preview.url, body)


SENSED = {"type": "sensed", "at": 1.0, "sent": 1.0}
PLANE = {
    **{"id": 1, "outline": [[0, 0], [1, 0], [0, 1]], "kind": "horizontal"},
    "place": {"at": [0, 0, 0], "turn": [0, 0, 0, 1]},
}
GARBAGE = ["", "x", "{}", "[]", '{"type": "sensed", "at": "now"}', "null", "\0" * 300, "9" * 2000]


def test_garbage_by_the_channel_ends_its_page_alone(preview, headless):
    async def body(open_):
        good, bad = await open_("good"), await open_("bad")
        await good.connect()
        await bad.connect(drives=False)
        for number in range(10_000):
            bad.channel.send(GARBAGE[number % len(GARBAGE)] or b"\xff")
        await bad.until(lambda: bad.closed)
        # The way back is full of garbage by then: it may be cut off before it hears why.
        assert bad.closed in (
            aiohttp.WSCloseCode.POLICY_VIOLATION,
            aiohttp.WSCloseCode.ABNORMAL_CLOSURE,
        )
        seen = len(good.frames)
        await drawn(preview, headless, good, lambda: len(good.frames) > seen + 5)
        assert abs(float((await reading(preview)).mean()) - good.lens.level) < 8

    with_phones(preview.url, body)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "sensed", "at": -1.0, "sent": 0.0},
        {"type": "sensed", "at": 1.0, "sent": 1.0, "down": [0, 0, 0]},
        {"type": "sensed", "at": 1.0, "sent": 1.0, "down": [1, 2]},
        {**SENSED, "viewed": {"place": None, "lens": [0, 1, 0.5, 0.5]}},
        {**SENSED, "viewed": {"place": {"at": [0, 0, 0], "turn": [0] * 4}, "lens": [1] * 4}},
        {"type": "surfaces", "planes": [{"id": 1}]},
        {"type": "surfaces", "planes": [PLANE] * 65},
        {"type": "surfaces", "planes": [{**PLANE, "outline": [[0, 0], [1, 1]]}]},
        {"type": "surfaces", "planes": [{**PLANE, "outline": [[0, 0], [1, 1], [1e999, 0]]}]},
        {"type": "sensed", "at": 1.0, "sent": 1.0, "down": [1e999, 0, 0]},
        {"type": "seen", "rtp": -1, "at": 1.0},
        {"type": "line", "lost": 2},
        {"type": "clock", "sent": "x"},
        {"type": "offer", "sdp": 1, "page": "p", "drives": True},
        {"type": "offer", "sdp": "x" * 70_000, "page": "p", "drives": True},
    ],
)
def test_words_that_no_page_says_end_it(preview, message):
    async def body(open_):
        phone = await open_()
        await phone.socket.send_str(json.dumps(message))
        await phone.until(lambda: phone.closed)
        assert phone.closed in (
            aiohttp.WSCloseCode.POLICY_VIOLATION,
            aiohttp.WSCloseCode.MESSAGE_TOO_BIG,
            aiohttp.WSCloseCode.ABNORMAL_CLOSURE,  # while it still sends
        )

    with_phones(preview.url, body)


def test_a_preview_without_phones_takes_no_offer():
    opened = Preview(PLACE, "Test", {})

    async def body():
        async with aiohttp.ClientSession() as client:
            found = await client.ws_connect(f"{opened.url}socket")
            await found.receive_json()
            await found.send_json({"type": "offer", "sdp": "", "page": "", "drives": True})
            message = await found.receive(60)
            assert message.type is aiohttp.WSMsgType.CLOSE

    asyncio.run(body())
    opened.close()


# --- nothing is left behind -----------------------------------------------------------------------


@pytest.mark.slow
def test_many_connections_leave_nothing_behind(preview):
    process = psutil.Process()

    async def body(open_):
        async def settled():
            """Threads (but those that asyncio keeps), handles, bytes; once sockets are closed."""
            await asyncio.sleep(2)
            gc.collect()
            named = [each.name for each in threading.enumerate()]
            own = [name for name in named if not name.startswith("asyncio_")]
            return len(own), process.num_fds(), process.memory_info().rss

        async def once(number):
            phone = await open_(f"page {number % 2}")
            await phone.connect()
            await reading(preview)
            await phone.close()

        for number in range(20):  # whatever is made once is made
            await once(number)
        seen = [await settled()]
        for _ in range(3):
            for number in range(40):
                await once(number)
            seen.append(await settled())
        assert len({each[:2] for each in seen}) == 1
        grown = [after[2] - before[2] for before, after in pairwise(seen)]
        # What is left behind grows each time; what the allocator keeps does not.
        assert min(grown) < 40 * 80e3, f"bytes of both ends, which run here: {grown}"

    with_phones(preview.url, body)


def test_a_relay_is_read_and_a_mistake_keeps_its_password_secret():
    turn = parse_turn("turn:me:a:secret@relay.example:3478")
    assert (turn.url, turn.username, turn.password) == ("turn:relay.example:3478", "me", "a:secret")
    with pytest.raises(ConfigError) as told:
        parse_turn("turn://me:secret-word@host")
    assert "secret-word" not in str(told.value)


def test_the_address_stands_alone_on_a_line(capfd):
    opened = Preview(PLACE, "Test", {}, OPTIONS)
    opened.close()
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == opened.url
    assert opened.url.startswith("https://")
    assert len("".join(lines[-2:]).split(":")) == 32  # the fingerprint
    assert max(map(len, lines)) < 100


def test_a_camera_reads_the_code_that_a_terminal_shows():
    url = "https://192.168.100.101:8443/yIl-3j7NxcjC71uFvzVa7yvY/"
    halves = {"█": (255, 255), "▀": (255, 0), "▄": (0, 255), " ": (0, 0)}  # on a dark ground
    rows = preview_module._code(url).strip("\n").splitlines()
    wide = max(map(len, rows))
    picture = np.zeros((2 * len(rows), wide), np.uint8)
    for row, text in enumerate(rows):
        for column, sign in enumerate(text):
            picture[2 * row : 2 * row + 2, column] = halves[sign]
    large = cv2.resize(picture, None, fx=8, fy=8, interpolation=cv2.INTER_NEAREST)
    assert cv2.QRCodeDetector().detectAndDecode(large)[0] == url


def test_its_certificate_is_the_one_that_it_names(preview):
    where = urlsplit(preview.url)
    pem = ssl.get_server_certificate((where.hostname, where.port))
    assert "BEGIN CERTIFICATE" in pem
