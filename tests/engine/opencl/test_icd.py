"""Drivers are loaded in a child first; one that would end the process is left out and named."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from heimdall.engine.opencl import icd

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drivers are files on Linux only")

CONSTRUCTORS = {
    "aborts": "abort();",
    "exits": "_exit(3);",
    "hangs": "for (;;) pause();",
    "crashes": "*(volatile int *)0 = 1;",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """library(name): a driver that does so as soon as it is loaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to make a broken driver with")
    folder = tmp_path_factory.mktemp("libraries")

    def make(name: str) -> Path:
        made = folder / f"{name}.so"
        code = "#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) "
        code += f"static void begin(void) {{ {CONSTRUCTORS[name]} }}\n"
        (folder / f"{name}.c").write_text(code)
        command = [compiler, "-shared", "-fPIC", "-o", str(made), str(folder / f"{name}.c")]
        subprocess.run(command, check=True)
        return made

    return make


@pytest.fixture
def vendors(tmp_path, monkeypatch):
    """A folder of .icd files: the machine's own, to which a test adds others."""
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "vendors"
    folder.mkdir()
    for file in icd._files(os.environ.get(icd.VARIABLE, "")):
        (folder / file.name).write_text(icd.library(file))
    return folder


def named(vendors: Path, name: str, library: Path | str) -> Path:
    file = vendors / f"{name}.icd"
    file.write_text(f"{library}\n")
    return file


def loaded(library: str) -> str:
    """Where the system's loader finds a library."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print(open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", code, library], capture_output=True, text=True)
    name = Path(library).name.split(".so")[0]
    return next(line.split()[-1] for line in done.stdout.splitlines() if f"/{name}" in line)


def devices_with(vendors: Path, found: icd.Drivers) -> int:
    """How many devices a new process sees that loads what was found."""
    code = (
        "import pyopencl as cl\ntry: print(sum(len(p.get_devices()) for p in cl.get_platforms()))"
    )
    code += "\nexcept cl.Error: print(0)"
    variables = {**os.environ, icd.VARIABLE: str(vendors), **found.environment}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=variables
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_a_driver_that_ends_the_process_is_left_out_and_the_others_are_used(vendors, library, name):
    there = devices_with(vendors, icd.Drivers())
    bad = named(vendors, "bad", library(name))
    found = icd.find(sorted(vendors.glob("*.icd")), limit_s=20 if name == "hangs" else 60)
    how = {"aborts": "SIGABRT", "exits": "status 3", "hangs": "hangs", "crashes": "SIGSEGV"}
    ((file, why),) = found.problems
    assert file == str(bad)
    assert how[name] in why
    assert devices_with(vendors, found) == there


def test_a_library_that_does_not_load_is_named(vendors, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    named(vendors, "text", tmp_path / "text.so")
    named(vendors, "away", "libnowhere.so.1")
    found = dict(icd.find(sorted(vendors.glob("*.icd"))).problems)
    assert "cannot be loaded" in found[str(vendors / "text.icd")]
    assert "libnowhere.so.1" in found[str(vendors / "away.icd")]


def test_drivers_that_are_all_right_are_left_to_the_loader(vendors):
    files = sorted(vendors.glob("*.icd"))
    if not files:
        pytest.skip("no OpenCL here")
    assert icd.find(files) == icd.Drivers()


def test_without_any_nothing_is_tried(vendors):
    assert icd.find([], ["/nowhere"]) == icd.Drivers()


def test_what_is_kept_is_not_tried_again_until_a_file_changes(vendors, tmp_path):
    bad = named(vendors, "away", "libnowhere.so.1")
    first = icd.find([bad])
    assert first.problems
    assert icd.find([bad], ["/nowhere"]) == first  # a command that cannot be run
    library = tmp_path / "other.so"
    library.write_text("no library")
    named(vendors, "away", library)
    assert str(library) in icd.find([bad]).problems[0][1]


def test_what_was_left_out_is_tried_again_when_asked_to(vendors, monkeypatch):
    bad = named(vendors, "away", "libnowhere.so.1")
    assert icd.find([bad]).problems
    repaired = [
        sys.executable,
        "-c",
        "from heimdall.system.child import report as r; r({'done': 1})",
    ]
    assert not icd.find([bad], repaired, again=True).problems
    assert not icd.find([bad]).problems


def test_a_damaged_file_of_the_cache_is_found_out_anew(vendors, tmp_path, caplog):
    bad = named(vendors, "away", "libnowhere.so.1")
    first = icd.find([bad])
    (file,) = (tmp_path / "cache" / "drivers").glob("*.json")
    file.write_text("{")
    with caplog.at_level(logging.WARNING):
        assert icd.find([bad]) == first
    assert "tried again" in caplog.text


def test_what_others_have_put_among_the_drivers_is_not_loaded(vendors):
    bad, good = named(vendors, "away", "libnowhere.so.1"), sorted(vendors.glob("*.icd"))[:1]
    if good == [bad]:
        pytest.skip("no OpenCL here")
    folder = Path(icd.find([*good, bad]).folder)
    (right,) = folder.iterdir()
    before = right.read_bytes()
    right.write_text("evil.so")
    (folder / "99-more.icd").write_text("evil.so")
    assert Path(icd.find([*good, bad]).folder) == folder
    assert list(folder.iterdir()) == [right]
    assert right.read_bytes() == before


def test_a_driver_in_pythons_environment_is_found_and_given_to_the_loader(
    vendors, tmp_path, monkeypatch
):
    """As intel-opencl-rt puts it there, where OpenCL's loader does not look."""
    own = sorted(vendors.glob("*.icd"))
    if not own:
        pytest.skip("no OpenCL here")
    prefix = tmp_path / "venv"
    environment = prefix / "etc" / "OpenCL" / "vendors"
    environment.mkdir(parents=True)
    monkeypatch.setattr(icd, "PREFIXES", (prefix,))
    monkeypatch.setattr(icd, "SYSTEM", tmp_path / "none")
    (prefix / "lib").mkdir()
    real = Path(loaded(icd.library(own[0])))
    packaged = prefix / "lib" / real.name
    packaged.symlink_to(real)
    named(environment, "cpu", f"/where/it/was/built/{real.name}")
    named(environment, "other", "/where/it/was/built/libother.so")  # which the package lacks
    files = icd._files("")
    assert [file.name for file in files] == ["cpu.icd"]
    found = icd.find(files)
    assert not found.problems
    (given,) = Path(found.folder).glob("*.icd")
    assert given.read_text().strip() == str(packaged)
