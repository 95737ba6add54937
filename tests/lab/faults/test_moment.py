"""When a fault is there."""

from __future__ import annotations

import threading

from heimdall.lab.faults.moment import Moment


def passed(after_s=0.0, lasts_s=0.05):
    """A moment that has passed, and what was noted and done meanwhile."""
    noted, over = [], threading.Event()
    moment = Moment(after_s, lasts_s, lambda *what: noted.append(what))
    moment.during(
        lambda: noted.append((moment.active, moment.first(), moment.first(), moment.first("x"))),
        lambda: noted.append((moment.active,)),
    )
    moment.during(lambda: None, over.set)
    assert not moment.first()
    moment.warm()
    assert over.wait(10)
    return moment, noted


def test_a_fault_begins_and_ends_once():
    moment, noted = passed()
    assert noted[:3] == [("began",), (True, True, False, True), (False,)]
    assert moment.ended
    assert not moment.first()


def test_a_thread_that_hangs_is_known():
    moment, _ = passed()
    threading.Thread(target=moment.hang, name="stuck", daemon=True).start()
    while not moment.held:
        pass
    assert [each.name for each in moment.held] == ["stuck"]
