"""Several queues of one device: the bundled networks together, and what happens when one fails."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pyopencl as cl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.engine import GroupMember
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.lanes import Lanes
from heimdall.engine.opencl.state import OpenCLState
from heimdall.errors import ConfigError, DeviceError
from heimdall.graph.branches import independent_branches
from heimdall.graph.graph import load_graph
from heimdall.graph.samples import sample_inputs
from tests.engine.groupings import legal_stages
from tests.engine.opencl.drawn import search

BUNDLED = ["seg_selfie_256", "hand_landmark_lite_224", "pose_movenet_lightning_192"]
drawn = search(6)


@pytest.fixture(scope="module", params=["walked", "launched"])
def opened(request, engine_for):
    """Both ways to enqueue, on three lanes."""
    known = engine_for()
    walk = known.abilities.walk and request.param == "walked"
    abilities = replace(known.abilities, walk=walk)
    return OpenCLEngine(keep_kernels=False, abilities=abilities, lanes=3)


@pytest.fixture(scope="module")
def loaded(opened, assets, shared):
    """(network, its inputs, what it makes of them), some planned for branches, some not."""
    made = []
    for index, name in enumerate(BUNDLED if opened.abilities.walk else BUNDLED[:1]):
        graph = load_graph(assets / "models" / f"{name}.onnx")
        network = (opened.for_branches if index % 2 == 0 else opened).load(graph)
        inputs = sample_inputs(graph)
        made.append((network, inputs, shared.run(network, network.new_state(), inputs)))
    return made


@pytest.fixture(scope="module", params=["whatever may", "what pays"])
def eager(request, opened):
    """What is spread over lanes."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "whatever may":
            patched.setattr(opened._lanes, "least_ns", -1)
        yield


@drawn
@given(st.lists(st.sampled_from(range(len(BUNDLED))), min_size=1, max_size=4), st.data())
@pytest.mark.usefixtures("eager")
def test_any_networks_together_give_what_each_gives_alone(opened, loaded, shared, which, data):
    """One network may be there several times, each time another job."""
    opened.lanes = data.draw(st.integers(1, 3))
    chosen = [loaded[index % len(loaded)] for index in which]
    jobs = [(each, each[0].new_state()) for each in chosen]
    launches: tuple[list[list[list[GroupMember]]], ...] = ([], [])  # of each job its stages
    for (network, inputs, _), state in jobs:
        network.write(state, inputs)
        cut = data.draw(st.integers(0, len(network.ops)))
        for launch, ends in zip(launches, ((0, cut), (cut, len(network.ops))), strict=True):
            late = data.draw(st.integers(0, 2))
            found = data.draw(legal_stages(network.needs, *ends))
            parts = [[GroupMember(network, state, ranges) for ranges in stage] for stage in found]
            launch.append([[] for _ in range(late)] + parts)
    for launch in launches:
        turns = itertools.zip_longest(*launch, fillvalue=[])
        opened.run_together([[part for parts in turn for part in parts] for turn in turns])
    for (network, _, wanted), state in jobs:
        assert shared.same(network.read(state), wanted)


def test_jobs_run_alone_before_and_after(opened, loaded, shared):
    """Cores count what they have done of a launch, on each queue by itself."""
    network, inputs, wanted = loaded[0]
    states = [network.new_state(), network.new_state()]
    for turn in range(4):
        for state in states:
            network.write(state, inputs)
        if turn % 2 == 0:
            parts = [GroupMember(network, state, ((0, len(network.ops)),)) for state in states]
            opened.run_together([parts])
        else:
            for state in states:
                network.run(state, 0, len(network.ops))
        assert all(shared.same(network.read(state), wanted) for state in states)


def test_elapsed_time_is_at_least_that_of_each_part(opened, loaded):
    network, inputs, _ = loaded[0]
    state = network.new_state()
    network.write(state, inputs)
    stages = independent_branches(network.needs)
    elapsed_ns = opened.run_together([[GroupMember(network, state, g) for g in s] for s in stages])
    if opened.times_ops:
        assert elapsed_ns >= network.longest_enqueue_ns(state) > 0


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_any_lane_surfaces_once_nothing_runs(
    opened, loaded, shared, monkeypatch, failing
):
    enqueue, count = OpenCLState.enqueue, itertools.count()

    def fail(state, *args):
        made = enqueue(state, *args)
        if next(count) == failing:
            raise cl.RuntimeError("out of luck")
        return made

    parts, states = [], []
    pair = [loaded[0], loaded[-1]]
    for network, inputs, _ in pair:
        states.append(network.new_state())
        network.write(states[-1], inputs)
        parts.append(GroupMember(network, states[-1], ((0, len(network.ops)),)))
    with monkeypatch.context() as patched:
        patched.setattr(OpenCLState, "enqueue", fail)
        with pytest.raises(DeviceError, match="running networks together"):
            opened.run_together([parts])
    for state in states:
        assert state.position == -1  # what they have computed may not be used
        assert not state.in_flight
        for events in state.events.values():
            complete = cl.command_execution_status.COMPLETE
            assert all(event.command_execution_status == complete for event in events)
    for (network, inputs, _), state in zip(pair, states, strict=True):
        network.write(state, inputs)
    opened.run_together([parts])
    for (network, _, wanted), state in zip(pair, states, strict=True):
        assert shared.same(network.read(state), wanted)


def test_what_gains_little_stays_on_one_lane(opened, loaded, monkeypatch):
    network, inputs, _ = loaded[0]
    stages = independent_branches(network.needs)
    used = {}
    for least in (-1, 10**12):
        monkeypatch.setattr(opened._lanes, "least_ns", least)
        enqueue, queues = OpenCLState.enqueue, set[cl.CommandQueue]()

        def remember(state, start, end, queue, beside, enqueue=enqueue, queues=queues):
            queues.add(queue)
            return enqueue(state, start, end, queue, beside)

        state = network.new_state()
        network.write(state, inputs)
        with monkeypatch.context() as patched:
            patched.setattr(OpenCLState, "enqueue", remember)
            opened.run_together([[GroupMember(network, state, g) for g in s] for s in stages])
        used[least] = len(queues)
    assert used[-1] > 1 == used[10**12]


def test_an_error_of_a_command_surfaces(opened, loaded, monkeypatch):
    """What the device reports later, by an event."""
    network, inputs, _ = loaded[0]
    state = network.new_state()
    network.write(state, inputs)
    failed = cl.UserEvent(opened.context)
    failed.set_status(-5)  # CL_OUT_OF_RESOURCES
    monkeypatch.setattr(OpenCLState, "enqueue", lambda *args: [failed, failed])
    with pytest.raises(DeviceError, match="running networks together"):
        opened.run_together([[GroupMember(network, state, ((0, len(network.ops)),))]])


def test_queues_open_when_they_are_needed(engine):
    opened = []

    def open_queue():
        opened.append(cl.CommandQueue(engine.context, engine.device))
        return opened[-1]

    assert Lanes(engine.queue, open_queue, 0).run([], 4) == []
    assert not opened


def test_lanes_are_at_least_one(engine):
    with pytest.raises(ConfigError, match="lanes must be at least 1, not 0"):
        OpenCLEngine(abilities=engine.abilities, lanes=0)


def test_an_engine_beside_has_lanes_of_its_own(engine, assets, shared):
    graph = load_graph(assets / "models" / f"{BUNDLED[0]}.onnx")
    beside = engine.beside()
    beside.lanes = 2
    inputs = sample_inputs(graph)
    networks = [engine.load(graph), beside.load(graph)]
    wanted = shared.run(networks[0], networks[0].new_state(), inputs)
    jobs = [(network, network.new_state()) for network in networks]
    for network, state in jobs:
        network.write(state, inputs)
    beside.run_together([[GroupMember(*job, ((0, len(job[0].ops)),)) for job in jobs]])
    assert all(shared.same(network.read(state), wanted) for network, state in jobs)
