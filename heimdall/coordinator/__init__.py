"""Which chunk of which network runs where, and when: a pure state machine around a scheduler.

``coordinator`` (the state machine), ``job`` (the life of an inference, as a table), ``expected``
(latencies that follow reality), ``chunking`` (static and elastic), ``gap`` (between two frames),
``placement`` and ``offload`` (GPU or CPU), ``codec`` and ``replay`` (traces), ``snapshot`` (what
the overlay shows). What it is told and answers is ``vocabulary.events``. Nothing here reads a
clock, starts a thread or touches GL or OpenCL.
"""

from heimdall.coordinator.coordinator import Coordinator

__all__ = ["Coordinator"]
