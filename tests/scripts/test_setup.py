"""The set-up script: what it installs, when it may, and what it says when it may not.

It runs on stand-ins for python, apt-get, sudo and id that only write down how they were called.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("sh") is None, reason="a POSIX shell on Linux"
)

# Answers the script's questions; `have` is a folder of empty files: what is installed.
PYTHON = """#!/bin/sh
echo "python $*" >> "$LOG"
case "$*" in
    *version_info*) exit 0 ;;
    *ensurepip*) [ -e "$HAVE/venv" ] ;;
    "-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *"import cv2"*) [ -e "$HAVE/libgl1" ] ;;
    *open_surface*) [ -e "$HAVE/libegl1" ] ;;
    *pyopencl*) [ -e "$HAVE/pocl-opencl-icd" ] || [ -e "$HAVE/intel" ] ;;
    *"pip install"*cpu*) [ -z "${NO_INTEL:-}" ] && touch "$HAVE/intel" ;;
    *"pip install"*) exit "${PIP_STATUS:-0}" ;;
    *) echo "Python 3.11" ;;
esac
"""
APT = """#!/bin/sh
echo "apt-get $*" >> "$LOG"
[ "$1" = update ] && touch "$HAVE/lists" && exit 0
[ -e "$HAVE/lists" ] || exit 100
case "$*" in *" chromium") [ -z "${NO_CHROMIUM:-}" ] || exit 100 ;; esac
for word; do
    case $word in
        python3-venv) touch "$HAVE/venv" ;;
        xvfb) touch "$HAVE/xvfb"; printf '#!/bin/sh\\n' > "$BIN/Xvfb"; chmod +x "$BIN/Xvfb" ;;
        [a-z]*) touch "$HAVE/$word" ;;
    esac
done
"""


UNAME = """#!/bin/sh
[ "$1" = -m ] && echo "${MACHINE:-x86_64}" || echo Linux
"""


class Machine:
    """A folder that plays a fresh machine: ``have`` names what it has from the start."""

    def __init__(self, folder: Path, have: tuple[str, ...], user: int, sudo: bool, apt: bool):
        self.project = folder / "project"
        self.bin = folder / "bin"
        self.have = folder / "have"
        self.log = folder / "log"
        for path in (self.project / "scripts", self.bin, self.have):
            path.mkdir(parents=True)
        self.log.write_text("")
        shutil.copy(ROOT / "scripts" / "setup.sh", self.project / "scripts")
        for name in have:
            (self.have / name).touch()
        for tool in ("sh", "env", "dirname", "touch", "mkdir", "cp", "chmod"):
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        self.install("python3", PYTHON)
        self.install("uname", UNAME)
        self.install("id", f"#!/bin/sh\necho {user}\n")
        self.install("sudo", '#!/bin/sh\nshift\nexec "$@"\n' if sudo else "#!/bin/sh\nexit 1\n")
        if sudo:
            (self.bin / "true").symlink_to(shutil.which("true") or "/bin/true")
        if apt:
            self.install("apt-get", APT)
        for package, program in (("xvfb", "Xvfb"), ("chromium", "chromium")):
            if package in have:
                self.install(program, "#!/bin/sh\n")

    def install(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def set_up(self, **environment: str) -> subprocess.CompletedProcess[str]:
        places = {"PATH": str(self.bin), "HAVE": str(self.have), "BIN": str(self.bin)}
        return subprocess.run(
            [shutil.which("sh") or "sh", "scripts/setup.sh"],
            cwd=self.project,
            env={**places, "LOG": str(self.log), **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines()

    @property
    def complete(self) -> bool:
        return (self.project / ".venv" / ".heimdall-setup").exists()


EVERYTHING = ("venv", "lists", "libgl1", "libegl1", "pocl-opencl-icd", "xvfb", "chromium")


@pytest.fixture
def machine(tmp_path):
    def make(*have: str, user: int = 0, sudo: bool = False, apt: bool = True) -> Machine:
        return Machine(tmp_path, have, user, sudo, apt)

    return make


def test_a_machine_that_has_everything_gets_only_the_python_packages(machine):
    there = machine(*EVERYTHING)
    done = there.set_up()
    assert done.returncode == 0, done.stderr
    assert there.complete
    assert not any(call.startswith("apt-get") for call in there.calls)
    assert any("pip install" in call and "-e .[dev]" in call for call in there.calls)


@pytest.mark.parametrize(("user", "sudo"), [(0, False), (1000, True)])
def test_a_fresh_machine_gets_what_is_missing_when_permitted(machine, user, sudo):
    there = machine(user=user, sudo=sudo)
    done = there.set_up()
    assert done.returncode == 0, done.stderr
    assert there.complete
    assert "apt-get update -q" in there.calls
    installed = " ".join(call for call in there.calls if call.startswith("apt-get install"))
    packages = "python3-venv libegl1 libgl1-mesa-dri pocl-opencl-icd xvfb chromium"
    for package in packages.split():
        assert package in installed


def test_lists_that_are_there_are_not_fetched_again(machine):
    there = machine("venv", "lists", "libgl1", "libegl1", "xvfb")
    assert there.set_up().returncode == 0
    assert "apt-get update -q" not in there.calls
    assert there.complete


def test_without_permission_it_prints_the_line_to_type_and_looks_again_next_time(machine):
    there = machine("venv", "libgl1", "libegl1", user=1000)
    done = there.set_up(MACHINE="aarch64")
    assert done.returncode == 0
    assert "sudo apt-get install pocl-opencl-icd xvfb" in done.stderr
    assert not any(call.startswith("apt-get") for call in there.calls)
    assert not there.complete


def test_without_opengl_it_fails_because_nothing_can_be_drawn(machine):
    there = machine("venv", "libgl1", user=1000)
    done = there.set_up()
    assert done.returncode == 1
    assert "sudo apt-get install libegl1 libgl1-mesa-dri libgl1" in done.stderr
    assert "OpenGL" in done.stderr


def test_python_without_venv_is_named(machine):
    there = machine("libgl1", user=1000)
    done = there.set_up()
    assert done.returncode == 1
    assert "sudo apt-get install python3-venv" in done.stderr


def test_packages_that_cannot_be_fetched_are_said_so(machine):
    there = machine(*EVERYTHING)
    done = there.set_up(PIP_STATUS="1")
    assert done.returncode == 1
    assert "pip could not install" in done.stderr
    assert not there.complete


def test_a_machine_that_cannot_have_the_browser_is_complete_all_the_same(machine):
    there = machine(*set(EVERYTHING) - {"chromium"})
    done = there.set_up(NO_CHROMIUM="1")
    assert done.returncode == 0
    assert "without Chromium" in done.stderr
    assert there.complete


def test_another_system_is_told_the_packages(machine):
    there = machine("venv", "libgl1", "libegl1", "xvfb", apt=False)
    done = there.set_up(NO_INTEL="1")
    assert done.returncode == 0
    assert "pip could not install it" in done.stderr
    assert "what Debian calls: pocl-opencl-icd" in done.stderr


@pytest.mark.parametrize(("user", "apt"), [(1000, True), (0, False)])
def test_where_apt_is_not_permitted_intels_runtime_takes_pocls_place(machine, user, apt):
    there = machine("venv", "libgl1", "libegl1", "xvfb", "chromium", user=user, apt=apt)
    done = there.set_up()
    assert done.returncode == 0
    assert "Intel's runtime for CPUs goes into .venv instead" in done.stderr
    assert any("pip install" in call and "-e .[dev,cpu]" in call for call in there.calls)
    assert not any(call.startswith("apt-get") for call in there.calls)
    assert there.complete


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_does_nothing_more_once_set_up(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "scripts").mkdir()
    script = 'mkdir -p .venv; touch "$1"; echo ran >> log\n'
    (tmp_path / "scripts" / "setup.sh").write_text(script)
    for _ in range(2):
        subprocess.run(["make", "setup"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "log").read_text() == "ran\n"
    os.utime(tmp_path / "pyproject.toml", (2**31, 2**31))
    subprocess.run(["make", "setup"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "log").read_text() == "ran\nran\n"


def test_the_scripts_are_executable_and_valid_shell():
    for script in ("scripts/setup.sh", "scripts/demo.sh", ".ci/run"):
        path = ROOT / script
        assert os.access(path, os.X_OK)
        shell = path.read_text().splitlines()[0].removeprefix("#!").split()[-1]
        subprocess.run([Path(shell).name, "-n", str(path)], check=True)
