"""The net under every change: decisions are those that were recorded, simulated and live.

A change that is meant to decide otherwise records them anew (``python
tests/traces/decisions.py``) in a commit of its own.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from heimdall.coordinator.replay import replay

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("decisions", HERE / "decisions.py")
decisions = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(decisions)


def test_every_scenario_is_recorded():
    assert list(json.loads(decisions.FILE.read_text())) == decisions.scenario_names()


@pytest.fixture(scope="module")
def decided(request):
    """The decisions of every scenario that is asked for: pure computing, a process a core."""
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    asked = [name for name in decisions.scenario_names() if {"scenario": name} in asked]

    def simulate(scenario):
        command = [sys.executable, str(HERE / "decisions.py"), scenario]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)[scenario]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {name: pool.submit(simulate, name) for name in asked}


@pytest.mark.slow
@pytest.mark.parametrize("scenario", decisions.scenario_names())
def test_every_system_decides_as_recorded(decided, scenario):
    assert decided[scenario].result() == json.loads(decisions.FILE.read_text())[scenario]


@pytest.mark.parametrize("app", ["shopping", "emoji", "workspace", "surroundings"])
def test_the_coordinator_answers_a_live_run_as_it_did(app):
    """Some seconds of each app, recorded from its first frame on a software GPU."""
    recording = json.loads(gzip.decompress((HERE / "live" / f"{app}.json.gz").read_bytes()))
    assert len(recording["records"]) > 500
    assert list(replay(recording["config"], recording["records"])) == []
