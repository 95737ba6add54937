"""The mapper's process: it answers, is replaced when it ends, and leaves nothing behind."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

from heimdall.tracking.slam import worker
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker
from heimdall.tracking.slam.worker import MappingProcess
from tests.tracking.slam.scene import CAMERA, look, walk

LIMIT_S = 60


@pytest.fixture
def mapped():
    """A tracker that has a map, by a mapper of its own."""
    tracker = RoomTracker(Mapper())
    for number, pose in enumerate(walk(60)):
        tracker.advance(look(pose, seed=number), CAMERA, number)
    assert len(tracker.map.keyframes) >= 2
    return tracker


@pytest.fixture
def process():
    before = set(threading.enumerate())
    made = MappingProcess()
    yield made
    made.close()
    made.close()
    assert set(threading.enumerate()) <= before


def answer(process):
    until_s = time.monotonic() + LIMIT_S
    while time.monotonic() < until_s:
        if found := process.updates():
            return found
        time.sleep(0.01)
    raise AssertionError("no answer")


def test_it_finds_what_a_mapper_in_this_process_finds(mapped, process):
    assert process.begin(mapped.map) is None
    elsewhere = answer(process)[0]
    here = Mapper().begin(mapped.map)
    assert elsewhere.keyframes.keys() == here.keyframes.keys()
    assert np.array_equal(elsewhere.ids, here.ids)
    assert np.allclose(elsewhere.position, here.position, atol=1e-9)
    assert not process.busy
    assert process.problem == ""


def test_one_that_is_killed_is_replaced_and_told(mapped, process):
    process.begin(mapped.map)
    answer(process)
    process._link._process.kill()
    assert answer(process)[0].keyframes  # of another process, which has the map
    assert "it ended" in process.problem


def test_one_that_hangs_is_replaced(mapped, process, monkeypatch):
    process.warm()
    process.begin(mapped.map)
    answer(process)
    monkeypatch.setattr(worker, "HANGS_S", 0.0)
    process._asked_s = time.monotonic() - 1
    process.updates()
    assert "no answer" in process.problem
    monkeypatch.undo()
    assert answer(process)


def test_why_it_ended_is_said_and_its_traceback_logged(mapped, process, monkeypatch, caplog):
    fails = "def adjust(): 1 / 0\nadjust()"
    monkeypatch.setattr(worker, "COMMAND", (sys.executable, "-c", fails))
    process.begin(mapped.map)
    until_s = time.monotonic() + LIMIT_S
    while not process.problem and time.monotonic() < until_s:
        process.updates()
        time.sleep(0.01)
    assert "it ended (ZeroDivisionError: division by zero)" in process.problem
    assert "Traceback" in caplog.text


def test_one_that_ends_again_and_again_is_given_up(mapped, process, monkeypatch):
    monkeypatch.setattr(worker, "COMMAND", (sys.executable, "-c", "raise SystemExit(3)"))
    process.begin(mapped.map)
    until_s = time.monotonic() + LIMIT_S
    while "stays as it is" not in process.problem and time.monotonic() < until_s:
        process.updates()
        time.sleep(0.01)
    assert "stays as it is" in process.problem
    process.add  # noqa: B018  (nothing more is asked of it)
    assert process._link is None
    assert not process.busy


def test_where_no_process_can_be_started_the_map_grows_in_this_one(mapped, process, monkeypatch):
    monkeypatch.setattr(worker, "COMMAND", ("no Python is here",))
    process.begin(mapped.map)
    found = answer(process)[0]
    assert np.allclose(found.position, Mapper().begin(mapped.map).position, atol=1e-9)
    assert "made in this process" in process.problem
