"""The life of a frame as a state machine: no clock, no thread, no GL and no queue in it.

A driver asks when something is due, does it, and tells when it was done; the answers are what the
coordinator wants done meanwhile. All times are arguments, in ns of the driver's clock. One turn:

    take its picture at ``take_ns``, submit it at ``submit_ns``, wait until ``start_ns``
    started(now)            rendering has the GPU
    drawn(now, took)        the GPU has drawn the frame
    opened(now)             the gap until the next frame is open
    presented(now, ready)   it is shown, at ``present_ns`` or as soon as possible after

and between any two of them ``received(event, now)`` and ``woken(now)`` as they come. The live
runtime, the simulator and the uncoordinated baselines are drivers of this one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from heimdall.errors import HeimdallError
from heimdall.runtime.loop.pacing import GAP_GUARD_NS, Lead, Pacer, Reserve, Usual
from heimdall.vocabulary.events import (
    Action,
    Event,
    FrameRendered,
    Reconfigured,
    RenderStarted,
)

# A frame that is submitted too late starts late; too early, its thread is busy with it a little
# sooner.
AHEAD_FIRST_NS, AHEAD_SPARE_NS = 4_000_000, 2_000_000
# The same for its camera picture, which is sent to the GPU before; an older one is the price.
LOAD_FIRST_NS, LOAD_SPARE_NS = 3_000_000, 500_000
RARE = 0.004  # frames that are late: fewer than the hundredth that makes the p99 of intervals


class Decider(Protocol):
    """What a loop needs of a coordinator."""

    def receive(self, event: Event, now_ns: int) -> list[Action]:
        """Tell what happened; get what to do."""

    def wake(self, now_ns: int) -> list[Action]:
        """What is due without an event."""

    def next_wakeup_ns(self) -> int | None:
        """When ``wake`` is due at the latest; None when only events matter."""


# Hears of every call of the coordinator: (now, event, or None for a wake-up, its answer).
Observer = Callable[[int, "Event | None", Sequence[Action]], None]


class Phase(Enum):
    """Where the present frame is."""

    WAITING = "waiting for its start"
    DRAWING = "being drawn"
    DRAWN = "drawn"
    SHOWING = "waiting to be shown"


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """A frame that has been presented. ``start_ns``: when it was due to start; ``render_ns``: what
    it took of the GPU; ``skipped``: places on the grid after it at which no frame can start."""

    number: int
    start_ns: int
    drawn_ns: int
    deadline_ns: int
    presented_ns: int
    render_ns: int
    skipped: int


class FrameLoop:
    """Frames on a grid of ``interval_ns`` from ``start_ns`` on, and gaps between them.

    ``drawing_ns``: how long one is expected to take from its start until it is ready.
    ``load_limit``, ``guard_ns``: see ``pacing.Reserve``. ``observe`` hears of every call of the
    coordinator. Raises HeimdallError for a turn out of order.
    """

    def __init__(
        self,
        coordinator: Decider,
        *,
        interval_ns: int,
        start_ns: int,
        drawing_ns: int,
        load_limit: float = 1.0,
        guard_ns: int = GAP_GUARD_NS,
        observe: Observer | None = None,
    ) -> None:
        self._coordinator, self._observe = coordinator, observe
        self._load_limit, self._guard_ns = load_limit, guard_ns
        self._pacer = Pacer(interval_ns, start_ns)
        self._reserve = Reserve(load_limit, interval_ns, guard_ns)
        self._usual = Usual(drawing_ns, RARE)  # from a frame's start until it is ready
        self._submitting = Lead(AHEAD_FIRST_NS, AHEAD_SPARE_NS)
        self._loading = Lead(LOAD_FIRST_NS, LOAD_SPARE_NS)
        self._phase = Phase.WAITING
        self._number = 0
        self._start_ns = self._drawn_ns = self._render_ns = self._skipped = 0
        self.present_ns = 0

    @property
    def interval_ns(self) -> int:
        """From one frame's start to the next."""
        return self._pacer.interval_ns

    @property
    def number(self) -> int:
        """The number of the present frame, from 0."""
        return self._number

    @property
    def start_ns(self) -> int:
        """When the next frame starts, that is, the GPU begins to draw it."""
        return self._pacer.next_ns

    @property
    def submit_ns(self) -> int:
        """When it must be submitted, so that the GPU has all of it at its start."""
        return self._pacer.next_ns - self._submitting.ns

    @property
    def take_ns(self) -> int:
        """When its camera picture must be taken: as late as that can be."""
        return self.submit_ns - self._loading.ns

    def next_wakeup_ns(self) -> int | None:
        """When ``woken`` is due at the latest; None when only events matter."""
        return self._coordinator.next_wakeup_ns()

    def begin(self, start_ns: int) -> None:
        """The next frame starts then, and the others an interval apart from it."""
        self._pacer.next_ns = start_ns

    def shift(self, ns: int) -> None:
        """That, and those after it, start so much later."""
        self._pacer.next_ns += ns

    # --- one turn ----------------------------------------------------------------------------

    def loaded(self, took_ns: int) -> None:
        """Sending its picture has taken so long."""
        self._loading.observe(took_ns)

    def submitted(self, took_ns: int) -> None:
        """Submitting the frame has taken so long."""
        self._submitting.observe(took_ns)

    def started(self, now_ns: int) -> list[Action]:
        """Rendering takes the GPU."""
        self._step(Phase.WAITING, Phase.DRAWING)
        self._start_ns = self._pacer.next_ns
        return self.received(RenderStarted(self._number), now_ns)

    def drawn(self, now_ns: int, took_ns: int) -> None:
        """The GPU has drawn the frame, which took ``took_ns`` of it."""
        self._step(Phase.DRAWING, Phase.DRAWN)
        self._drawn_ns, self._render_ns = now_ns, took_ns
        self._skipped = self._pacer.advance(now_ns)
        # What frames take to draw varies by milliseconds, which must not show: they are
        # shown when all but the rarest are ready. A late one is shown at once.
        self.present_ns = self._start_ns + min(self._usual.ns, self.interval_ns // 2)

    def opened(self, now_ns: int, until_ns: int | None = None) -> list[Action]:
        """The GPU is free until the next frame, or until ``until_ns``, when another session's
        starts."""
        self._step(Phase.DRAWN, Phase.SHOWING)
        next_ns = self._pacer.next_ns if until_ns is None else min(self._pacer.next_ns, until_ns)
        gap_end_ns = next_ns - self._reserve.guard_ns(self._drawn_ns)
        return self.received(FrameRendered(self._number, gap_end_ns, self._render_ns), now_ns)

    def presented(self, now_ns: int, ready_ns: int | None = None) -> FrameTimes:
        """The frame is on screen, where it could have been from ``ready_ns`` on: when it was drawn,
        and what the driver has to do before it waits for ``present_ns`` was done."""
        self._step(Phase.SHOWING, Phase.WAITING)
        self._usual.observe((self._drawn_ns if ready_ns is None else ready_ns) - self._start_ns)
        self._number += 1
        return FrameTimes(
            self._number - 1,
            self._start_ns,
            self._drawn_ns,
            self.present_ns,
            now_ns,
            self._render_ns,
            self._skipped,
        )

    def abandoned(self, now_ns: int) -> None:
        """Something went wrong in the middle of a frame: the next one is a new one."""
        if self._phase is Phase.DRAWING:
            self._pacer.advance(now_ns)
        if self._phase is not Phase.WAITING:
            self._number += 1
        self._phase = Phase.WAITING

    # --- between its steps -------------------------------------------------------------------

    def received(self, event: Event, now_ns: int) -> list[Action]:
        """Something has happened; what to do about it."""
        actions = self._coordinator.receive(event, now_ns)
        if self._observe is not None:
            self._observe(now_ns, event, actions)
        return actions

    def woken(self, now_ns: int) -> list[Action]:
        """What is due by now."""
        actions = self._coordinator.wake(now_ns)
        if self._observe is not None:
            self._observe(now_ns, None, actions)
        return actions

    def worked(self, elapsed_ns: int) -> None:
        """The GPU has worked that long."""
        self._reserve.worked(elapsed_ns)

    def reconfigured(self, event: Reconfigured, now_ns: int) -> list[Action]:
        """From now on another policy, chunk mode or frame rate."""
        self._pacer.interval_ns = event.frame_interval_ns
        self._reserve = Reserve(self._load_limit, event.frame_interval_ns, self._guard_ns)
        return self.received(event, now_ns)

    def _step(self, before: Phase, after: Phase) -> None:
        if self._phase is not before:
            raise HeimdallError(
                f"frame {self._number} is {self._phase.value}, not {before.value}: "
                "a turn goes started, drawn, opened, presented"
            )
        self._phase = after
