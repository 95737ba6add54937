"""Environment maps: what is a picture, and how large it may be."""

import cv2
import numpy as np
import pytest
from PIL import Image

from heimdall.errors import ModelError
from heimdall.render.content import environment
from heimdall.render.content.environment import read_room

BRIGHT_ABOVE = np.zeros((8, 16, 3), np.float32)
BRIGHT_ABOVE[:4] = 1.0


def exr(path):
    OpenEXR = pytest.importorskip("OpenEXR", reason="the extra `model3d` has it")  # noqa: N806
    with OpenEXR.File({}, {"RGB": BRIGHT_ABOVE}) as file:
        file.write(str(path))


def picture(path):
    values = BRIGHT_ABOVE if path.suffix == ".hdr" else (255 * BRIGHT_ABOVE).astype(np.uint8)
    cv2.imwrite(str(path), values)


KINDS = {".exr": exr, ".hdr": picture, ".png": picture, ".jpg": picture}


@pytest.mark.parametrize("suffix", KINDS)
def test_a_map_is_known_by_its_content(suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    KINDS[suffix](path)
    path = path.rename(tmp_path / "a.map")
    assert read_room(path).key[1] > 0.9  # from above


@pytest.mark.parametrize("suffix", KINDS)
def test_a_large_map_is_refused_before_it_is_decoded(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"a{suffix}"
    KINDS[suffix](path)
    monkeypatch.setattr(environment, "_MOST_PIXELS", 127)
    monkeypatch.setattr(cv2, "imdecode", None)
    with pytest.raises(ModelError, match=r"a\.\w+: a picture of \d+ x \d+"):
        read_room(path)


def test_a_picture_that_is_far_too_large_is_one_clear_error(tmp_path):
    path = tmp_path / "a.png"
    Image.new("1", (30_000, 15_000)).save(path)
    with pytest.raises(ModelError, match=r"a\.png: .*large|30000 x 15000"):
        read_room(path)


@pytest.mark.parametrize("content", [b"", b"none", b"#?RADIANCE\n\n-Y 8 +X 8\n", b"v/1\x01"])
def test_what_is_no_map_is_refused(content, tmp_path):
    path = tmp_path / "a.hdr"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"a\.hdr: "):
        read_room(path)
