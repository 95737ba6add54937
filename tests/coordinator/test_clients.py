"""When jobs begin: on frames that a network has not seen, or when somebody asks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from heimdall.coordinator import Coordinator
from heimdall.coordinator.replay import record, replay
from heimdall.vocabulary.events import (
    ChunkFinished,
    DnnMoved,
    FrameArrived,
    FrameRendered,
    InferenceRequested,
    InputReady,
    JobFailed,
    Prepare,
    ProcessorLost,
    RunChunk,
)


class Camera:
    """Drives a coordinator whose DNNs are told of frames; every job takes the newest."""

    def __init__(self, sim, *plans, **options):
        self.ms, self.now_ns, self.frame = sim.ms, sim.start, 0
        options = {"scheduler": "max-min", "offload": False, "repeats": False, **options}
        self.coordinator = Coordinator(plans, frame_interval_ns=33 * sim.ms, **options)
        self.names = tuple(plan.name for plan in plans)
        self.log, self.taken = [], []  # (DNN, frame) of each job
        self.tell(FrameRendered(0, self.now_ns + 10**12))

    def tell(self, event, after_ms=1.0):
        self.now_ns += int(after_ms * self.ms)
        actions = self.coordinator.receive(event, self.now_ns)
        self.log.append((self.now_ns, event, actions))
        return self._do(actions)

    def _do(self, actions):
        for action in actions:
            if isinstance(action, Prepare) and action.stage == 0:
                self.taken.append((action.dnn, self.frame))
                self.tell(InputReady(action.job, frame=self.frame))
            elif isinstance(action, RunChunk):
                took = action.start_op, action.end_op, action.expected_ns
                self.tell(ChunkFinished(action.job, action.processor, *took))
        return actions

    def arrive(self):
        self.frame += 1
        return self.tell(FrameArrived(self.names, self.frame))

    def begun(self, frame):
        """The job that begins on a frame, before its input is ready."""
        (prepare,) = self.coordinator.receive(FrameArrived(self.names, frame), self.now_ns)
        assert isinstance(prepare, Prepare)
        return prepare.job

    def wake(self, after_ms):
        self.now_ns += int(after_ms * self.ms)
        self._do(self.coordinator.wake(self.now_ns))


def test_a_continuous_network_sees_each_frame_once_and_then_rests(sim):
    camera = Camera(sim, sim.plan("a", sim.stage([1])), sim.plan("b", sim.stage([2])))
    assert camera.taken == []  # nothing has arrived
    for _ in range(3):
        camera.arrive()
        camera.wake(50)
    assert sorted(camera.taken) == [(dnn, frame) for dnn in "ab" for frame in (1, 2, 3)]


def test_without_being_told_of_frames_it_runs_back_to_back(sim):
    world = sim.world([sim.plan("a", sim.stage([1]))], offload=False).run(0.5)
    assert len(world.finishes("a")) > 50


def test_a_frame_is_seen_again_with_other_options(sim):
    camera = Camera(sim, sim.plan("a", sim.stage([1])))
    camera.arrive()
    camera.tell(InferenceRequested("a"))
    assert camera.taken == [("a", 1)]
    camera.tell(InferenceRequested("a", replaces=True))
    assert camera.taken == [("a", 1), ("a", 1)]


def test_who_asks_for_an_inference_gets_one_on_the_frame_there_is(sim):
    camera = Camera(sim, sim.plan("a", sim.stage([1]), continuous=False))
    camera.arrive()
    assert camera.taken == []
    for _ in range(2):
        camera.tell(InferenceRequested("a"))
    assert camera.taken == [("a", 1), ("a", 1)]


def test_a_frame_whose_inference_failed_has_not_been_seen(sim):
    camera = Camera(sim, sim.plan("a", sim.stage([1])))
    camera.frame = 1
    job = camera.begun(1)
    camera.tell(JobFailed(job, "preprocess: no"))
    camera.wake(2000)  # failures are tried again later and later
    assert camera.taken == [("a", 1)]


def test_a_frame_that_was_lost_with_its_processor_has_not_been_seen(sim):
    camera = Camera(sim, sim.plan("a", sim.stage([1] * 9)))
    camera.frame = 1
    job = camera.begun(1)
    camera.coordinator.receive(InputReady(job, frame=1), camera.now_ns)
    camera.tell(ProcessorLost("gpu"))
    camera.tell(DnnMoved("a", "cpu"))
    assert camera.taken == [("a", 1)]


def test_it_is_replayed_as_it_was(sim):
    camera = Camera(sim, sim.plan("a", sim.stage([1, 2])))
    for _ in range(4):
        camera.arrive()
    records = [record(*call) for call in camera.log]
    assert list(replay(camera.coordinator.config(), records)) == []
    assert camera.coordinator.config()["repeats"] is False
    plain = Coordinator([sim.plan("a", sim.stage([1]))], scheduler="max-min", frame_interval_ns=1)
    assert "repeats" not in plain.config()


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(st.sampled_from(["frame", "wait", "ask", "drawn"]), max_size=40))
def test_whatever_happens_no_frame_is_seen_twice(sim, steps):
    camera = Camera(sim, sim.plan("a", sim.stage([1])), sim.plan("b", sim.stage([3] * 4)))
    for step in steps:
        if step == "frame":
            camera.arrive()
        elif step == "ask":
            camera.tell(InferenceRequested("b"))
        elif step == "drawn":
            camera.tell(FrameRendered(1, camera.now_ns + 10**12))
        else:
            camera.wake(20)
    assert len(set(camera.taken)) == len(camera.taken)
