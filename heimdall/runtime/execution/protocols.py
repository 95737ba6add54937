"""What a run needs of what decides, and of what carries decisions out.

The coordinator and the executor meet these; so does what stands in their place in a baseline.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from heimdall.coordinator.snapshot import Snapshot
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.execution.frames import Newest, Renew
from heimdall.runtime.loop.frame_loop import Decider
from heimdall.system.faults import Faults
from heimdall.vocabulary.events import Action


class Coordinates(Decider, Protocol):
    """Decides what runs when. Told of time; never asks for it."""

    keeps_gaps: bool  # whether gaps are known, and how well they are used
    decisions: int  # how often a scheduler has been asked
    faults: Faults  # what it did wrong

    @property
    def replaced(self) -> str:
        """The name of a policy that is not asked any more; else ""."""

    def config(self) -> Mapping[str, Any]:
        """What a replay needs."""

    def snapshot(self, now_ns: int) -> Snapshot:
        """What the overlay shows."""


class Executes(Protocol):
    """Carries actions out on threads of its own, and posts what came of it to an inbox."""

    preloaded: threading.Event  # no loading is under way

    def add(self, name: str, deployment: Deployment, newest: Newest, renew: Renew) -> object:
        """A DNN whose actions will come."""

    def leave(self, names: Iterable[str]) -> None:
        """DNNs that will be removed: nothing need be made ready for them."""

    def remove(self, names: Iterable[str]) -> bool:
        """DNNs of which no more will come; returns when no thread works for them any more, or
        False when one still does after a while."""

    def ask(self, name: str, options: Mapping[str, Any]) -> None:
        """The options of a DNN's next job."""

    def execute(self, actions: Sequence[Action]) -> None:
        """Begin ``actions``; never waits."""

    def preload(self, names: Iterable[str]) -> None:
        """Make these DNNs ready to move."""

    def watch(self) -> None:
        """Give up what hangs; called at every frame."""

    def close(self) -> None:
        """Wait for what is running, then end the threads."""

    def faulty(self, name: str) -> bool:
        """Whether something has failed for this DNN."""

    def errors_of(self, names: Iterable[str]) -> list[str]:
        """What has failed for these DNNs, or for all; each message once."""

    def message_of(self, names: Iterable[str]) -> str:
        """The newest failure among those."""
