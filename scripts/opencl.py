"""Unpack other implementations of OpenCL into a folder, for the tests: opencl.py [NAME...]

    intel     Intel's runtime for CPUs, from the Python package index (x86-64)
    rusticl   Mesa's OpenCL on llvmpipe, from Debian or Ubuntu
    oclgrind  an interpreter that finds races and bad accesses, from Debian or Ubuntu

Nothing is installed and root is not needed: packages are downloaded by pip and by apt-get, in the
versions below or those of the distribution, and unpacked into the folder `opencl` of Heimdall's
cache in the user's home (XDG_CACHE_HOME changes that). Each gets a file `environment.json` there:
what to set for a process that is to see this implementation and no other. What cannot be had is
said, and is no failure. `--run NAME COMMAND...` runs a command so.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import platformdirs

from heimdall.system import paths, private

# Tried with these. Newer ones of a major version may be had by editing this line.
INTEL = ("intel-opencl-rt==2026.1.0", "intel-cmplr-lib-rt==2026.1.0")
DEBIAN = {"rusticl": ("mesa-opencl-icd",), "oclgrind": ("oclgrind",)}
DRIVER = {
    "intel": "libintelocl.so",
    "rusticl": "libRusticlOpenCL.so.1",
    "oclgrind": "liboclgrind-rt-icd.so",
}
MORE = {  # beside OCL_ICD_VENDORS and LD_LIBRARY_PATH
    "intel": {},
    "rusticl": {"RUSTICL_ENABLE": "llvmpipe"},
    "oclgrind": {},
}
NAMES = tuple(MORE)


class UnavailableError(Exception):
    """An implementation that cannot be had here, and why."""


def folder() -> Path:
    """Where implementations are unpacked: not in a cache of tests, which may not last."""
    return Path(platformdirs.user_cache_dir("heimdall", appauthor=False)) / "opencl"


def environment(name: str) -> dict[str, str]:
    """The variables for a process that is to use it; unpacks it unless that was done.

    Raises UnavailableError.
    """
    made = folder() / name
    _keep_others_out(folder())
    with _alone(name):
        variables = _known(name, made)
        if variables is None:
            variables = _unpack(name, made)
            content = json.dumps({"packages": _wanted(name), "variables": variables}, indent=1)
            paths.replace_file(made / "environment.json", content.encode())
        if name == "rusticl":
            _link_functions(made)
    return variables


def _keep_others_out(place: Path) -> None:
    """What lies there is loaded into processes."""
    try:
        private.prepare(Path(os.path.realpath(place)))
    except (OSError, private.NotPrivateError) as error:
        raise UnavailableError(f"{place} is not used: {error}") from error


@contextlib.contextmanager
def _alone(name: str) -> Iterator[None]:
    """Tests run side by side, and one of them unpacks."""
    if sys.platform != "linux":
        raise UnavailableError(f"{sys.platform}: only on Linux")
    import fcntl

    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _known(name: str, made: Path) -> dict[str, str] | None:
    try:
        known = json.loads((made / "environment.json").read_text())
        return known["variables"] if known["packages"] == _wanted(name) else None
    except (OSError, ValueError, KeyError):
        return None


def _wanted(name: str) -> list[str]:
    return list(INTEL if name == "intel" else DEBIAN[name])


def _unpack(name: str, made: Path) -> dict[str, str]:
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    if name == "intel":
        _from_pip(made)
    else:
        _from_debian(DEBIAN[name], made)
    drivers = made / "drivers"
    drivers.mkdir()
    libraries = [path for path in made.rglob("*.so*") if path.is_file()]
    places = [path for path in libraries if path.name == DRIVER[name]]
    if not places:
        raise UnavailableError(f"its packages hold no {DRIVER[name]}")
    (drivers / f"{name}.icd").write_text(f"{places[0]}\n")
    if name == "rusticl":
        _move_library_of_functions(made, places[0])
    folders = sorted({str(path.parent) for path in libraries if ".so" in path.name})
    before = os.environ.get("LD_LIBRARY_PATH")
    search = ":".join([*folders, *([before] if before else [])])
    return {"OCL_ICD_VENDORS": str(drivers), "LD_LIBRARY_PATH": search, **MORE[name]}


def _from_pip(made: Path) -> None:
    """As in an environment of its own, but with nothing else in it."""
    if platform.machine() != "x86_64":
        raise UnavailableError(f"{platform.machine()}: only on x86-64")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--ignore-installed"]
    _call([*command, "--no-warn-script-location", "--prefix", str(made), *INTEL])


def _from_debian(packages: Sequence[str], made: Path) -> None:
    """The packages and those that they need and this system lacks, unpacked beside each other."""
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise UnavailableError("neither Debian nor Ubuntu")
    lists: list[str] = []
    planned = _planned(packages, lists)
    if planned is None:  # no lists of packages yet: fetch our own
        lists = _own_lists()
        _call(["apt-get", "-q", *lists, "update"])
        planned = _planned(packages, lists)
    if planned is None:
        raise UnavailableError(f"this distribution has no {', '.join(packages)}")
    with tempfile.TemporaryDirectory() as folder:
        _call(["apt-get", "-q", *lists, "download", *planned], folder)
        for package in sorted(Path(folder).glob("*.deb")):
            _call(["dpkg", "-x", str(package), str(made)])


def _planned(packages: Sequence[str], lists: Sequence[str]) -> list[str] | None:
    """What apt-get would install, asked without installing; what is installed already is taken
    too, so that a driver of the system's does not serve instead."""
    command = ["apt-get", *lists, "--simulate", "--no-install-recommends", "install", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    new = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("Inst ")]
    return sorted({*new, *packages})


def _own_lists() -> list[str]:
    """apt-get's options for lists of packages below the cache, which needs no root."""
    place = folder() / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (place / name).mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State::lists={place / 'lists'}", "-o", f"Dir::Cache={place / 'cache'}"]


def _move_library_of_functions(made: Path, driver: Path) -> None:
    """Mesa has the path of OpenCL's built-in functions compiled in, below /usr. In the unpacked
    copy it becomes that of links, short enough to fit."""
    functions = made / "usr" / "lib" / "clc"
    if not functions.is_dir():
        return  # of the system's
    short = Path("/tmp") / f"clc-{os.getuid()}"
    content = driver.read_bytes()
    for number, name in enumerate(("spirv-mesa3d-.spv", "spirv64-mesa3d-.spv")):
        old, new = f"/usr/lib/clc/{name}".encode(), f"{short}/{number}".encode()
        content = content.replace(old + b"\0", new.ljust(len(old), b"\0") + b"\0")
    driver.resolve().write_bytes(content)


def _link_functions(made: Path) -> None:
    """The links that ``_move_library_of_functions`` counts on; /tmp does not last."""
    short = Path("/tmp") / f"clc-{os.getuid()}"
    _keep_others_out(short)
    for number, name in enumerate(("spirv-mesa3d-.spv", "spirv64-mesa3d-.spv")):
        target, link = made / "usr" / "lib" / "clc" / name, short / str(number)
        if target.exists() and not (link.is_symlink() and os.readlink(link) == str(target)):
            link.unlink(missing_ok=True)
            link.symlink_to(target)


def _call(command: Sequence[str], where: str | None = None) -> None:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no reason given"]
        raise UnavailableError(f"{Path(command[0]).name} failed: {said[-1]}")


def main(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "--run":
        name, *command = arguments[1:]
        os.execvpe(command[0], command, {**os.environ, **environment(name)})
    for name in arguments or NAMES:
        try:
            print(f"{name}: {environment(name)['OCL_ICD_VENDORS']}")
        except UnavailableError as reason:
            print(f"{name}: not to be had here: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
