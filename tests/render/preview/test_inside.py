"""What is used of aiortc's own: it is there, and pictures come with their last packet."""

from __future__ import annotations

import asyncio

import pytest
from aiortc import RTCPeerConnection
from aiortc.rtp import RtpPacket
from hypothesis import given
from hypothesis import strategies as st

from heimdall.render.preview import inside


def packet(number: int, rtp: int, data: bytes = b"x", last: bool = False) -> RtpPacket:
    made = RtpPacket(sequence_number=number % 65536, timestamp=rtp, marker=int(last))
    made._data = data  # type: ignore[attr-defined]
    return made


def key(data: bytes) -> bool:
    return data.startswith(b"K")


def feed(prompt: inside.Prompt, *packets: RtpPacket) -> list[bytes]:
    return [made.data for each in packets if (made := prompt.add(each)[1]) is not None]


def test_aiortc_has_what_is_replaced():
    async def body():
        connection = RTCPeerConnection()
        video, sound = connection.addTransceiver("video"), connection.addTransceiver("audio")
        for owner, name in (
            (video.receiver, "_RTCRtpReceiver__jitter_buffer"),
            (video.receiver, "_handle_rtcp_packet"),
            (sound.receiver, "_RTCRtpReceiver__jitter_buffer"),
            (video.sender, "_send_keyframe"),
            (video.sender, "_RTCRtpSender__rtp_timestamp"),
        ):
            assert hasattr(owner, name), "this aiortc is another one: pictures would come late"
        await connection.close()

    asyncio.run(body())


def test_one_that_has_it_not_is_told_of(caplog):
    class Other:
        pass

    inside._replace(Other(), "thing", 1)
    assert "no thing" in caplog.text


def test_a_picture_comes_with_its_last_packet():
    prompt = inside.Prompt(key)
    assert feed(prompt, packet(0, 9, b"Ka"), packet(1, 9, b"b")) == []
    assert feed(prompt, packet(2, 9, b"c", last=True)) == [b"Kabc"]
    assert feed(prompt, packet(3, 12, b"d", last=True)) == [b"d"]


def test_padding_is_no_picture():
    prompt = inside.Prompt(key)
    made = feed(
        prompt,
        packet(0, 9, b"K", last=True),
        packet(1, 9, b""),
        packet(2, 9, b""),
        packet(3, 12, b"a", last=True),
    )
    assert made == [b"K", b"a"]


def test_a_sender_that_marks_nothing_is_understood_one_picture_later():
    prompt = inside.Prompt(key)
    assert feed(prompt, packet(0, 9, b"K"), packet(1, 9, b"a"), packet(2, 12, b"b")) == [b"Ka"]


@given(st.permutations(range(6)), st.integers(0, 65535))
def test_the_order_in_which_packets_come_does_not_matter(order, begin):
    """All but the first, for a buffer begins with what it gets first."""
    prompt = inside.Prompt(key)
    sent = [packet(begin + at, 9 + at // 3, bytes([65 + at]), at % 3 == 2) for at in range(7)]
    sent[0]._data = b"K"  # type: ignore[attr-defined]
    made = feed(prompt, sent[0], *(sent[1 + at] for at in order))
    made += feed(prompt, packet(begin + 7, 11, b"Z"), packet(begin + 8, 11, b"Z"))
    assert made == [b"KBC", b"DEF"]


def test_pictures_are_left_out_while_decoding_is_behind_and_up_to_a_key():
    prompt = inside.Prompt(key)
    asked, made = [], []
    for at in range(inside.MOST_WAITING + 3):
        want_key, frame = prompt.add(packet(at, 100 + at, b"K" if at == 0 else b"p", last=True))
        asked.append(want_key)
        made += [frame.data] if frame is not None else []
    assert len(made) == inside.MOST_WAITING
    assert prompt.left_out == 3
    for at in range(inside.MOST_WAITING):
        prompt.decoded(at)  # by aiortc's time, which begins with 0
    assert prompt.waiting == 0
    want_key, frame = prompt.add(packet(50 - 43, 300, b"p", last=True))
    assert want_key
    assert frame is None
    assert feed(prompt, packet(8, 303, b"K", last=True), packet(9, 306, b"p", last=True)) == [
        b"K",
        b"p",
    ]


def test_a_picture_that_could_not_be_decoded_is_not_waited_for():
    prompt = inside.Prompt(key)
    feed(prompt, *(packet(at, 100 + at, b"K", last=True) for at in range(3)))
    assert prompt.decoded(2)[0] == 102
    assert prompt.waiting == 0


@pytest.mark.parametrize("first", [0, 2**32 - 2])
def test_times_are_those_of_rtp(first):
    prompt = inside.Prompt(key)
    feed(prompt, *(packet(at, (first + at) % 2**32, b"K", last=True) for at in range(4)))
    assert [prompt.decoded(at)[0] for at in range(4)] == [(first + at) % 2**32 for at in range(4)]
