"""Environment variables are there inside a block, and as they were behind it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from heimdall.system.environment import SILENT, silence, variables

NAMES = ("HEIMDALL_TEST_SET", "HEIMDALL_TEST_NEW", "HEIMDALL_TEST_REMOVED")
SET, NEW, REMOVED = NAMES


@pytest.fixture(autouse=True)
def _before(monkeypatch):
    monkeypatch.setenv(SET, "as it was")
    monkeypatch.delenv(NEW, raising=False)
    monkeypatch.setenv(REMOVED, "as it was")


def found():
    return [os.environ.get(name) for name in NAMES]


def test_variables_hold_within_the_block_alone():
    with variables({SET: "1", NEW: "2", REMOVED: None}):
        assert found() == ["1", "2", None]
    assert found() == ["as it was", None, "as it was"]


def test_a_block_that_fails_puts_them_back_too():
    with pytest.raises(ZeroDivisionError), variables({SET: "1", NEW: "2", REMOVED: None}):
        raise ZeroDivisionError
    assert found() == ["as it was", None, "as it was"]


def test_a_variable_that_cannot_be_set_leaves_the_others_as_they_were():
    with pytest.raises(ValueError, match="null"), variables({SET: "1", NEW: "\0"}):
        pytest.fail("the block is not entered")
    assert found() == ["as it was", None, "as it was"]


def test_what_somebody_else_has_set_meanwhile_stays():
    with variables({SET: "1", NEW: "2", REMOVED: None}):
        os.environ[SET] = os.environ[REMOVED] = "another"
    assert found() == ["another", None, "another"]


def test_a_block_within_a_block_gives_back_what_the_outer_one_set():
    with variables({SET: "1"}):
        with variables({SET: "2", NEW: "2"}):
            assert found() == ["2", "2", "as it was"]
        assert found() == ["1", None, "as it was"]
    assert found() == ["as it was", None, "as it was"]


# onnxruntime reports its use to its makers unless CI is set: a process without that, and with a
# home of its own, is looked at from outside. (With reporting on there are two files in the home,
# and a thread more.)
CHILD = """
import json, os, pathlib, sys
import numpy
before = len(os.listdir("/proc/self/task"))
import heimdall
import onnx
from heimdall.graph.sessions import open_session
session = open_session(onnx.load(sys.argv[1]))
found = {"threads": len(os.listdir("/proc/self/task")) - before}
heimdall.run("marker", headless=True, frames=2, size=(160, 90), device="onnxruntime")
connected = set()
for kind in ("tcp", "tcp6", "udp", "udp6"):
    table = pathlib.Path("/proc/self/net", kind)
    lines = table.read_text().splitlines()[1:] if table.exists() else []
    connected |= {f"socket:[{line.split()[9]}]" for line in lines}
opened = set()
for each in os.listdir("/proc/self/fd"):
    try:
        opened.add(os.readlink(f"/proc/self/fd/{each}"))
    except FileNotFoundError:
        pass
found["sockets"] = sorted(connected & opened)
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_nothing_reports_home(tmp_path, assets):
    kept = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "HEIMDALL_CACHE", "OCL_ICD_VENDORS")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"HOME": str(tmp_path), "HEIMDALL_TUNE": "off", "HEIMDALL_REALTIME": "0"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(assets / "models" / "iris_64.onnx")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"threads": 0, "sockets": []}
    assert [str(path) for path in tmp_path.rglob("*") if "onnxruntime" in path.name] == []


@pytest.mark.parametrize("given", [None, "0", ""])
def test_who_wants_a_library_to_report_says_so(monkeypatch, given):
    for name, value in SILENT.items():
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name) if given is None else monkeypatch.setenv(name, given)
        silence()
        assert os.environ[name] == (value if given is None else given)
