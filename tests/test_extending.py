"""docs/do/extend.md works as it stands: every file is written and run, in a process of its own."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from heimdall.errors import DeviceError

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "do" / "extend.md").read_text(
    encoding="utf-8"
)
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = [
    line for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in text.splitlines()
]


def opencl_missing() -> bool:
    from heimdall.engine.opencl import device

    try:
        device.select()
    except (DeviceError, ImportError):
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_what_the_page_shows_runs(tmp_path, command):
    if "opencl" in FILES[command.split()[-1]] and opencl_missing():
        pytest.skip("no OpenCL here")
    for name, code in FILES.items():
        (tmp_path / name).write_text(f"# {name}\n{code}")
    program, *words = shlex.split(command)
    assert program == "python"
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=tmp_path, timeout=250
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_file_of_the_page_is_run():
    assert {command.split()[-1] for command in COMMANDS} == set(FILES)


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:heimdall|tests)/[a-z_/]+(?:\.py)?)`", PAGE)))
)
def test_every_path_on_the_page_exists(path):
    assert (Path(__file__).resolve().parents[1] / path).exists()


def test_every_group_of_entry_points_on_the_page_is_looked_for():
    import heimdall

    groups = {
        each.group
        for each in (heimdall.SCHEDULERS, heimdall.CATALOG, heimdall.SOURCES, heimdall.ENGINES)
    }
    assert set(re.findall(r"entry point `([a-z.]+)`", PAGE)) == groups
