"""Which chunk of which network runs where, and when: a pure state machine around a scheduler.

``coordinator`` (the state machine), ``states`` (the life of a job, as a table), ``job`` (a DNN and
its jobs), ``jobs`` (those in flight), ``dispatch`` (a policy's choice among them), ``chunking``
(static and elastic), ``gap`` (between two frames), ``placement`` and ``offload`` (GPU or CPU),
``codec`` and ``replay`` (traces), ``snapshot`` (what the overlay shows).
What it is told and answers is ``vocabulary.events``. Nothing here reads a clock, starts a thread
or touches GL or OpenCL.
"""

from heimdall.coordinator.coordinator import Coordinator

__all__ = ["Coordinator"]
