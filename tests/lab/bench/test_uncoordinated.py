"""What stands in the coordinator's place in a baseline: it lets rendering through the gate."""

from __future__ import annotations

import pytest

from heimdall.lab.bench.admission import OneAtATime
from heimdall.lab.bench.uncoordinated import Witness
from heimdall.vocabulary.events import FrameRendered, RenderingStopped, RenderStarted

INTERVAL_NS = 1000


@pytest.fixture
def gate():
    return OneAtATime()


@pytest.fixture
def gone(gate):
    """A DNN has the GPU, and another waits for it; who has gone through."""
    gone = []
    for name in ("first", "second"):
        gate.ask(name, 0.0, lambda name=name: gone.append(name))
    return gone


def test_a_frame_goes_first_and_the_networks_after_it(gate, gone):
    witness = Witness(gate, (), INTERVAL_NS)
    witness.receive(RenderStarted(0), 0)
    gate.leave("first")
    assert gone == ["first"]
    witness.receive(FrameRendered(0, 1000, 300), 300)
    assert gone == ["first", "second"]


def test_a_frame_that_was_drawn_before_a_network_gave_way_delays_none(gate, gone):
    witness = Witness(gate, (), INTERVAL_NS)
    witness.receive(RenderStarted(0), 0)
    witness.receive(FrameRendered(0, 1000, 300), 300)
    gate.leave("first")
    assert gone == ["first", "second"]


def test_after_a_frame_the_gpu_rests_as_long_as_its_limit_asks(gate, gone):
    witness = Witness(gate, (), INTERVAL_NS)
    witness.limit_load(0.9)
    witness.receive(RenderStarted(0), 0)
    gate.leave("first")
    witness.receive(FrameRendered(0, 1000, 300), 300)
    assert witness.next_wakeup_ns() == 400
    witness.wake(399)
    assert gone == ["first"]
    witness.wake(400)
    assert gone == ["first", "second"]
    assert witness.next_wakeup_ns() is None


def test_when_nothing_is_drawn_any_more_the_gpu_is_free(gate, gone):
    witness = Witness(gate, (), INTERVAL_NS)
    witness.receive(RenderStarted(0), 0)
    gate.leave("first")
    witness.receive(RenderingStopped(), 10)
    assert gone == ["first", "second"]
