"""What a job enqueues on its device: one way for each kind of device (``launched``, ``walked``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import pyopencl as cl

from heimdall.engine.opencl.placed import Storage

Buffers = Mapping[Storage | None, cl.Buffer]  # of a job: the arena by None, then dedicated ones
Enqueued = tuple[tuple[int, int], list[cl.Event]]  # a range of ops, and the events of its enqueues


class Work(ABC):
    """The launches of a network, bound to the buffers of one job."""

    @abstractmethod
    def try_launch(self, layer: int, launch: int) -> cl.Event:
        """Enqueue one launch of a layer as a whole, however long that takes."""

    @abstractmethod
    def cut(self) -> None:
        """Share the launches out to ops anew, by what they take now."""

    @property
    @abstractmethod
    def counts(self) -> list[int]:
        """In how many pieces each op is enqueued, or would be by itself."""

    @abstractmethod
    def enqueue(self, queue: cl.CommandQueue, start: int, end: int, beside: int) -> list[Enqueued]:
        """Enqueue ops ``[start, end)``, in order. ``beside``: on how many other queues there is
        work for the device meanwhile."""
