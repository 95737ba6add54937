"""Faults for real, in small runs: each takes place, is told, and is seen from outside."""

from __future__ import annotations

import sys

import pytest

from heimdall.lab.faults.ends import why_not_ended
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.runner import try_faults
from heimdall.lab.faults.running import run_trial
from heimdall.lab.faults.table import FAULTS, fault_named
from heimdall.lab.faults.trial import Outcome, Trial
from tests.lab.faults.series import S, seen

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signals, no pipes")

APP = """
from heimdall import DNN, App

class Mine(App):
    dnns = (DNN("segment", model="selfie", rate_hz=5, max_rate_hz=10),)

    def draw(self, scene):
        pass
"""


@pytest.fixture
def request_(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(APP)
    return Request(str(path), seconds=3, device="onnxruntime", size=(160, 90))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"), [("draw-raises", "draw raised ValueError"), ("decode-raises", "decode")]
)
def test_a_fault_takes_place_is_told_and_passes(request_, tmp_path, name, told):
    outcome = run_trial(fault_named(name), Trial(request_, tmp_path / "run"))
    run = outcome.seen
    assert outcome.status in (0, 2)
    assert told in " ".join(outcome.summary["errors"])
    assert run.warm_ns < run.began_ns < run.ended_ns < run.over_ns < outcome.ended_ns
    assert run.acted
    assert all(run.began_ns <= at_ns for at_ns, _ in run.acted)
    assert any(each > run.ended_ns for each in run.frames)
    assert any(each > run.ended_ns for each in run.results["segment"])


@pytest.mark.slow
def test_a_run_that_is_told_to_end_sums_up(request_):
    found = try_faults(Request(**{**vars(request_), "count": 1}), ["signals"])
    (signals,) = found["faults"]
    assert not [each for each in signals["why"] if "left: process" in each]
    assert signals["ended_in_s"] is not None


def test_every_fault_has_a_name_of_its_own_and_says_what_happens():
    names = [each.name for each in FAULTS]
    assert len(set(names)) == len(names) > 50
    assert all(each.what.endswith(".") for each in FAULTS)


@pytest.mark.parametrize(
    ("frames", "summary", "status", "right"),
    [
        ([], None, 130, True),
        ([], None, -15, False),
        ([S], {}, 0, True),
        ([S], None, 130, False),
        ([4 * S + S // 10], None, 130, True),  # at the very moment of the first frame
        ([4 * S + S // 10], {}, 0, True),
        ([S], {}, 1, False),
    ],
)
def test_how_a_run_should_end_that_is_told_to(frames, summary, status, right):
    outcome = Outcome(seen(frames=frames), status, 5 * S, summary, [], [], asked_ns=4 * S)
    assert (why_not_ended(outcome, 0.5) == []) is right
    assert why_not_ended(outcome, 1.5) != []
