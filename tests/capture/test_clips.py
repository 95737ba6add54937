"""Clips are read as players show them: what containers state of pictures is obeyed, or named."""

from __future__ import annotations

import logging
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from av.video.reformatter import Colorspace
from av.video.stream import VideoStream

from heimdall.capture.clips import ClipReader
from heimdall.capture.readers import open_clip, open_file
from heimdall.errors import DeviceError
from heimdall.system.paths import ASSETS
from tests.media import GREEN, WHITE, make, near, scene

WIDTH, HEIGHT = 64, 48
writes_turns = pytest.mark.skipif(
    not hasattr(VideoStream, "set_display_rotation"), reason="PyAV 17 writes no display matrix"
)


def all_of(reader: ClipReader) -> tuple[list[np.ndarray], list[float]]:
    """Every picture, and when each is shown, in ms."""
    images, times = [], []
    while (image := reader.read()) is not None:
        images.append(image)
        times.append(reader.at_ns / 1e6)
    return images, times


@pytest.mark.parametrize("name", ["box.mp4", "cup.mp4", "desk.mp4"])
def test_pixels_are_those_that_opencv_decodes(name: str):
    reader, capture = open_clip(ASSETS / "media" / name), cv2.VideoCapture(ASSETS / "media" / name)
    for _ in range(20):
        ours, theirs = reader.read(), capture.read()[1]
        assert np.abs(ours.astype(int) - theirs).max() <= 2
    reader.close()


# --- interlaced --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "codec", "options"),
    [
        ("h264.mp4", "libx264", {"x264-params": "tff=1"}),
        ("bff.mkv", "libx264", {"x264-params": "bff=1"}),
        ("mpeg2.ts", "mpeg2video", {"flags": "+ildct+ilme"}),
    ],
)
def test_interlaced_clips_are_not_black(tmp_path: Path, name, codec, options):
    path = make(tmp_path / name, [scene()] * 8, codec=codec, **options)
    with av.open(str(path)) as container:
        assert next(container.decode(video=0)).interlaced_frame
    images, times = all_of(open_clip(path))
    assert len(images) == 8
    assert times == pytest.approx([40 * k for k in range(8)], abs=1)
    for image in images:
        assert near(image[40, 40], GREEN, 6)
        assert near(image[4, 4], WHITE, 6)


def test_interlaced_broadcasts_may_change_their_size(tmp_path: Path):
    """An advertisement in another format: one transport stream after another."""
    options: dict[str, Any] = {"x264-params": "tff=1"}
    small = make(tmp_path / "a.ts", [scene()] * 8, **options)
    large = make(tmp_path / "b.ts", [cv2.resize(scene(), (128, 96))] * 8, **options)
    (tmp_path / "c.ts").write_bytes(small.read_bytes() + large.read_bytes())
    images, _ = all_of(open_clip(tmp_path / "c.ts"))
    assert [each.shape[0] for each in images] == [48] * 8 + [96] * 8
    for image in images:
        assert near(image[image.shape[0] - 8, 40], GREEN, 6)


def test_fields_of_two_moments_leave_no_comb(tmp_path: Path):
    """Each line of a frame that moves is from the same moment."""

    def woven(k: int) -> np.ndarray:
        image = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        for field in range(2):
            image[field::2, 8 * k + 4 * field : 8 * k + 4 * field + 20] = 255
        return image

    options: dict[str, Any] = {"x264-params": "tff=1", "qp": "0"}
    path = make(tmp_path / "a.mp4", [woven(k) for k in range(6)], **options)
    image = all_of(open_clip(path))[0][3].astype(int)
    raw = cv2.cvtColor(woven(3), cv2.COLOR_RGB2BGR).astype(int)

    def comb(picture: np.ndarray) -> float:
        return float(np.abs(picture[1:-1] - (picture[:-2] + picture[2:]) / 2)[8:-8].mean())

    assert comb(image) < 0.3 * comb(raw)


def test_a_whole_clip_is_not_filtered(tmp_path: Path):
    with av.open(str(make(tmp_path / "a.mp4", [scene()] * 3))) as container:
        frame = next(container.decode(video=0))
        expected = frame.reformat(format="bgr24", interpolation="BILINEAR").to_ndarray()
    np.testing.assert_array_equal(open_clip(tmp_path / "a.mp4").read(), expected)


# --- the shape of pixels, turning, mirroring ------------------------------------------------------


@pytest.mark.parametrize(
    ("aspect", "size"),
    [
        (Fraction(16, 9), (114, 48)),
        (Fraction(8, 9), (64, 54)),
        (Fraction(1, 1), (64, 48)),
        (Fraction(1001, 1000), (64, 48)),  # rounding of an encoder
        (Fraction(40, 1), (64, 48)),  # damage
    ],
)
def test_pixels_become_square(tmp_path: Path, aspect, size):
    def prepare(stream):
        stream.codec_context.sample_aspect_ratio = aspect

    reader = open_clip(make(tmp_path / "a.mp4", [scene()] * 2, prepare=prepare))
    image = reader.read()
    assert image.shape[1::-1] == size
    assert near(image[-4, -4], GREEN)
    assert near(image[4, 4], WHITE)


def corners(image: np.ndarray) -> str:
    """Where it is white: of t(op) b(ottom), l(eft) r(ight)."""
    places = {"tl": (4, 4), "tr": (4, -4), "bl": (-4, 4), "br": (-4, -4)}
    (found,) = [name for name, place in places.items() if near(image[place], WHITE, 8)]
    return found


@writes_turns
@pytest.mark.parametrize(
    ("degrees", "flips", "corner", "size"),
    [
        (0, {}, "tl", (64, 48)),
        (90, {}, "bl", (48, 64)),  # counterclockwise, as FFmpeg counts
        (180, {}, "br", (64, 48)),
        (-90, {}, "tr", (48, 64)),
        (0, {"hflip": True}, "tr", (64, 48)),
        (0, {"vflip": True}, "bl", (64, 48)),
        (90, {"hflip": True}, "br", (48, 64)),
        (90, {"vflip": True}, "tl", (48, 64)),
    ],
)
def test_pictures_are_upright_and_not_mirrored(tmp_path: Path, degrees, flips, corner, size):
    def prepare(stream):
        stream.set_display_rotation(degrees, **flips)

    image = open_clip(make(tmp_path / "a.mp4", [scene()] * 2, prepare=prepare)).read()
    assert image.shape[1::-1] == size
    assert corners(image) == corner


@writes_turns
def test_pixels_are_square_before_they_are_turned(tmp_path: Path):
    def prepare(stream):
        stream.codec_context.sample_aspect_ratio = Fraction(2, 1)
        stream.set_display_rotation(-90)

    image = open_clip(make(tmp_path / "a.mp4", [scene()] * 2, prepare=prepare)).read()
    assert image.shape[1::-1] == (48, 128)


# --- colours ----------------------------------------------------------------------------------


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("matrix", "name"),
    [(1, "ITU709"), (5, "ITU601"), (6, "ITU601"), (7, "SMPTE240M"), (9, "BT2020")],
)
def test_the_matrix_and_range_of_colours_are_obeyed(tmp_path: Path, matrix, name, full):
    if not hasattr(Colorspace, name):
        pytest.skip(f"this PyAV writes no {name}")

    def prepare(stream):
        context = stream.codec_context
        context.colorspace, context.color_range = matrix, 2 if full else 1

    def convert(frame):
        depth = "JPEG" if full else "MPEG"
        return frame.reformat(format="yuv420p", dst_colorspace=name, dst_color_range=depth)

    path = make(tmp_path / "a.mp4", [scene()] * 2, prepare=prepare, convert=convert)
    image = open_clip(path).read()
    assert near(image[40, 40], GREEN)
    assert near(image[4, 4], WHITE)


def test_the_wide_gamut_of_a_clip_is_that_of_a_screen(tmp_path: Path):
    """Green of BT.709 as BT.2020 has it comes back."""
    linear = (np.array(GREEN) / 255) ** 2.2
    to_wide = np.array(
        [[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]]
    )  # ITU-R BT.2087-0
    wide = np.full((HEIGHT, WIDTH, 3), np.round(255 * (to_wide @ linear) ** (1 / 2.2)), np.uint8)

    def prepare(stream):
        stream.codec_context.color_primaries = 9

    image = open_clip(make(tmp_path / "a.mp4", [wide] * 2, prepare=prepare)).read()
    assert near(image[40, 40], GREEN, 10)


@pytest.mark.parametrize(("transfer", "paper"), [(16, 0.5806), (18, 0.75)])
def test_paper_is_nearly_white_in_an_hdr_clip(tmp_path: Path, transfer, paper):
    """ITU-R BT.2408-7: paper is at 58% (PQ) and 75% (HLG) of the range."""
    level = round(255 * paper)
    image = np.full((HEIGHT, WIDTH, 3), level, np.uint8)

    def prepare(stream):
        stream.codec_context.color_trc = transfer
        stream.codec_context.color_primaries = 9

    shown = open_clip(make(tmp_path / "a.mp4", [image] * 2, prepare=prepare)).read()[20, 20]
    assert level + 30 < shown.min() <= shown.max() < 250
    assert shown.max() - shown.min() <= 2


def test_a_matrix_that_cannot_be_converted_is_named(tmp_path: Path, caplog):
    def prepare(stream):
        stream.codec_context.colorspace = 14

    reader = open_clip(make(tmp_path / "odd.mp4", [scene()] * 3, prepare=prepare))
    assert reader.read() is not None
    assert reader.read() is not None
    (line,) = [each for each in caplog.records if "odd.mp4" in each.getMessage()]
    assert line.levelno == logging.WARNING
    assert "colours are wrong" in line.getMessage()


# --- times ------------------------------------------------------------------------------------


def test_each_frame_is_shown_at_its_own_time(tmp_path: Path):
    times = [0, 33, 66, 500, 533, 2000, 2100]
    reader = open_clip(make(tmp_path / "a.mkv", [scene()] * 7, times_ms=times))
    assert all_of(reader)[1] == pytest.approx(times, abs=1)
    assert reader.rewind()
    assert all_of(reader)[1] == pytest.approx(times, abs=1)


def test_a_frame_that_is_passed_over_takes_its_time(tmp_path: Path):
    times = [0, 33, 500, 533, 2000]
    reader = open_clip(make(tmp_path / "a.mkv", [scene()] * 5, times_ms=times))
    reader.read()
    assert reader.skip()
    assert reader.skip()
    assert reader.gap_ns() == pytest.approx(33e6, abs=1e6)
    reader.read()
    assert reader.at_ns == pytest.approx(533e6, abs=1e6)


def test_times_that_are_not_in_order_do_not_count():
    """box.mp4 has the times of its frames in the order of decoding: a phone wrote it."""
    reader = open_clip(ASSETS / "media" / "box.mp4")
    gaps = []
    while reader.skip():
        gaps.append(reader.gap_ns() / 1e6)
    assert max(gaps) < 200
    assert np.median(gaps) == pytest.approx(33.4, abs=0.1)


def test_slides_are_shown_as_long_as_they_say(tmp_path: Path):
    reader = open_clip(make(tmp_path / "a.mkv", [scene()] * 3, times_ms=[0, 10_000, 20_000]))
    assert all_of(reader)[1] == pytest.approx([0, 10_000, 20_000], abs=1)


# --- rewinding, damage ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi", "a.ts", "a.h264", "a.gif", "a.apng"])
def test_every_container_begins_again(tmp_path: Path, name: str):
    codecs = {".gif": ("gif", "rgb8"), ".apng": ("apng", "rgb24")}
    codec, form = codecs.get(Path(name).suffix, ("libx264", "yuv420p"))
    images = [np.roll(scene(), 8 * k, 1) for k in range(6)]
    reader = open_clip(make(tmp_path / name, images, codec=codec, form=form))
    first = all_of(reader)[0]
    assert len(first) == 6
    for _ in range(2):
        assert reader.rewind()
        again = all_of(reader)[0]
        assert len(again) == 6
        np.testing.assert_array_equal(again[0], first[0])
        np.testing.assert_array_equal(again[-1], first[-1])


def test_a_clip_that_was_cut_off_plays_as_far_as_it_goes(tmp_path: Path):
    path = make(tmp_path / "a.mkv", [np.roll(scene(), 8 * k, 1) for k in range(50)], g="5")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    reader = open_clip(path)
    assert 10 < len(all_of(reader)[0]) < 50
    assert reader.rewind()
    assert reader.read() is not None


def test_damaged_frames_are_passed_over(tmp_path: Path):
    path = make(tmp_path / "a.ts", [np.roll(scene(), 8 * k, 1) for k in range(50)], g="5")
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data) // 2, 7):
        data[place] ^= 0xFF
    path.write_bytes(data)
    assert 20 < len(all_of(open_clip(path))[0]) <= 55


def test_sound_alone_is_no_clip():
    with pytest.raises(DeviceError, match=r"words\.ogg.*no video"):
        open_clip(ASSETS / "media" / "words.ogg")
    with pytest.raises(DeviceError, match=r"words\.ogg"):
        open_file(ASSETS / "media" / "words.ogg")
