"""Labelled pictures: the files of Fashion-MNIST and MNIST, or a folder with one sub-folder a class.

What a network learns from and what it is judged by are apart: the two parts of the files, or a
fifth of each class of a folder, drawn by a seed.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from heimdall.capture import readers, series
from heimdall.errors import ConfigError, DeviceError

FASHION = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
TEST_SHARE = 5  # every fifth picture of a class
PICTURES = series.PICTURES - {".gif"}  # that may be a clip
_BYTES = 0x08  # the idx format's code for unsigned bytes
_DEBIAN = "the Debian package dataset-fashion-mnist puts them into /usr/share/datasets"


@dataclass(frozen=True)
class Pictures:
    """Pictures with their labels. ``read(i)`` gives picture i, BGR uint8 (h, w, 3)."""

    labels: np.ndarray  # (n,) int64
    read: Callable[[int], np.ndarray]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """``classes`` in the order of the network's outputs, what to train with, what to test with."""

    classes: tuple[str, ...]
    train: Pictures
    test: Pictures

    def fewer(self, count: int | None, seed: int = 0) -> Dataset:
        """These data with ``count`` pictures to train with, drawn by the seed; None: with all."""
        if count is None or count >= len(self.train):
            return self
        chosen = np.random.default_rng(seed).permutation(len(self.train))[:count]
        whole = self.train
        few = Pictures(whole.labels[chosen], lambda index: whole.read(int(chosen[index])))
        return replace(self, train=few)


def open_dataset(path: str | Path, seed: int = 0, classes: Sequence[str] = ()) -> Dataset:
    """The labelled pictures at ``path``: a folder of idx files (``train-images-idx3-ubyte`` and
    three more, packed or not), or of sub-folders of pictures, a class each, in the order of their
    names or in that of ``classes``.

    Raises ConfigError where there are no labels, fewer than two classes, or too few pictures.
    """
    path = Path(path)
    if not path.is_dir():
        raise ConfigError(f"no folder of labelled pictures at {path}; {_DEBIAN}")
    images = _idx_file(path, "train-images-idx3-ubyte")
    found = _of_idx_files(path) if images else _of_folders(path, seed, classes)
    for name, part in (("train", found.train), ("test", found.test)):
        if len(np.unique(part.labels)) < len(found.classes):
            raise ConfigError(f"{path} has classes without a picture to {name} with: give more")
    return found


# --- idx files ---


def _idx_file(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)


def _of_idx_files(folder: Path) -> Dataset:
    parts = [_idx_part(folder, part) for part in ("train", "t10k")]
    count = int(max(part.labels.max() for part in parts)) + 1
    fashion = count == len(FASHION) and "fashion" in folder.resolve().name
    return Dataset(FASHION if fashion else tuple(map(str, range(count))), *parts)


def _idx_part(folder: Path, part: str) -> Pictures:
    found = [_idx_file(folder, f"{part}-{rest}") for rest in _IDX_FILES]
    for path, rest in zip(found, _IDX_FILES, strict=True):
        if path is None:
            what = "labels" if "labels" in rest else "pictures"
            raise ConfigError(f"{folder} has no {what}: {part}-{rest} is missing; {_DEBIAN}")
    images, labels = (_read_idx(path) for path in found if path is not None)
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or not len(labels):
        raise ConfigError(
            f"{found[0]} holds {list(images.shape)} and {found[1]} {list(labels.shape)}: "
            "one label a picture is needed"
        )
    return Pictures(labels.astype(np.int64), lambda index: cv2.merge([images[index]] * 3))


_IDX_FILES = ("images-idx3-ubyte", "labels-idx1-ubyte")


def _read_idx(path: Path) -> np.ndarray:
    """An array of bytes in the idx format: two zeros, type, number of axes, their lengths, data."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        zeros, kind, axes = struct.unpack(">HBB", raw[:4])
        shape = struct.unpack(f">{axes}I", raw[4 : 4 + 4 * axes])
        if zeros or kind != _BYTES:
            raise ValueError(f"its first bytes are {raw[:4].hex()}, not 0000{_BYTES:02x} and axes")
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)
    except (OSError, EOFError, ValueError, struct.error) as error:
        raise ConfigError(f"{path} is no idx file of bytes, or is truncated: {error}") from error


# --- folders of pictures ---


def _of_folders(folder: Path, seed: int, classes: Sequence[str]) -> Dataset:
    groups = {each.name: _pictures(each) for each in sorted(folder.iterdir()) if each.is_dir()}
    groups = {name: files for name, files in groups.items() if files}
    if not groups:
        raise ConfigError(
            f"{folder} has no labels: put the pictures of each class into a sub-folder that has "
            f"the class's name, or give a folder of idx files ({_DEBIAN})"
        )
    if len(groups) == 1:
        raise ConfigError(f"{folder} has the one class {next(iter(groups))!r}: give two or more")
    names = _in_order(folder, tuple(groups), classes)
    random = np.random.default_rng(seed)
    parts: tuple[list[tuple[Path, int]], ...] = ([], [])
    for label, name in enumerate(names):
        for place, index in enumerate(random.permutation(len(groups[name]))):
            parts[place % TEST_SHARE == 0].append((groups[name][index], label))
    return Dataset(names, *map(_of_files, parts))


def _in_order(folder: Path, found: tuple[str, ...], classes: Sequence[str]) -> tuple[str, ...]:
    if not classes:
        return found
    strangers = set(found) ^ set(classes)
    if strangers:
        raise ConfigError(
            f"the classes of {folder} are not those of the model: {', '.join(sorted(strangers))} "
            "are in one of them only"
        )
    return tuple(classes)


def _pictures(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.suffix.lower() in PICTURES)


def _of_files(files: list[tuple[Path, int]]) -> Pictures:
    def read(index: int) -> np.ndarray:
        return read_picture(files[index][0])

    return Pictures(np.array([label for _, label in files], np.int64), read)


def read_picture(path: Path) -> np.ndarray:
    """BGR uint8 (h, w, 3). Raises ConfigError where it is no picture."""
    try:
        return readers.read_picture(path)
    except DeviceError as error:
        raise ConfigError(f"{path} cannot be read as a picture: mend or remove it") from error
