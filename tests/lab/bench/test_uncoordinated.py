"""What stands in the coordinator's place in a baseline: it lets rendering through the gate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heimdall.errors import DeviceError
from heimdall.lab.bench.admission import OneAtATime
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.bench.uncoordinated import Uncoordinated, Witness, check_priorities
from heimdall.vocabulary.driver_priority import DriverPriority, Level
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


NEITHER, NO_EGL = DriverPriority(why="no hint of OpenCL"), DriverPriority(why="no hint of EGL")
LOW, HIGH = DriverPriority(Level.LOW), DriverPriority(Level.HIGH)


def setup_with(networks: DriverPriority, rendering: DriverPriority) -> Any:
    """Enough of one to be asked what its drivers do."""
    return SimpleNamespace(
        driver_priorities={"networks": networks, "rendering": rendering},
        gpu_name="PoCL",
        describe_devices=lambda: {"renderer": "llvmpipe"},
    )


@pytest.mark.parametrize("rendering", [NO_EGL, DriverPriority(Level.MEDIUM, "no hint of EGL")])
def test_driver_priorities_are_refused_where_no_driver_has_any(rendering):
    named = r"no driver here draws .*multithread: PoCL: no hint of OpenCL; llvmpipe: no hint of EGL"
    with pytest.raises(DeviceError, match=named):
        check_priorities(parse_system("driver-priority"), setup_with(NEITHER, rendering))


@pytest.mark.parametrize("found", [(LOW, NO_EGL), (NEITHER, HIGH), (LOW, HIGH)])
def test_one_driver_that_has_them_is_enough(found):
    check_priorities(parse_system("driver-priority"), setup_with(*found))


@pytest.mark.parametrize("name", ["multithread", "priorities", "max-total"])
def test_other_systems_need_no_driver_for_their_priorities(name):
    check_priorities(parse_system(name), setup_with(NEITHER, NO_EGL))


def test_of_the_baselines_one_alone_asks_drivers_for_priorities():
    assert Uncoordinated(parse_system("driver-priority")).prioritized
    assert not Uncoordinated(parse_system("multithread")).prioritized
