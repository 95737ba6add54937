"""Pictures without labels: a clip, or a folder of pictures and clips.

What is kept for the test is apart from the rest: other files, or of one clip its end. Every picture
may be seen several times, each time cut, turned, mirrored and lit otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from heimdall.capture.readers import open_clip
from heimdall.errors import ConfigError, DeviceError
from heimdall.lab.exits.data import PICTURES, TEST_SHARE, read_picture

MOST_FRAMES = 300  # of a clip, evenly spread
_CLIPS = {".mp4", ".mkv", ".mov", ".avi", ".webm", ".m4v"}
_SIDE = 640  # the longer one of a varied picture, at most
_LEAST_SHARE = 0.3  # of a cut's side, over the picture's
_TURN_DEGREES = 20
Read = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Views:
    """Pictures, each ``copies`` times: as it is where that is 1, else varied by the seed.
    ``read(i)`` gives view i, BGR uint8 (h, w, 3)."""

    pictures: Sequence[Read]
    copies: int = 1
    seed: int = 0

    def __len__(self) -> int:
        return len(self.pictures) * self.copies

    def read(self, index: int) -> np.ndarray:
        image = self.pictures[index % len(self.pictures)]()
        if self.copies == 1:
            return image
        return varied(image, np.random.default_rng((self.seed, index)))


def is_unlabelled(path: Path) -> bool:
    """True if ``path`` is a clip, or a folder with pictures or clips directly in it."""
    return path.is_file() or (path.is_dir() and bool(_files(path)))


def open_views(
    path: Path, test: Path | None = None, *, copies: int, most: int | None = None, seed: int = 0
) -> tuple[Views, Views]:
    """What to learn from, ``copies`` times, and what to test with. ``test``: where that is; without
    it a fifth of the files is kept for it, of a single clip its last fifth. ``most``: learn from so
    many pictures, drawn by the seed.

    Raises ConfigError where there are no pictures, too few, or one cannot be read.
    """
    if test is not None:
        learnt, kept = _pictures(_found(path)), _pictures(_found(test))
    else:
        learnt, kept = _apart(path, seed)
    if most is not None and most < len(learnt):
        chosen = np.random.default_rng(seed).permutation(len(learnt))[:most]
        learnt = [learnt[index] for index in chosen]
    return Views(learnt, copies, seed), Views(kept)


def _apart(path: Path, seed: int) -> tuple[list[Read], list[Read]]:
    files = _found(path)
    if len(files) == 1:
        pictures = _pictures(files)
        border = len(pictures) - len(pictures) // TEST_SHARE
        parts = pictures[:border], pictures[border:]
    else:
        order = [files[index] for index in np.random.default_rng(seed).permutation(len(files))]
        kept = order[::TEST_SHARE]
        parts = _pictures([each for each in order if each not in kept]), _pictures(kept)
    if not all(parts):
        raise ConfigError(f"{path} has too few pictures to learn from some and test with others")
    return parts


def _found(path: Path) -> list[Path]:
    files = [path] if path.is_file() else _files(path) if path.is_dir() else []
    if not files:
        raise ConfigError(f"no clip and no folder with pictures or clips at {path}")
    return files


def _files(folder: Path) -> list[Path]:
    kinds = PICTURES | _CLIPS
    return sorted(each for each in folder.iterdir() if each.suffix.lower() in kinds)


def _pictures(files: Sequence[Path]) -> list[Read]:
    found: list[Read] = []
    for path in files:
        if path.suffix.lower() in PICTURES:
            found.append(partial(read_picture, path))
        else:
            found += [partial(_unpacked, packed) for packed in _frames(path)]
    return found


def _frames(path: Path) -> list[np.ndarray]:
    """Frames of a clip, packed as JPEG: 20 times less memory."""
    try:
        with closing(open_clip(path)) as clip:
            count = 0
            while clip.skip():
                count += 1
            clip.rewind()
            step, found = max(1, -(-count // MOST_FRAMES)), list[np.ndarray]()
            while (image := clip.read()) is not None:
                found.append(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 95])[1])
                for _ in range(step - 1):
                    clip.skip()
    except DeviceError as error:
        raise ConfigError(f"{path} cannot be read as a clip: {error}; mend or remove it") from error
    return found


def _unpacked(packed: np.ndarray) -> np.ndarray:
    image = cv2.imdecode(packed, cv2.IMREAD_COLOR)
    assert image is not None
    return image


def varied(image: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A part of a picture, turned, perhaps mirrored, in another light; as large as the picture, or
    ``_SIDE`` if that is less."""
    longest = max(image.shape[:2])
    if longest > 2 * _SIDE:
        shrunk = 2 * _SIDE / longest
        image = cv2.resize(image, None, fx=shrunk, fy=shrunk, interpolation=cv2.INTER_AREA)
    given = np.array(image.shape[1::-1], float)
    size = np.round(given * min(1, _SIDE / given.max()))
    share = float(np.exp(random.uniform(np.log(_LEAST_SHARE), 0)))
    angle = np.deg2rad(random.uniform(-_TURN_DEGREES, _TURN_DEGREES))
    across = np.array([np.cos(angle), np.sin(angle)]) * size[0] / given[0] / share
    down = np.array([-across[1], across[0]])
    if random.random() < 0.5:
        across = -across
    turned = np.stack([across, down], axis=1)
    middle = given * (0.5 + (random.random(2) - 0.5) * (1 - share))
    cut = cv2.warpAffine(
        image,
        np.column_stack([turned, size / 2 - turned @ middle]),
        (int(size[0]), int(size[1])),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REFLECT_101,
    )
    light = random.uniform(0.6, 1.4) * random.uniform(0.9, 1.1, 3)
    levels = np.arange(256)[:, None] * light + random.uniform(-20, 20)
    table = np.clip(levels, 0, 255).astype(np.uint8)
    return cv2.LUT(cut, table[None])
