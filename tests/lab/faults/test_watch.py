"""What remains of a run."""

from __future__ import annotations

import sys
import threading

import pytest

from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.watch import Standing, after


def test_a_thread_that_remains_is_named_and_one_that_the_fault_holds_is_not():
    moment = Moment(0, 0, lambda *what: None)
    standing, end = Standing(), threading.Event()
    assert standing.left(moment) == []
    thread = threading.Thread(target=end.wait, name="forgotten")
    thread.start()
    threading.Thread(target=moment.hang, name="held", daemon=True).start()
    while not moment.held:
        pass
    assert standing.left(moment) == ["thread forgotten"]
    end.set()
    thread.join()
    assert standing.left(moment) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_a_file_that_is_left_open_is_named(tmp_path):
    moment, standing = Moment(0, 0, lambda *what: None), Standing()
    with (tmp_path / "open.txt").open("w"):
        assert standing.left(moment) == [f"handle {tmp_path / 'open.txt'}"]
    assert standing.left(moment) == []


def test_a_method_is_heard_of_after_it_has_returned():
    class Adder:
        def add(self, one, other=1):
            return one + other

    heard = []
    after(Adder, "add", lambda *what: heard.append(what))
    adder = Adder()
    assert adder.add(2, other=3) == 5
    assert heard == [(5, adder, 2)]
