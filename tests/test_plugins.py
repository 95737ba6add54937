"""Another package's scheduler, installed as users install one, in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow

POLICY = '''
"""Runs whatever has waited longest."""
from heimdall import Greedy


class Oldest(Greedy):
    name = "oldest"
    reason = "oldest"

    def prefer(self, view, now_ns, jobs):
        return min(jobs, key=lambda job: job.arrival_ns)
'''


def build(folder: Path, package: str, code: str, **schedulers: str) -> Path:
    """A wheel of one module with these entry points."""
    path = folder / f"{package}-1.0-py3-none-any.whl"
    info = f"{package}-1.0.dist-info"
    entries = "".join(f"{name} = {value}\n" for name, value in schedulers.items())
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{package}.py", code)
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/entry_points.txt", f"[heimdall.schedulers]\n{entries}")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="module")
def heimdall(tmp_path_factory):
    """``heimdall("run", ...)`` in an environment with three packages: one good, one broken, one
    that takes a name of Heimdall's."""
    folder = tmp_path_factory.mktemp("plugins")
    wheels = [
        build(folder, "fair_policies", POLICY, oldest="fair_policies:Oldest"),
        build(folder, "broken_policies", "import not_there_at_all", lost="broken_policies:Lost"),
        build(folder, "greedy_thief", POLICY, **{"max-min": "greedy_thief:Oldest"}),
    ]
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(folder / "site"), *map(str, wheels)], check=True, timeout=200)
    path = os.pathsep.join([str(ROOT), str(folder / "site")])

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "heimdall", *words],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "PYTHONPATH": path},
        )

    return call


def test_a_packages_scheduler_runs_an_app(heimdall):
    words = ["--headless", "--frames", "20", "--size", "160x90", "--device", "onnxruntime"]
    done = heimdall("run", "surroundings", "--scheduler", "oldest", "--json", *words)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["scheduler"] == "oldest"
    assert summary["errors"] == []
    assert summary["frames"] == 20


def test_a_packages_scheduler_is_a_system_with_all_its_variants(heimdall):
    words = ["--device", "lg-v50", "--seconds", "2", "--json"]
    done = heimdall("simulate", "shopping-phone", "--system", "oldest-static-nooffload", *words)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["scheduler"], summary["mode"]) == ("oldest", "static")
    assert summary["dnns"]["style"]["inferences"] > 0


def test_help_and_errors_list_it_and_mark_the_broken_one(heimdall):
    page = " ".join(heimdall("run", "--help").stdout.split())
    assert "One of: max-min, max-total, " in page
    names = page.partition("One of: ")[2].partition(".")[0].split(", ")
    assert {"oldest", "lost (broken)"} <= set(names)
    done = heimdall("run", "shopping", "--headless", "--scheduler", "old")
    assert done.returncode == 2
    assert "choose one of: " in done.stderr
    for name in ("lost (broken)", "max-min", "max-total", "oldest"):
        assert f"{name}," in done.stderr


def test_a_broken_package_is_named_with_the_cause_when_it_is_asked_for(heimdall):
    done = heimdall("run", "shopping", "--headless", "--scheduler", "lost")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "scheduler 'lost' of package broken_policies 1.0 (broken_policies:Lost)" in line
    assert "No module named 'not_there_at_all'" in line


def test_a_package_that_takes_a_name_is_refused_and_named(heimdall):
    done = heimdall("run", "nothing", "--scheduler", "max-min")
    assert "'max-min' of package greedy_thief 1.0 is not used: the name is taken by Heimdall" in (
        done.stderr
    )
    assert "unknown app 'nothing'" in done.stderr  # it went on
