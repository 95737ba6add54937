"""Folders that another user could put files into are told from those that are one's own."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from heimdall.system import private
from heimdall.system.private import NotPrivateError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="users have no numbers")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_is_made_for_its_user_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        private.prepare(tmp_path / "above" / "cache")
    finally:
        os.umask(before)
    assert mode(tmp_path / "above" / "cache") == 0o700
    assert mode(tmp_path / "above") == 0o755
    assert list((tmp_path / "above" / "cache").iterdir()) == []  # what was tried is gone


def test_one_that_others_may_read_is_closed(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o755)
    private.prepare(tmp_path / "cache")
    assert mode(tmp_path / "cache") == 0o700


def test_a_file_is_no_folder_and_stays_as_it_is(tmp_path):
    (tmp_path / "cache").touch(mode=0o644)
    with pytest.raises(NotADirectoryError):
        private.prepare(tmp_path / "cache")
    assert mode(tmp_path / "cache") == 0o644


def test_one_that_is_to_be_read_only_stays_so(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o555)
    with contextlib.suppress(PermissionError):  # root may write anywhere
        private.prepare(tmp_path / "cache")
    assert mode(tmp_path / "cache") == 0o500


@pytest.mark.parametrize("bits", [0o770, 0o757, 0o702])
def test_one_that_others_may_write_to_is_not_private(tmp_path, bits):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(bits)
    with pytest.raises(NotPrivateError, match="chmod -R go-w"):
        private.prepare(tmp_path / "cache")
    assert mode(tmp_path / "cache") == bits  # as it was found


def test_nor_is_one_that_others_may_replace(tmp_path):
    (tmp_path / "above" / "cache").mkdir(parents=True)
    (tmp_path / "above").chmod(0o777)
    with pytest.raises(NotPrivateError, match="chmod o-w"):
        private.prepare(tmp_path / "above" / "cache")
    (tmp_path / "above").chmod(0o1777)  # as /tmp: only its owner may move what is in it
    private.prepare(tmp_path / "above" / "cache")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root gives away")
def test_nor_one_of_another_user_even_for_root(tmp_path):
    (tmp_path / "above" / "cache").mkdir(parents=True, mode=0o700)
    os.chown(tmp_path / "above" / "cache", 1234, 1234)
    with pytest.raises(NotPrivateError, match=r"belongs to user 1234.*chown"):
        private.prepare(tmp_path / "above" / "cache")
    os.chown(tmp_path / "above" / "cache", 0, 0)
    os.chown(tmp_path / "above", 1234, 1234)
    with pytest.raises(NotPrivateError, match="another place"):
        private.prepare(tmp_path / "above" / "cache")


def test_that_nothing_can_be_written_is_noticed(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            private.prepare(tmp_path / "cache")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_new_file_is_for_its_user_alone(tmp_path):
    with open(tmp_path / "a", "wb", opener=private.opener) as file:
        file.write(b"secret")
    assert mode(tmp_path / "a") == 0o600
