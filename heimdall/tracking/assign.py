"""Pairs of two sets, chosen so that all of them together cost least."""

from __future__ import annotations

import numpy as np


def pairs(cost: np.ndarray, limit: float) -> list[tuple[int, int]]:
    """(row, column) of each pair, ascending: as a whole the cheapest in ``cost`` (n, m), where to
    leave a row alone costs ``limit``. So no pair costs more than that.

    The Hungarian method with potentials, by shortest augmenting paths: n * n * m steps, of which
    NumPy takes m at once. It is written here because SciPy would be 100 MB for this one function.
    """
    rows, columns = cost.shape
    if not rows or not columns:
        return []
    # A column of its own for each row, in which it stays alone: then every row finds a place.
    alone = np.full((rows, rows), np.inf)
    np.fill_diagonal(alone, limit)
    wide = np.hstack([np.where(cost < limit, cost, np.inf), alone])
    taken = _cheapest(wide)
    return [(row, int(column)) for row, column in enumerate(taken) if column < columns]


def _cheapest(cost: np.ndarray) -> np.ndarray:
    """The column of each row; every row must have one that is finite and its own."""
    rows, columns = cost.shape
    owner = np.full(columns + 1, -1)  # row of each column; the last is where a search begins
    of_row, of_column = np.zeros(rows), np.zeros(columns + 1)
    for row in range(rows):
        owner[columns] = row
        column, least = columns, np.full(columns, np.inf)
        came_from, done = np.full(columns, columns), np.zeros(columns + 1, bool)
        while owner[column] >= 0:
            done[column] = True
            here, free = owner[column], ~done[:columns]
            way = cost[here] - of_row[here] - of_column[:columns]
            better = free & (way < least)
            least[better], came_from[better] = way[better], column
            nearest = int(np.argmin(np.where(free, least, np.inf)))
            step = least[nearest]
            of_row[owner[done]] += step
            of_column[done] -= step
            least[free] -= step
            column = nearest
        while column != columns:
            owner[column] = owner[came_from[column]]
            column = int(came_from[column])
    found = np.empty(rows, int)
    held = np.flatnonzero(owner[:columns] >= 0)
    found[owner[held]] = held
    return found
