"""Networks with early exits, as plans have them."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.vocabulary.plans import Exit


def make_exits(lengths: Sequence[tuple[int, int]], rest: int) -> tuple[Exit, ...]:
    """``lengths``: by exit, how many backbone ops lead to it from the one before and how many its
    head has; ``rest``: the ops behind the last head. Accuracies rise evenly up to 0.9."""
    backbone: list[tuple[int, int]] = []
    exits, op = [], 0
    for index, (before, head) in enumerate(lengths):
        backbone.append((op, op + before))
        op += before
        accuracy = 0.9 * (index + 1) / (len(lengths) + 1)
        exits.append(Exit(f"exit{index + 1}", (*backbone, (op, op + head)), accuracy))
        op += head
    return (*exits, Exit("full", (*backbone, (op, op + rest)), 0.9))
