"""Which chunk of which network runs where, and when: a pure state machine around a scheduler.

``events`` (what it is told and answers), ``coordinator`` (the state machine), ``job`` (the life of
an inference, as a table), ``expected`` (latencies that follow reality), ``chunking`` (static and
elastic), ``gap`` (between two frames), ``placement`` and ``offload`` (GPU or CPU), ``codec`` and
``replay`` (traces), ``snapshot`` (what the overlay shows). Nothing here reads a clock, starts a
thread or touches GL or OpenCL.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heimdall.coordinator.coordinator import Coordinator as Coordinator


def __getattr__(name: str) -> Any:
    # Loaded on first use: the coordinator imports the schedulers, and they import ``events``
    # from this package, whichever of the two is imported first.
    if name == "Coordinator":
        from heimdall.coordinator.coordinator import Coordinator

        return Coordinator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
