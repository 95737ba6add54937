"""The net under every change: decisions are those that were recorded, simulated and live.

A change that is meant to decide otherwise records them anew (``python
tests/traces/decisions.py``) in a commit of its own.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from heimdall.coordinator.replay import replay

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("decisions", HERE / "decisions.py")
decisions = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(decisions)


def test_every_scenario_is_recorded():
    assert list(json.loads(decisions.FILE.read_text())) == decisions.scenarios()


@pytest.mark.parametrize("scenario", decisions.scenarios())
def test_every_system_decides_as_recorded(scenario):
    recorded = json.loads(decisions.FILE.read_text())[scenario]
    assert decisions.all_decisions(scenario) == recorded


@pytest.mark.parametrize("app", ["shopping", "emoji", "workspace", "surroundings"])
def test_the_coordinator_answers_a_live_run_as_it_did(app):
    """Some seconds of each app, recorded from its first frame on a software GPU."""
    recording = json.loads(gzip.decompress((HERE / "live" / f"{app}.json.gz").read_bytes()))
    assert len(recording["records"]) > 500
    assert list(replay(recording["config"], recording["records"])) == []
