"""Ways to run ops together, drawn by hypothesis among all that are allowed."""

from __future__ import annotations

from hypothesis import strategies as st


@st.composite
def legal_stages(draw, needs, start, end):
    """Ops ``[start, end)`` as stages of groups of ranges: whatever an op needs is in a stage before
    its own, or before it in its group."""
    places: dict[int, tuple[int, int]] = {}  # stage and group of each op
    groups: dict[int, int] = {}  # how many there are in each stage
    for op in range(start, end):
        needed = {places[other] for other in needs[op] if other >= start}
        stage = max((each for each, _ in needed), default=0)
        own = {group for each, group in needed if each == stage}
        if draw(st.integers(0, 3)) == 0 or len(own) > 1:
            stage, own = stage + 1, set()
        choice = own.pop() if own else draw(st.integers(0, min(groups.get(stage, 0), 3)))
        groups[stage] = max(groups.get(stage, 0), choice + 1)
        places[op] = stage, choice
    stages: dict[int, dict[int, list[tuple[int, int]]]] = {}
    for op, (stage, group) in places.items():
        ranges = stages.setdefault(stage, {}).setdefault(group, [])
        if ranges and ranges[-1][1] == op and draw(st.booleans()):
            ranges[-1] = ranges[-1][0], op + 1
        else:
            ranges.append((op, op + 1))
    return [[tuple(ranges) for ranges in stages[key].values()] for key in sorted(stages)]
