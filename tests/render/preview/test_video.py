"""Frames as a video: every frame at once, upright, keys when they are wanted."""

from __future__ import annotations

import av
import numpy as np
import pytest

from heimdall.render.encoder import Drawn
from heimdall.render.preview.video import CODECS, H264, LEAST_RATE, Video, allowed

SIZE = (160, 96)


def frame(red: int = 0, size: tuple[int, int] = SIZE) -> np.ndarray:
    """RGBA, bottom row first: red, and blue in the upper half."""
    pixels = np.zeros((size[1], size[0], 4), np.uint8)
    pixels[..., 0] = red
    pixels[size[1] // 2 :, :, 2] = 250
    return pixels


def decoder(codec: str):
    return av.CodecContext.create("h264" if codec == H264 else "libvpx", "r")


def shown(decoding, encoded) -> np.ndarray:
    frames = decoding.decode(av.Packet(encoded.data))
    assert len(frames) == 1, "a frame waits for a later one"
    return frames[0].to_ndarray(format="rgb24")


@pytest.mark.parametrize("codec", CODECS)
def test_each_frame_comes_at_once_and_upright(codec):
    video, decoding = Video(codec), decoder(codec)
    for number, red in enumerate((0, 100, 200)):
        encoded = video(frame(red), Drawn(number * 33_000_000))
        picture = shown(decoding, encoded).astype(float)
        assert picture[:40, :, 2].mean() > 200
        assert picture[56:, :, 2].mean() < 60
        assert abs(picture[..., 0].mean() - red) < 40
        assert encoded.size == SIZE
        assert encoded.key == (number == 0)


@pytest.mark.parametrize("codec", CODECS)
def test_a_key_comes_when_it_is_wanted(codec):
    video = Video(codec)
    assert [video(frame(), Drawn(at)).key for at in (1, 2)] == [True, False]
    video.want_key()
    encoded = video(frame(), Drawn(3))
    assert encoded.key
    assert shown(decoder(codec), encoded).shape == (SIZE[1], SIZE[0], 3)
    assert not video(frame(), Drawn(4)).key


@pytest.mark.parametrize("codec", CODECS)
def test_opacity_comes_below_the_colours(codec):
    pixels = frame(red=200)
    pixels[..., 3] = np.linspace(0, 255, SIZE[0]).astype(np.uint8)  # from left to right
    pixels[: SIZE[1] // 2, :, 3] = 255  # of the lower half
    encoded = Video(codec, opacity=True)(pixels, Drawn(1))
    assert encoded.size == SIZE
    picture = shown(decoder(codec), encoded).astype(float)
    assert picture.shape == (2 * SIZE[1], SIZE[0], 3)
    above, below = picture[: SIZE[1]], picture[SIZE[1] :]
    assert abs(above[..., 0].mean() - 200) < 20
    assert above[:40, :, 2].mean() > 200 > 60 > above[56:, :, 2].mean()
    assert np.abs(below - below.mean(axis=2, keepdims=True)).max() < 20  # grey
    assert below[56:].min() > 235
    assert np.abs(below[10:40].mean(axis=(0, 2)) - pixels[-1, :, 3]).max() < 16


@pytest.mark.parametrize("codec", CODECS)
def test_another_size_begins_anew(codec):
    video = Video(codec)
    video(frame(), Drawn(1))
    for size in ((96, 160), (161, 97), (96, 160)):
        encoded = video(frame(size=size), Drawn(2))
        assert encoded.key
        wide, high = encoded.size
        assert (wide, high) == (size[0] // 2 * 2, size[1] // 2 * 2)
        assert shown(decoder(codec), encoded).shape == (high, wide, 3)


def test_times_go_up_whatever_the_clock_does():
    video = Video(H264)
    ticks = [video(frame(), Drawn(at)).ticks for at in (1_000_000_000, 1_000_000_000, 5)]
    assert ticks == [90_000, 90_001, 90_002]


def test_a_bad_line_gets_fewer_bits():
    noise = np.random.default_rng(1).integers(0, 255, (40, 240, 320, 4), np.uint8)

    def bits(share: float) -> int:
        video = Video(H264)
        video.share = share
        made = [video(each, Drawn(at * 33_333_333)) for at, each in enumerate(noise)]
        return sum(len(each.data) for each in made[10:])

    assert bits(0.1) < bits(1.0)
    assert Video(H264)._rate(64, 48) == LEAST_RATE


def test_a_line_that_loses_much_gets_less_and_more_again():
    share = 1.0
    for _ in range(20):
        share = allowed(share, 0.2)
    assert share == pytest.approx(0.1)
    assert allowed(share, 0.0) > share
    assert allowed(1.0, 0.0) == 1.0
