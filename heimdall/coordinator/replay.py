"""Play a recorded run into a fresh coordinator and show where the actions differ.

A record is ``{"now_ns": ..., "event": {...} | None, "actions": [...]}``: one call of ``receive``
(or of ``wake``, whose event is None) and its answer, as JSON data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heimdall.coordinator.codec import from_dict, to_dict
from heimdall.coordinator.coordinator import Coordinator
from heimdall.errors import ConfigError
from heimdall.schedulers import Scheduler
from heimdall.vocabulary.events import Action, Event


@dataclass(frozen=True)
class Difference:
    """Call ``index`` answered otherwise than recorded."""

    index: int
    now_ns: int
    recorded: tuple[Action, ...]
    replayed: tuple[Action, ...]


def record(now_ns: int, event: Event | None, actions: Sequence[Action]) -> dict[str, Any]:
    """One call as JSON data; ``event`` is None for ``wake``."""
    return {
        "now_ns": int(now_ns),
        "event": None if event is None else to_dict(event),
        "actions": [to_dict(action) for action in actions],
    }


def replay(
    config: Mapping[str, Any],
    records: Iterable[Mapping[str, Any]],
    policy: Scheduler | None = None,
) -> Iterator[Difference]:
    """Yield every difference between the recorded and the replayed actions.

    ``config`` is ``Coordinator.config()`` of the recorded one; ``policy``: its scheduler, fresh,
    where that cannot be made of its name alone. Raises ConfigError for data that
    is no such record, CoordinationError when a recorded event cannot happen in the replay (it
    has gone another way after the differences yielded so far).
    """
    coordinator = Coordinator.from_config(config, policy)
    for index, entry in enumerate(records):
        try:
            now_ns = int(entry["now_ns"])
            recorded = tuple(from_dict(action) for action in entry["actions"])
            event = None if entry["event"] is None else from_dict(entry["event"])
            if event is None:
                replayed = tuple(coordinator.wake(now_ns))
            else:
                replayed = tuple(coordinator.receive(event, now_ns))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ConfigError(f"record {index} of the trace is damaged: {error!r}") from error
        if recorded != replayed:
            yield Difference(index, now_ns, recorded, replayed)
