"""The pose thread looks at the newest frame, delays no frame, and survives what goes wrong."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from heimdall.capture import Frame, Pose
from heimdall.errors import ConfigError
from heimdall.tracking.pose import Tracking
from heimdall.tracking.world.thread import PoseThread

POSE = Pose(np.eye(3), np.array([0, 0, 0.5]))


class Slow:
    """Says ``tracked`` once it is let go."""

    def __init__(self):
        self.placed = {}
        self.go, self.began, self.seen = threading.Event(), threading.Event(), []

    def advance(self, image, camera, sequence, at_s):
        self.began.set()
        assert self.go.wait(10)
        self.seen.append(sequence)
        if sequence == 13:
            raise ArithmeticError("a bad number")
        return Tracking(sequence, "tracked", POSE)


@pytest.fixture
def follow():
    threads = []

    def make(tracker):
        threads.append(PoseThread(tracker))
        return threads[-1]

    yield make
    for each in threads:
        each.close()


def frame(number):
    return Frame(np.zeros((4, 4, 3), np.uint8), number, number * 1000)


def test_only_the_newest_frame_waits_and_handing_over_does_not(follow):
    slow = Slow()
    thread = follow(slow)
    thread.hand(frame(0))
    assert slow.began.wait(10)
    for number in range(1, 6):
        thread.hand(frame(number))  # returns although the thread is busy
    slow.go.set()
    assert thread.settle()
    assert slow.seen == [0, 5]
    assert thread.course.at(5000).tracked
    assert len(thread.costs_ms) == 2
    assert thread.took_ns > 0


def test_a_failure_costs_the_place_in_that_frame_and_the_next_is_looked_at(follow, caplog):
    slow = Slow()
    slow.go.set()
    thread = follow(slow)
    for number in (12, 13, 13, 14):
        thread.hand(frame(number))
        assert thread.settle()
        assert thread.course.at(number * 1000).tracked is (number != 13)
        assert ("a bad number" in thread.problem) is (number == 13)
    assert slow.seen == [12, 13, 13, 14]
    assert thread.errors == [
        "finding the pose failed in a frame: ArithmeticError: a bad number (2 times)"
    ]
    assert caplog.text.count("Traceback") == 1


def test_a_room_in_which_every_frame_fails_is_forgotten(follow, caplog):
    forgotten = []

    class OfARoom(Slow):
        def forget(self):
            forgotten.append(len(self.seen))

    slow = OfARoom()
    slow.go.set()
    thread = follow(slow)
    for _ in range(11):
        thread.hand(frame(13))
        assert thread.settle()
    assert forgotten == [5, 10]


def test_it_begins_anew_with_something_else(follow):
    slow = Slow()
    slow.go.set()
    thread = follow(None)
    thread.hand(frame(0))  # there is nothing to follow yet
    thread.begin_anew(lambda: slow, frame(1))
    assert thread.settle()
    assert slow.seen == [1]
    assert thread.course.at(1000).tracked


def test_what_cannot_be_followed_is_said(follow, caplog):
    def refuse():
        raise ConfigError("too little to be found by")

    thread = follow(None)
    thread.begin_anew(refuse, frame(1))
    assert thread.settle()
    assert thread.problem == "too little to be found by"


def test_closing_twice_and_handing_over_afterwards_are_allowed(follow):
    slow = Slow()
    slow.go.set()
    thread = follow(slow)
    thread.hand(frame(0))
    thread.close()
    thread.close()
    thread.hand(frame(1))
    assert slow.seen in ([], [0])
