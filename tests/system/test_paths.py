"""Where files are, and that they are never seen half written."""

from __future__ import annotations

import os
import threading

import pytest

from heimdall.errors import ConfigError
from heimdall.system import paths
from heimdall.system.paths import cache_dir, replace_file, slug


def test_what_comes_with_heimdall_is_there():
    assert (paths.APPS / "shopping.py").is_file()
    assert (paths.ASSETS / "models").is_dir()
    assert paths.PROFILES.is_dir()


def test_the_cache_is_made_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "new" / "cache"))
    assert cache_dir() == tmp_path / "new" / "cache"
    assert cache_dir().is_dir()


def test_a_cache_that_cannot_be_says_what_to_set(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("kept")
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ConfigError, match="set HEIMDALL_CACHE"):
        cache_dir()


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("Intel(R) Iris(R) Xe", "intel-r-iris-r-xe"),
        ("pthread-x86_64", "pthread-x86-64"),
        ("../..", "device"),
        ("", "device"),
        ("a" * 99, "a" * 80),
    ],
)
def test_a_device_is_part_of_a_files_name(device, name):
    assert slug(device) == name


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "new" / "a.bin"
    replace_file(path, b"one")
    replace_file(path, b"three")
    assert path.read_bytes() == b"three"
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    replace_file(path, b"one")

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        replace_file(path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_see_one_whole_file_while_several_write(tmp_path):
    path = tmp_path / "a.bin"
    contents = {bytes([number]) * 4096 for number in range(4)}
    replace_file(path, next(iter(contents)))

    def write(content):
        for _ in range(50):
            replace_file(path, content)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]
