"""One walk in which an op and the only op that reads it become one."""

from __future__ import annotations

from collections.abc import Callable

from heimdall.engine.opencl.lowered import Lowered, Module


class Neighbours:
    """Which op writes and which ops read each tensor, kept up to date while pairs are joined."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._ops: list[Lowered | None] = list(module.ops)  # None: joined with its reader
        self._writer = {name: i for i, op in enumerate(module.ops) for name in op.outputs}
        self._readers: dict[str, set[int]] = {}
        for index, op in enumerate(module.ops):
            for name in op.inputs:
                self._readers.setdefault(name, set()).add(index)

    def writer(self, name: str) -> Lowered | None:
        """The op that makes a tensor; None for inputs and constants."""
        index = self._writer.get(name)
        return None if index is None else self._ops[index]

    def read_once(self, name: str) -> bool:
        """True if one op alone reads the tensor, and the network does not return it."""
        return len(self._readers.get(name, ())) == 1 and name not in self.module.outputs

    def precedes(self, op: Lowered, other: Lowered) -> bool:
        """Whether ``op`` stands before the other."""
        return self._writer[op.output] < self._writer[other.output]

    def join_pairs(self, join: Join) -> None:
        """Put what ``join`` makes of an op and its only reader in the place of the reader, which is
        always legal because no other op waits for the first; it is then looked at in its turn."""
        for index in range(len(self._ops)):
            op = self._ops[index]
            if op is None or len(op.outputs) != 1 or not self.read_once(op.output):
                continue
            (place,) = self._readers[op.output]
            reader = self._ops[place]
            assert reader is not None  # what was joined reads nothing any more
            joined = join(self, op, reader)
            if joined is not None:
                self._put(index, op, place, joined)
        self.module.ops = [op for op in self._ops if op is not None]

    def _put(self, index: int, op: Lowered, place: int, joined: Lowered) -> None:
        self._ops[index], self._ops[place] = None, joined
        for name in op.inputs:
            self._readers[name].discard(index)
        del self._readers[op.output]
        for name in joined.inputs:
            self._readers[name].add(place)


# Given the op and its only reader: the op that does what both do, or None.
Join = Callable[[Neighbours, Lowered, Lowered], Lowered | None]
