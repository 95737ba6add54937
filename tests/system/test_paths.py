"""Where files are, and that they are never seen half written."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import pytest

from heimdall.errors import ConfigError
from heimdall.system import findings, paths
from heimdall.system.paths import cache_dir, replace_file, slug, why_no_cache


@contextlib.contextmanager
def full_disk():
    """No more than 4 KiB fit into a file."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_comes_with_heimdall_is_there():
    assert (paths.APPS / "shopping.py").is_file()
    assert (paths.ASSETS / "models").is_dir()
    assert paths.PROFILES.is_dir()


def test_the_cache_is_made_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "new" / "cache"))
    assert cache_dir() == tmp_path / "new" / "cache"
    assert cache_dir().is_dir()


def test_one_that_cannot_be_made_is_told_once_and_another_is_used(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("kept")
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "file" / "cache"))
    used = cache_dir()
    assert cache_dir() == used
    (record,) = caplog.records
    assert "set HEIMDALL_CACHE to a folder" in record.message
    assert why_no_cache() in record.message
    assert used.stat().st_mode & 0o777 == 0o700
    assert os.environ["HEIMDALL_CACHE"] == str(used)  # for children


def test_without_any_folder_it_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("kept")
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="no temporary one either"):
        cache_dir()


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such modes")
def test_what_others_could_have_put_into_a_cache_is_not_used(tmp_path, monkeypatch, caplog):
    folder = tmp_path / "cache"
    (folder / "drivers").mkdir(parents=True)
    (folder / "drivers" / "evil.icd").write_text("evil.so")
    folder.chmod(0o777)
    monkeypatch.setenv("HEIMDALL_CACHE", str(folder))
    assert list(cache_dir().iterdir()) == []
    (record,) = caplog.records
    assert f"chmod -R go-w {folder}" in record.message
    assert folder.stat().st_mode & 0o777 == 0o777


def test_what_is_there_can_be_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    replace_file(tmp_path / "cache" / "profiles" / "gpu" / "a.json", b"known")
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    with full_disk():
        file = cache_dir() / "profiles" / "gpu" / "a.json"
    assert file.read_bytes() == b"known"
    replace_file(file, b"new")
    assert file.read_bytes() == b"new"
    assert (tmp_path / "cache" / "profiles" / "gpu" / "a.json").read_bytes() == b"known"


def test_a_temporary_cache_goes_with_its_process(tmp_path, run_python):
    (tmp_path / "file").write_text("kept")
    code = """
        import json
        from heimdall.system import paths
        paths.replace_file(paths.cache_dir() / "a" / "b.json", b"{}")
        print(json.dumps(str(paths.cache_dir())))
    """
    environment = {**os.environ, "HEIMDALL_CACHE": str(tmp_path / "file")}
    assert not Path(run_python(code, env=environment)).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such modes")
def test_files_of_the_cache_are_for_their_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    kept, other = cache_dir() / "kernels" / "a.bin", tmp_path / "out" / "a.bin"
    before = os.umask(0o022)
    try:
        replace_file(kept, b"one")
        replace_file(other, b"one")
    finally:
        os.umask(before)
    assert [each.stat().st_mode & 0o777 for each in (kept, kept.parent)] == [0o600, 0o700]
    assert other.stat().st_mode & 0o777 == 0o644


def test_what_a_killed_process_had_begun_goes_once_it_is_old(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    folder = cache_dir() / "kernels"
    folder.mkdir()
    (folder / ".old.bin.12.part").write_bytes(b"half")
    (folder / ".new.bin.34.part").write_bytes(b"half")
    os.utime(folder / ".old.bin.12.part", (0, 0))
    replace_file(folder / "a.bin", b"whole")
    assert sorted(path.name for path in folder.iterdir()) == [".new.bin.34.part", "a.bin"]


def test_a_full_disk_is_told_once_and_leaves_no_part(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    folder = cache_dir()
    with full_disk():
        for kind in ("profiles", "precision", "devices"):
            findings.write(folder / kind / "a.json", "x" * 10_000, "it is found again")
    (record,) = (each for each in caplog.records if each.levelno == logging.WARNING)
    assert "profiles" in record.message
    assert "it is found again" in record.message
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_processes_that_start_at_once_share_an_empty_cache(tmp_path):
    code = """
        import json
        from heimdall.system import findings, paths
        for number in range(200):
            file = paths.cache_dir() / "profiles" / "gpu" / f"{number % 7}.json"
            found = findings.read(file, lambda content: content["all"], "again")
            assert found in (None, "x" * 5000)
            findings.write(file, {"all": "x" * 5000}, "again")
    """
    environment = {**os.environ, "HEIMDALL_CACHE": str(tmp_path / "new" / "cache")}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    running = [
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for _ in range(3)
    ]
    said = [each.communicate(timeout=120)[0] for each in running]
    assert [each.returncode for each in running] == [0] * 3, said
    assert said == [""] * 3
    files = [path.name for path in (tmp_path / "new").rglob("*") if path.is_file()]
    assert sorted(files) == [f"{number}.json" for number in range(7)]


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
