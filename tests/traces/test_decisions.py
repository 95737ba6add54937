"""The net under every change: decisions are those that were recorded, simulated and live.

A change that is meant to decide otherwise records them anew (``python
tests/traces/decisions.py``) in a commit of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from heimdall.coordinator.replay import replay
from tests.traces import answers, decisions

HERE = Path(__file__).parent


def test_every_scenario_is_recorded():
    assert list(json.loads(decisions.FILE.read_text())) == decisions.scenario_names(draws=True)
    assert list(json.loads(answers.FILE.read_text())) == answers.names()


@pytest.fixture(scope="module")
def played(request):
    """Plays every scenario that is asked for: pure computing, a process a core."""
    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]

    def play(program, scenario, *options):
        command = [sys.executable, str(HERE / f"{program}.py"), scenario, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)[scenario]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield {
            (program, name): pool.submit(play, program, name, *options)
            for program, key, *options in (
                ("decisions", "scenario"),
                ("answers", "requests", "--quick"),
            )
            for name in [params[key] for params in asked if set(params) == {key}]
        }


def _each(names, soon):
    """Every scenario: those that are not in ``soon`` are for ``make test-all``."""
    marks = {name: pytest.mark.slow if name in soon else pytest.mark.long for name in names}
    return [pytest.param(name, marks=mark) for name, mark in marks.items()]


@pytest.mark.parametrize("scenario", _each(decisions.scenario_names(draws=True), ("shopping",)))
def test_every_system_decides_as_recorded(played, scenario):
    recorded = json.loads(decisions.FILE.read_text())[scenario]
    assert played["decisions", scenario].result() == recorded


@pytest.mark.parametrize(
    "requests", _each(answers.names(), ("shopping", "split-4", "band-eagleeye", "pantheon-uav"))
)
def test_every_system_answers_as_recorded(played, requests):
    recorded = json.loads(answers.FILE.read_text())[requests]
    found = played["answers", requests].result()
    assert found
    assert found == {system: recorded[system] for system in found}


@pytest.mark.parametrize("app", ["shopping", "emoji", "workspace", "surroundings"])
def test_the_coordinator_answers_a_live_run_as_it_did(app):
    """Some seconds of each app, recorded from its first frame on a software GPU."""
    recording = json.loads(gzip.decompress((HERE / "live" / f"{app}.json.gz").read_bytes()))
    assert len(recording["records"]) > 500
    assert list(replay(recording["config"], recording["records"])) == []
