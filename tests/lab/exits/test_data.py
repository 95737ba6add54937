"""Labelled pictures, and what is said of those that cannot be used."""

import gzip
import struct

import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.lab.exits.data import open_dataset
from tests.lab.exits.networks import CLASSES, write_pictures


def write_idx(path, array, *, packed=False):
    raw = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    if packed:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(raw))
    else:
        path.write_bytes(raw)


def idx_folder(folder, *, packed=False, count=12):
    random = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    for part in ("train", "t10k"):
        images = random.integers(0, 256, (count, 5, 7)).astype(np.uint8)
        write_idx(folder / f"{part}-images-idx3-ubyte", images, packed=packed)
        labels = np.arange(count, dtype=np.uint8) % 3
        write_idx(folder / f"{part}-labels-idx1-ubyte", labels, packed=packed)
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_are_read_as_they_are(tmp_path, packed):
    found = open_dataset(idx_folder(tmp_path, packed=packed))
    assert found.classes == ("0", "1", "2")
    assert len(found.train) == len(found.test) == 12
    assert found.train.labels[:4].tolist() == [0, 1, 2, 0]
    image = found.train.read(3)
    assert image.shape == (5, 7, 3)
    first = np.random.default_rng(0).integers(0, 256, (12, 5, 7)).astype(np.uint8)
    assert np.array_equal(image[..., 1], first[3])


def test_a_fifth_of_each_class_of_a_folder_is_kept_for_the_test(tmp_path):
    write_pictures(tmp_path)
    found = open_dataset(tmp_path, seed=3)
    assert found.classes == CLASSES
    assert np.bincount(found.train.labels).tolist() == [16, 16, 16]
    assert np.bincount(found.test.labels).tolist() == [4, 4, 4]
    assert found.test.read(0).shape == (16, 16, 3)


def test_no_picture_is_in_both_parts_and_the_seed_decides(tmp_path):
    write_pictures(tmp_path)

    def content(seed):
        found = open_dataset(tmp_path, seed)
        return [
            {part.read(i).tobytes() for i in range(len(part))} for part in (found.train, found.test)
        ]

    train, test = content(0)
    assert not train & test
    assert content(0) == [train, test]
    assert content(1)[1] != test


def test_fewer_pictures_are_drawn_from_all_classes(tmp_path):
    found = open_dataset(write_pictures(tmp_path))
    few = found.fewer(12)
    assert len(few.train) == 12
    assert set(few.train.labels) == {0, 1, 2}
    assert few.test is found.test
    everything = {found.train.read(i).tobytes(): found.train.labels[i] for i in range(48)}
    assert all(everything[few.train.read(i).tobytes()] == few.train.labels[i] for i in range(12))
    assert found.fewer(None) is found.fewer(48) is found


def test_classes_come_in_the_order_of_the_model(tmp_path):
    write_pictures(tmp_path)
    assert open_dataset(tmp_path, classes=("flat", "across", "down")).classes[0] == "flat"
    with pytest.raises(ConfigError, match="boots, flat are in one"):
        open_dataset(tmp_path, classes=("boots", "across", "down"))


def test_a_folder_that_is_not_there_names_the_package(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere; .*dataset-fashion-mnist"):
        open_dataset(tmp_path / "nowhere")


def test_pictures_without_labels_are_refused(tmp_path):
    write_pictures(tmp_path, 2)
    with pytest.raises(ConfigError, match="no labels: put the pictures of each class into a sub"):
        open_dataset(tmp_path / "down")
    idx = idx_folder(tmp_path / "idx")
    (idx / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(ConfigError, match="no labels: train-labels-idx1-ubyte is missing"):
        open_dataset(idx)


def test_one_class_is_not_enough(tmp_path):
    write_pictures(tmp_path, 10, ("down",))
    with pytest.raises(ConfigError, match="has the one class 'down'"):
        open_dataset(tmp_path)


def test_a_class_with_one_picture_has_none_to_train_with(tmp_path):
    write_pictures(tmp_path, 1)
    with pytest.raises(ConfigError, match="classes without a picture to train with"):
        open_dataset(tmp_path)


def test_a_picture_that_cannot_be_read_is_named(tmp_path):
    write_pictures(tmp_path, 5)
    for path in (tmp_path / "flat").iterdir():
        path.write_bytes(b"no picture")
    found = open_dataset(tmp_path)
    index = int(np.flatnonzero(found.train.labels == 2)[0])
    with pytest.raises(ConfigError, match=r"flat.*png cannot be read as a picture"):
        found.train.read(index)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("train-images-idx3-ubyte", b"", "is no idx file of bytes, or is truncated"),
        ("train-labels-idx1-ubyte", b"\0\0\x0d\1\0\0\0\1abcd", "not 000008"),
        ("t10k-labels-idx1-ubyte", struct.pack(">HBBI", 0, 8, 1, 9) + b"ab", "truncated"),
        ("t10k-labels-idx1-ubyte", struct.pack(">HBBI", 0, 8, 1, 2) + b"ab", "one label a picture"),
    ],
)
def test_damaged_idx_files_are_named(tmp_path, name, content, says):
    folder = idx_folder(tmp_path)
    (folder / name).write_bytes(content)
    with pytest.raises(ConfigError, match=says) as caught:
        open_dataset(folder)
    assert name.split("-")[0] in str(caught.value)


def test_a_packed_file_that_breaks_off_is_named(tmp_path):
    folder = idx_folder(tmp_path, packed=True)
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ConfigError, match="truncated"):
        open_dataset(folder)
