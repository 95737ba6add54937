"""A processor that is lost is tried until it works again."""

import queue
import threading

import pytest

from heimdall.runtime.execution import prober
from heimdall.runtime.execution.prober import Prober
from heimdall.vocabulary.events import ProcessorBack, ProcessorLost


@pytest.fixture
def inbox(monkeypatch):
    monkeypatch.setattr(prober, "EVERY_S", 0.01)
    return queue.SimpleQueue()


def test_it_is_back_when_the_probe_works(inbox):
    failures = iter([OSError("still away")] * 3)

    def probe():
        for error in failures:
            raise error

    one = Prober(inbox)
    one.lose("gpu", probe)
    assert inbox.get(timeout=20) == ProcessorLost("gpu")
    assert inbox.get(timeout=20) == ProcessorBack("gpu")
    assert one.losses("gpu") == 1
    one.close()


def test_it_is_lost_once_however_many_notice(inbox):
    one = Prober(inbox)

    def probe():
        raise OSError("away")

    for _ in range(3):
        one.lose("gpu", probe)
    one.lose("cpu", probe)
    assert [inbox.get(timeout=20) for _ in range(2)] == [ProcessorLost("gpu"), ProcessorLost("cpu")]
    assert (one.losses("gpu"), one.losses("cpu"), one.losses("npu")) == (1, 1, 0)
    one.close()
    one.lose("npu", probe)  # its result is not read any more
    assert inbox.empty()


def test_one_that_was_not_really_back_is_tried_less_often(inbox, monkeypatch):
    waits = []
    one = Prober(inbox)

    def wait(wait_s):
        waits.append(wait_s)
        return False

    monkeypatch.setattr(one._closing, "wait", wait)
    for _ in range(4):
        one.lose("gpu", lambda: None)
        assert inbox.get(timeout=20) == ProcessorLost("gpu")
        assert inbox.get(timeout=20) == ProcessorBack("gpu")
    assert waits == [0.01, 0.02, 0.04, 0.08]


def test_a_probe_that_hangs_is_given_up_said_and_made_again(inbox, monkeypatch, caplog):
    """The usual way in which a GPU is lost."""
    monkeypatch.setattr(prober, "HANGING_S", 0.01)
    released, tries = threading.Event(), []

    def probe():
        tries.append(threading.current_thread())
        if len(tries) < 3:
            released.wait(20)
            raise OSError("at last")

    one = Prober(inbox)
    one.lose("gpu", probe)
    assert inbox.get(timeout=20) == ProcessorLost("gpu")
    assert inbox.get(timeout=20) == ProcessorBack("gpu")
    assert len(set(tries)) == 3
    assert caplog.text.count("gpu is still lost: looking whether it works again") == 2
    assert "gpu works again" in caplog.text
    released.set()
    one.close()
