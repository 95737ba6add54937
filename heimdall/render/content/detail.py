"""Coarser versions of a part, for when it is far away or a frame would be late.

Vertices of one cell of a grid become one of them (clustering, Rossignac and Borrel 1993; keeping
apart those that face elsewhere tears surfaces). Which vertices stay is all that is chosen: skins,
shapes and textures go on working.
"""

from __future__ import annotations

import numpy as np

from heimdall.render.content.model import TRIANGLES, Coarse, Part

_SHARES = (0.4, 0.15, 0.05)  # of the triangles
_FEWEST = 600  # triangles: nothing is gained below
_TRIES = 7


def levels(part: Part) -> tuple[Coarse, ...]:
    """From fine to coarse; none for parts that have few triangles anyway."""
    if part.mode != TRIANGLES:
        return ()
    found = []
    for share in _SHARES:
        wanted = int(part.triangles * share)
        if wanted < _FEWEST:
            break
        found.append(_reduced(part, wanted))
    return tuple(found)


def _reduced(part: Part, wanted: int) -> Coarse:
    """With about so many triangles, by bisection of the cells' size."""
    low, high = 4.0, 1024.0  # cells along the longest side
    found = None
    for _ in range(_TRIES):
        cells = float(np.sqrt(low * high))
        indices, kept = _clustered(part, cells)
        if len(indices) > 3 * wanted:
            high = cells
        else:
            low, found = cells, (indices, kept)
    indices, kept = found if found is not None else _clustered(part, low)
    return Coarse(kept.astype(np.uint32), indices.astype(np.uint32))


def _clustered(part: Part, cells: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles between clusters, and the vertex that each cluster keeps."""
    points = part.positions - part.positions.min(axis=0)
    side = float(points.max()) / cells or 1.0
    grid = np.minimum(points / side, 2**18 - 1).astype(np.int64)
    key = grid[:, 0] << 40 | grid[:, 1] << 20 | grid[:, 2]
    _, first, cluster = np.unique(key, return_index=True, return_inverse=True)
    corners = cluster.reshape(-1)[part.indices].reshape(-1, 3)
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (a != c)]
    return corners.ravel(), first
