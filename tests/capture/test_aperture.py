"""What an MP4 file states to be shown of its pictures is shown."""

from __future__ import annotations

import struct
from io import BytesIO

import numpy as np
import pytest

from heimdall.capture.aperture import clean_aperture
from heimdall.capture.clips import ClipReader
from tests import media

PARENTS = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"avc1")


def stating(clip: bytes, numbers: tuple[int, ...]) -> bytes:
    """``clip``, an MP4 whose pictures come first, with a clean aperture."""
    entry = clip.index(b"avc1", clip.index(b"stsd")) - 4
    end = entry + struct.unpack_from(">I", clip, entry)[0]
    box = struct.pack(">I4s8i", 40, b"clap", *numbers)
    data = bytearray(clip[:end] + box + clip[end:])
    at = clip.index(b"moov")
    for kind in PARENTS:
        at = clip.index(kind, at)
        (size,) = struct.unpack_from(">I", data, at - 4)
        struct.pack_into(">I", data, at - 4, size + len(box))
    return bytes(data)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Red around a green part of 32 x 24 at 8, 16."""
    image = np.full((48, 64, 3), (200, 20, 20), np.uint8)
    image[16:40, 8:40] = media.GREEN
    return media.make(tmp_path_factory.mktemp("clip") / "clip.mp4", [image] * 3)


SHOWN = (32, 1, 24, 1, -8, 1, 4, 1)  # sizes, then the middle's way from that of the picture


@pytest.mark.parametrize("numbers", [SHOWN, (64, 2, 48, 2, -16, 2, 8, 2)])
def test_only_the_clean_aperture_is_shown(clip, tmp_path, numbers):
    path = tmp_path / "clip.mp4"
    path.write_bytes(stating(clip.read_bytes(), numbers))
    reader = ClipReader(str(path), "clip")
    image = reader.read()
    reader.close()
    assert image.shape == (24, 32, 3)
    for row, column in ((3, 3), (3, 28), (20, 3), (20, 28)):
        assert media.near(image[row, column], media.GREEN)


@pytest.mark.parametrize(
    "numbers",
    [(65, 1, 48, 1, 0, 1, 0, 1), (32, 0, 24, 1, 0, 1, 0, 1), (0, 1, 24, 1, 0, 1, 0, 1)],
    ids=["wider than the picture", "no denominator", "nothing"],
)
def test_what_makes_no_sense_is_ignored(clip, numbers):
    assert clean_aperture(BytesIO(stating(clip.read_bytes(), numbers)), 1) is None


def test_files_that_state_none_or_are_cut_off(clip):
    data = stating(clip.read_bytes(), SHOWN)
    assert clean_aperture(BytesIO(data), 1) == (8, 16, 32, 24)
    assert clean_aperture(BytesIO(data), 2) is None  # another track
    assert clean_aperture(BytesIO(clip.read_bytes()), 1) is None
    for end in range(0, len(data), 7):
        clean_aperture(BytesIO(data[:end]), 1)
    at = data.index(b"avc1", data.index(b"stsd"))
    short = data[: at - 4] + struct.pack(">I", 8) + data[at:]
    assert clean_aperture(BytesIO(short), 1) is None
