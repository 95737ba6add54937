"""The processors that chunks run on. Decisions are made of look-ups and comparisons of their ids,
which are plain strings: with members of an enum they take 1% longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heimdall.errors import ConfigError
from heimdall.vocabulary.enums import Processor as Role
from heimdall.vocabulary.enums import ProcessorKind

PROCESSORS = Role.values()
GPU, CPU = PROCESSORS
REMOTE = "remote"  # a server that some DNNs may run on too


@dataclass(frozen=True, slots=True)
class Processor:
    """One that runs chunks. ``renders``: it draws the frames too, and has time for chunks only in
    the gaps between them. ``lanes``: how many chunks it runs at once, each on a core of its own."""

    id: str
    kind: str = ProcessorKind.CPU
    renders: bool = False
    lanes: int = 1


# Two inferences at once: while one is computed, another one's tensors are on their way.
SERVER = Processor(REMOTE, ProcessorKind.REMOTE, lanes=2)


def usual(cpu_workers: int = 1, *, renders: bool = True) -> tuple[Processor, ...]:
    """The GPU, and the CPU with that many workers."""
    return (
        Processor(GPU, ProcessorKind.GPU, renders=renders),
        Processor(CPU, ProcessorKind.CPU, lanes=cpu_workers),
    )


def check(processors: Sequence[Processor]) -> None:
    """Raise ConfigError for a list that nothing can run on."""
    if not processors:
        raise ConfigError("the list of processors is empty: name at least one")
    ids = [each.id for each in processors]
    if len(set(ids)) != len(ids):
        raise ConfigError(f"two processors have the same id: {', '.join(ids)}")
    for each in processors:
        if each.lanes < 1:
            raise ConfigError(f"processor {each.id!r} needs at least one lane, not {each.lanes}")
        if each.kind not in ProcessorKind.values():
            raise ConfigError(f"processor {each.id!r} has an unknown kind {each.kind!r}")
    if sum(each.renders for each in processors) > 1:
        raise ConfigError("two processors render: frames are drawn by one")
