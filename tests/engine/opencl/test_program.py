"""Compiled kernels are kept as binaries; a damaged or foreign one is compiled again."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pytest
from pyopencl import invoker

from heimdall.engine.opencl.device import select
from heimdall.engine.opencl.launch import Kernel
from heimdall.engine.opencl.program import Programs
from heimdall.errors import DeviceError

ROOT = Path(__file__).parents[3]
TRIPLE = Kernel.of(
    "__kernel void triple(__global float* x) { x[get_global_id(0)] *= 3; }", "triple"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path))
    return tmp_path / "kernels"


def tripled(context: cl.Context) -> list[float]:
    queue = cl.CommandQueue(context)
    values = np.array([1, 2], np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffer = cl.Buffer(context, flags, hostbuf=values)
    kernel = Programs(context).kernel(TRIPLE)
    kernel(queue, (2,), (1,), buffer)
    cl.enqueue_copy(queue, values, buffer)
    return values.tolist()


def test_a_second_context_uses_the_binary_of_the_first(cache):
    context = cl.Context([select()])
    assert tripled(context) == [3, 6]
    assert len(list(cache.iterdir())) == 1
    second = cl.Context([select()])
    assert not Programs(second).build(TRIPLE)  # not compiled
    assert tripled(second) == [3, 6]


def test_a_source_is_not_even_made_where_there_is_a_binary(cache):
    context = cl.Context([select()])
    assert tripled(context) == [3, 6]

    def fail():
        raise AssertionError

    Programs(context).build(Kernel(TRIPLE.name, TRIPLE.identity, fail))


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:-9], lambda b: b[:40] + b"x" * 99])
def test_a_damaged_binary_is_compiled_again_and_replaced(cache, damage, caplog):
    context = cl.Context([select()])
    assert tripled(context) == [3, 6]
    (file,) = cache.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert tripled(context) == [3, 6]
    assert "is damaged: compiling again" in caplog.text
    # What is in it is the driver's matter: PoCL adds the variants that ran by then.
    assert not Programs(cl.Context([select()])).build(TRIPLE)  # read, not compiled


def test_a_whole_binary_of_another_driver_is_compiled_again(cache, caplog):
    context = cl.Context([select()])
    assert tripled(context) == [3, 6]
    (file,) = cache.iterdir()
    foreign = b"of a driver that is not here any more" * 9
    file.write_bytes(hashlib.sha256(foreign).digest() + foreign)
    assert tripled(context) == [3, 6]
    assert "is refused by the driver: compiling again" in caplog.text
    assert file.read_bytes()[32:] != foreign


def test_another_driver_has_files_of_its_own(cache, monkeypatch):
    """Of one name for a device: an update must not read what the old one wrote."""
    context = cl.Context([select()])
    assert tripled(context) == [3, 6]
    programs = Programs(context)
    device = context.devices[0]
    names = {"platform": device.platform, "name": device.name, "version": device.version}
    updated = SimpleNamespace(**names, driver_version="next")
    monkeypatch.setattr(programs, "_device", updated)
    assert programs.build(TRIPLE)
    assert len(list(cache.iterdir())) == 2


def test_a_full_disk_is_no_error(cache, monkeypatch, caplog):
    def full(temporary, path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    assert tripled(cl.Context([select()])) == [3, 6]
    assert "cannot be saved" in caplog.text
    assert os.strerror(errno.ENOSPC) in caplog.text
    assert list(cache.iterdir()) == []


def test_two_processes_that_write_one_cache_are_both_right(cache):
    code = (
        "from tests.engine.opencl.test_program import tripled\n"
        "import pyopencl as cl\n"
        "from heimdall.engine.opencl.device import select\n"
        "print([tripled(cl.Context([select()])) for _ in range(5)])"
    )
    command = [sys.executable, "-c", code]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) for _ in "ab"]
    assert [each.communicate(timeout=120)[0].strip() for each in both] == [
        str([[3.0, 6.0]] * 5)
    ] * 2
    (file,) = cache.iterdir()
    content = file.read_bytes()
    assert hashlib.sha256(content[32:]).digest() == content[:32]


def test_a_kernel_that_does_not_build_is_named_and_leaves_nothing(cache):
    broken = Kernel.of("__kernel void broken( {", "broken")
    with pytest.raises(DeviceError, match="'broken' does not build"):
        Programs(cl.Context([select()])).build(broken)
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_no_error(cache, caplog):
    cache.write_text("a file where the folder should be")
    assert tripled(cl.Context([select()])) == [3, 6]
    assert "cannot be saved" in caplog.text


def test_kernel_objects_of_one_signature_ask_the_disk_cache_of_pyopencl_once(cache, monkeypatch):
    if not hasattr(invoker, "invoker_cache"):
        pytest.skip("this pyopencl keeps no such cache")
    on_disk = _Counted()
    monkeypatch.setattr(invoker, "invoker_cache", on_disk)
    context = cl.Context([select()])
    assert tripled(context) == [3, 6]
    assert (len(on_disk), on_disk.reads) == (1, 1)  # not there: generated, and kept
    for _ in range(3):
        assert tripled(context) == [3, 6]
    assert on_disk.reads == 1
    monkeypatch.setattr(invoker, "invoker_cache", on_disk)  # as in the next process
    for _ in range(3):
        assert tripled(context) == [3, 6]
    assert (len(on_disk), on_disk.reads) == (1, 2)


class _Counted(dict):
    reads = 0
    store_if_not_present = dict.setdefault

    def __getitem__(self, key):
        self.reads += 1
        return super().__getitem__(key)


def test_nothing_is_written_by_those_who_do_not_keep(cache):
    programs = Programs(cl.Context([select()]), keep=False)
    assert programs.build(TRIPLE)
    assert not programs.build(TRIPLE)
    assert not cache.exists()


@pytest.mark.parametrize(("again_s", "found"), [(0.1, True), (4.0, False)])
@pytest.mark.usefixtures("cache")
def test_what_a_driver_keeps_is_known_by_what_this_process_computes(monkeypatch, again_s, found):
    """Not by the time that passes: an app in front may leave a process none."""
    clock = iter([0.0, 5.0, 10.0, 10.0 + again_s])
    fake = SimpleNamespace(process_time=lambda: next(clock))
    monkeypatch.setattr("heimdall.engine.opencl.program.time", fake)
    programs = Programs(cl.Context([select()]), later=True)
    assert programs.build(TRIPLE)
    assert programs.found_again(TRIPLE) is found
