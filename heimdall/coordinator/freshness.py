"""Which inferences begin anew on a newer frame: where that brings a fresher result on screen.

An inference that goes on shows what was on its frame, and the next one begins when it has ended.
One that begins anew shows the newest frame, but what it has done is lost, and what is on screen
stays for that much longer. The age of a frame is the time since, and what has changed meanwhile
makes it older. Let a DNN begin an inference every W, and what is done of this one be d, preparing a
new input included; let its frame be a old, and that of the result on screen A. Over the time in
which the two ways differ, going on shows a frame too old by a for W, beginning anew one too old by
A for d. So it begins anew where ``W * a > d * A``.

On a scene that changes as it always does it never comes to that: A = a + W, and a is at least d.
Behind a cut a and A are nearly the same, and what is less than done is given up. A frame that has
waited for its first chunk costs nothing to give up: d is only the new input.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from heimdall.coordinator.gap import Gap
from heimdall.coordinator.job import Dnn, Job
from heimdall.coordinator.jobs import Jobs
from heimdall.coordinator.states import READY
from heimdall.schedulers.utility import AGING_UNIT
from heimdall.vocabulary.events import (
    Action,
    DnnRemoved,
    Event,
    Finish,
    InferenceRequested,
    Prepare,
    RenderStarted,
    SceneChanged,
)
from heimdall.vocabulary.processors import GPU

# A hand-held camera changes so much within 100 ms (see ``utility``); a cut, 0.3 to 1 s of that.
_NS_PER_C = 100e6 / (AGING_UNIT / 0.01)
# The scene goes on changing: steady motion adds up to half of A to the right side.
_MARGIN = 1.5
_SMOOTHING = 0.2

_Moment = tuple[int, int]  # when, and how far its scene had come


class _Sight:
    """What is known of what a DNN sees and shows."""

    __slots__ = ("begun_anew", "frame", "latency_ns", "outdated", "scene_ns", "shown", "taken")

    def __init__(self) -> None:
        self.scene_ns = 0  # all that the scene has changed, as time
        self.taken: _Moment = 0, 0  # the frame of the job in flight
        self.frame = 0  # how many had been drawn by then
        self.shown: _Moment | None = None  # that of the newest result
        self.latency_ns = 0  # of an inference, from its frame to its end; 0: not known
        self.outdated = False  # something else has been asked for than the job in flight gives
        self.begun_anew = False  # the job has lost work once: it does not again

    def take(self, now_ns: int, frame: int) -> None:
        """The job in flight takes the newest frame."""
        self.taken, self.frame, self.outdated = (now_ns, self.scene_ns), frame, False

    def age_ns(self, moment: _Moment, now_ns: int) -> int:
        """A frame's age: the time since, and what has changed."""
        return now_ns - moment[0] + self.scene_ns - moment[1]


class Freshness:
    """Lets jobs begin anew. Hears of every event, and of what has been decided about it so far.

    Frames are renewed while rendering has the GPU, so that nothing waits for the new input; what
    was asked for otherwise, at once.
    """

    def __init__(self, dnns: Mapping[str, Dnn], jobs: Jobs, gap: Gap) -> None:
        self._dnns, self._jobs, self._gap = dnns, jobs, gap
        self._sights: defaultdict[str, _Sight] = defaultdict(_Sight)
        self._frame = 0

    def review(self, event: Event | None, now_ns: int, out: list[Action]) -> None:
        """Take note of what has happened, and let jobs begin anew that had better."""
        self._frame += isinstance(event, RenderStarted)
        begun = self._note(now_ns, out)
        if isinstance(event, SceneChanged):
            for name in event.dnns:
                self._sights[name].scene_ns += int(event.luminance_difference * _NS_PER_C)
        elif isinstance(event, InferenceRequested) and event.replaces:
            self._sights[event.dnn].outdated = event.dnn not in begun
        elif isinstance(event, DnnRemoved):
            self._sights.pop(event.dnn, None)
        for job in self._jobs.in_flight.values():
            if job.state is not READY or not self._jobs.clients[job.dnn].newest:
                continue
            if why := self._why(job, self._sights[job.dnn], now_ns):
                self._begin_anew(job, why, now_ns, out)

    def _note(self, now_ns: int, actions: Sequence[Action]) -> set[str]:
        """Learn from what has been decided; returns which DNNs have begun an inference."""
        begun = set()
        for action in actions:
            if isinstance(action, Prepare) and action.stage == 0:
                sight = self._sights[action.dnn]
                sight.take(now_ns, self._frame)
                sight.begun_anew = False
                begun.add(action.dnn)
            elif isinstance(action, Finish):
                sight = self._sights[action.dnn]
                sight.shown, took_ns = sight.taken, now_ns - sight.taken[0]
                rate = _SMOOTHING if sight.latency_ns else 1.0
                sight.latency_ns += int(rate * (took_ns - sight.latency_ns))
        return begun

    def _why(self, job: Job, sight: _Sight, now_ns: int) -> str:
        """Why a job that is ready had better begin anew; nothing if it had not."""
        has_begun, left = job.stage + job.task + job.next_op > 0, _share_left(job)
        if has_begun and sight.begun_anew:
            return ""
        prepare_ns = job.owner.prepare_ns[0]
        if sight.outdated and left * _expected_ns(job, sight) > prepare_ns:
            return "something else is asked for"
        age_ns = sight.age_ns(sight.taken, now_ns)
        if sight.shown is None or not job.owner.plan.continuous:
            return ""  # one that was asked for is of the frame of that moment
        if self._gap.is_open or sight.frame == self._frame:
            return ""
        lost_ns = (1 - left) * sight.latency_ns + prepare_ns
        shown_ns = sight.age_ns(sight.shown, now_ns)
        every_ns = max(sight.latency_ns, job.owner.plan.min_interval_ns)
        if every_ns * age_ns <= _MARGIN * lost_ns * shown_ns:
            return ""
        return "the scene has changed" if has_begun else "there is a newer frame"

    def _begin_anew(self, job: Job, why: str, now_ns: int, out: list[Action]) -> None:
        sight = self._sights[job.dnn]
        sight.begun_anew |= job.stage + job.task + job.next_op > 0
        sight.take(now_ns, self._frame)
        job.owner.pending = 0  # the newest frame, by the newest options, is what they asked for
        self._jobs.begin_anew(job, why, now_ns, out)


def _share_left(job: Job) -> float:
    """The share of a job's work that is left; 1 before its first chunk."""
    if job.processor == GPU:
        whole_ns = sum(job.owner.expected_gpu()[:2])
    else:
        whole_ns = job.owner.expected_cpu_ns()
    has_begun = job.stage + job.task + job.next_op > 0
    return min(1.0, (job.remaining_ns + job.other_ns) / max(whole_ns, 1)) if has_begun else 1.0


def _expected_ns(job: Job, sight: _Sight) -> int:
    """What an inference takes; of the first one only its work is known."""
    return sight.latency_ns or sum(job.owner.expected_gpu()[:2])
