"""The drivers that OpenCL's loader may load: those that do not end the process.

On Linux a driver is named by a file ``*.icd`` in /etc/OpenCL/vendors or in the environment of
Python (where a package such as intel-opencl-rt puts it, which the loader does not know). The
loader takes all of them into this process, so all are loaded in a child first; where that ends
it, each is loaded alone, and those that fail are left out. What was found is kept until a file
changes. ``OCL_ICD_VENDORS`` is obeyed as the loader does.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import logging
import os
import site
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heimdall.engine.opencl.version import packages
from heimdall.errors import DeviceError
from heimdall.system import findings, paths, private, python
from heimdall.system.child import BROKEN, LIMIT_S, report, watch
from heimdall.system.environment import variables

log = logging.getLogger(__name__)

VARIABLE = "OCL_ICD_VENDORS"
SYSTEM = Path("/etc/OpenCL/vendors")
PREFIXES = tuple(Path(each) for each in (sys.prefix, site.getuserbase()))
LOADED = python.command("heimdall.engine.opencl.icd")


@dataclass(frozen=True)
class Drivers:
    """``folder``: what ``OCL_ICD_VENDORS`` has to be; empty: as it is. ``problems``: (file, why it
    is left out)."""

    folder: str = ""
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def environment(self) -> Mapping[str, str]:
        """For this process while drivers are loaded, and for children that load them."""
        return {VARIABLE: self.folder} if self.folder else {}


def drivers(*, again: bool = False) -> Drivers:
    """The drivers that may be loaded here: as kept, or tried now. ``again``: try once more what
    was left out, unless this process has asked before: the loader reads once."""
    if sys.platform != "linux":
        return Drivers()  # drivers are found in other ways, which no variable changes
    chosen = os.environ.get(VARIABLE, "")
    if chosen not in _found:
        _found[chosen] = find(_files(chosen), again=again)
    return _found[chosen]


def loading() -> AbstractContextManager[None]:
    """Within this block OpenCL's loader finds the drivers that may be loaded, and no other."""
    return variables(drivers().environment)


_found: dict[str, Drivers] = {}  # by what the variable was


def _files(chosen: str) -> list[Path]:
    """The .icd files that the loader would read, and those of Python's environment."""
    if chosen and not Path(chosen).is_dir():
        return [Path(chosen)]
    if chosen:
        return sorted(Path(chosen).glob("*.icd"))
    packaged = [
        file
        for prefix in PREFIXES
        for file in sorted((prefix / "etc" / "OpenCL" / "vendors").glob("*.icd"))
        if Path(library(file)).is_file()  # Intel's names another driver that it does not have
    ]
    return [*sorted(SYSTEM.glob("*.icd")), *packaged]


def find(
    files: Sequence[Path],
    command: Sequence[str] = LOADED,
    limit_s: float = LIMIT_S,
    *,
    again: bool = False,
) -> Drivers:
    """Which of these drivers may be loaded; ``command`` tries them (see ``main``)."""
    if not files:
        return Drivers()
    key = "\0".join([packages(), *(part for file in files for part in (str(file), *_state(file)))])
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    path = paths.cache_dir() / "drivers" / f"{digest}.json"
    problems = findings.read(path, _problems, "the drivers are tried again")
    if problems is None or (again and problems):
        problems = _tried(files, command, limit_s)
        for name, why in problems.items():
            log.warning("OpenCL driver %s is left out: %s", name, why)
        findings.write(path, {"problems": problems}, "drivers are tried at each start")
    usable = [file for file in files if str(file) not in problems]
    as_found = not problems and not any(_prefix(file) for file in files)
    return Drivers("" if as_found else _folder(usable), tuple(problems.items()))


def _tried(files: Sequence[Path], command: Sequence[str], limit_s: float) -> dict[str, str]:
    """What is wrong with each file that cannot be used, found out by children."""
    problems: dict[str, str] = {}
    while left := [file for file in files if str(file) not in problems]:
        task = json.dumps({str(file): library(file) for file in left})
        outcome = watch([*command, task], {VARIABLE: _folder(left)}, limit_s)
        problems |= {name: why for name, why in outcome.found.items() if why}
        if not outcome.ended:
            break
        if outcome.broken:
            raise DeviceError(f"{BROKEN}, so that drivers cannot be tried: {outcome.ended}")
        if outcome.step in map(str, left):
            problems[outcome.step] = outcome.ended
        elif len(left) == 1:
            problems[str(left[0])] = outcome.ended
        else:  # together: which one?
            for file in left:
                problems |= _tried([file], command, limit_s)
            break
    return problems


def main() -> None:
    """Load each driver that is named, then all of them as an engine would; report problems."""
    import pyopencl as cl  # before the first step: where it is broken, no driver is to blame

    for name, named in json.loads(sys.argv[1]).items():
        report({"step": name})
        try:
            ctypes.CDLL(named)
            report({"found": name, "value": ""})
        except OSError as error:
            report({"found": name, "value": f"it cannot be loaded: {error}"})
    report({"step": "all"})
    with contextlib.suppress(cl.Error):  # no platform, or one without a device
        for platform in cl.get_platforms():
            for device in platform.get_devices():
                device.name.strip()
    report({"done": True})
    os._exit(0)


def library(file: Path) -> str:
    """The library that an .icd file names; anything else is a library itself."""
    try:
        text = file.read_text(errors="replace").strip() if file.suffix == ".icd" else str(file)
    except OSError:  # it cannot be read, and will not load either
        return str(file)
    prefix = _prefix(file)
    if prefix is not None:  # of a Python package: the path is of the machine that built it
        packaged = prefix / "lib" / Path(text).name
        return str(packaged) if packaged.is_file() else text
    return text


def _prefix(file: Path) -> Path | None:
    """The Python environment that a driver's file belongs to."""
    prefix = file.parent.parent.parent.parent
    return prefix if prefix in PREFIXES else None


def _folder(files: Sequence[Path]) -> str:
    """A folder with these drivers alone, made unless it is there, and put right where it differs:
    the loader runs whatever is named there. Raises DeviceError where that cannot be done."""
    named = {f"{index:02}-{file.stem}.icd": library(file) for index, file in enumerate(files)}
    digest = hashlib.sha256(json.dumps(named).encode()).hexdigest()[:16]
    folder = paths.cache_dir() / "drivers" / digest
    wanted = {name: f"{text}\n".encode() for name, text in named.items()}
    try:
        private.make(folder)
        found = {path.name: path.read_bytes() for path in folder.glob("*.icd")}
        for stray in found.keys() - wanted.keys():
            (folder / stray).unlink(missing_ok=True)
        for name, content in wanted.items():
            if found.get(name) != content:
                paths.replace_file(folder / name, content)
    except OSError as error:
        raise DeviceError(f"OpenCL's drivers cannot be listed in {folder} ({error})") from error
    return str(folder)


def _state(file: Path) -> list[str]:
    """Changes with the file and with the library that it names."""
    name = library(file)
    for path in (Path(name), *(folder / name for folder in _library_folders())):
        with contextlib.suppress(OSError):
            found = path.stat()
            return [name, str(path), str(found.st_mtime_ns), str(found.st_size)]
    return [name]


def _library_folders() -> list[Path]:
    """Where a library without a folder is looked for, near enough."""
    named = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    machine = f"{os.uname().machine}-linux-gnu"
    usual = (f"/usr/lib/{machine}", "/usr/lib64", "/usr/lib", "/usr/local/lib")
    return [Path(name) for name in (*filter(None, named), *usual)]


def _problems(content: Any) -> dict[str, str]:
    return {str(name): str(why) for name, why in content["problems"].items()}


if __name__ == "__main__":
    main()
