"""What of a part need not be drawn: its inside, where it is closed, and some of its triangles, when
it is far away or a frame would be late.

Vertices of one cell of a grid become one of them (clustering, Rossignac and Borrel 1993; keeping
apart those that face elsewhere tears surfaces): the one that is nearest to the planes of all
triangles around them (Lindstrom 2000), so that edges and tips stay. Which vertices stay is all that
is chosen: skins, shapes and textures go on working.
"""

from __future__ import annotations

import numpy as np

from heimdall.render.content.model import TRIANGLES, Coarse, DrawCall

_SHARES = (0.4, 0.15, 0.05)  # of the triangles
_FEWEST = 600  # triangles: nothing is gained below
_TRIES = 7
_LOOKED_AT = 200_000  # triangles, at most, for whether they are closed: half a second


def levels(part: DrawCall) -> tuple[Coarse, ...]:
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


def _reduced(part: DrawCall, wanted: int) -> Coarse:
    """With about so many triangles, by bisection of the cells' size."""
    low, high = 4.0, 1024.0  # cells along the longest side
    found = None
    for _ in range(_TRIES):
        cells = float(np.sqrt(low * high))
        corners, cluster = _clustered(part, cells)
        if len(corners) > wanted:
            high = cells
        else:
            low, found = cells, (corners, cluster)
    corners, cluster = found if found is not None else _clustered(part, low)
    return Coarse(_kept(part, cluster).astype(np.uint32), corners.ravel().astype(np.uint32))


def _clustered(part: DrawCall, cells: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles between clusters, (m, 3), and the cluster of each vertex, (n,)."""
    points = part.positions - part.positions.min(axis=0)
    side = float(points.max()) / cells or 1.0
    grid = np.minimum(points / side, 2**18 - 1).astype(np.int64)
    key = grid[:, 0] << 40 | grid[:, 1] << 20 | grid[:, 2]
    cluster = np.unique(key, return_inverse=True)[1].reshape(-1)
    corners = cluster[part.indices].reshape(-1, 3)
    a, b, c = corners.T
    return corners[(a != b) & (b != c) & (a != c)], cluster


def _kept(part: DrawCall, cluster: np.ndarray) -> np.ndarray:
    """The vertex that stands for each cluster: of the least quadric error."""
    points = (part.positions - part.positions.mean(axis=0)).astype(float)
    corners = part.indices.reshape(-1, 3)
    a, b, c = points[corners].transpose(1, 0, 2)
    across = np.cross(b - a, c - a)
    areas = np.linalg.norm(across, axis=1, keepdims=True)
    normals = across / np.maximum(areas, 1e-30)
    planes = np.hstack([normals, -(normals * a).sum(axis=1, keepdims=True)])
    quadrics = (planes[:, :, None] * planes[:, None, :] * areas[:, None]).reshape(-1, 16)
    count = int(cluster.max()) + 1
    sums = np.stack(
        [np.bincount(cluster[corners].ravel(), np.repeat(each, 3), count) for each in quadrics.T],
        axis=1,
    ).reshape(-1, 4, 4)
    ends = np.column_stack([points, np.ones(len(points))])
    errors = np.einsum("ni,nij,nj->n", ends, sums[cluster], ends)
    order = np.lexsort((errors, cluster))
    first = np.concatenate([[True], np.diff(cluster[order]) > 0])
    return np.asarray(order[first])


def closed(part: DrawCall) -> bool:
    """Whether each edge lies between two triangles that face the same way, outwards: then the
    inside cannot be seen. Many files say of everything that it has two sides, and of a closed
    surface software GL would draw the far one before the near one hides it: 12 ms instead of 7 for
    5,600 triangles on 110,000 pixels."""
    if part.mode != TRIANGLES or not 0 < part.triangles <= _LOOKED_AT:
        return False
    points, same = np.unique(part.positions, axis=0, return_inverse=True)
    corners = same.reshape(-1)[part.indices].reshape(-1, 3).astype(np.int64)
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (c != a)]
    ends = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    there = np.sort(ends[:, 0] * len(points) + ends[:, 1])
    back = np.sort(ends[:, 1] * len(points) + ends[:, 0])
    if not len(there) or (there[1:] == there[:-1]).any() or not np.array_equal(there, back):
        return False
    at = points[corners].astype(float)
    volumes = (at[:, 0] * np.cross(at[:, 1], at[:, 2])).sum(axis=1)
    return bool((np.bincount(_pieces(ends, len(points))[corners[:, 0]], volumes) >= 0).all())


def _pieces(ends: np.ndarray, count: int) -> np.ndarray:
    """The connected piece of each point, by the least number among its points."""
    found = np.arange(count)
    while True:
        least = found.copy()
        np.minimum.at(least, ends[:, 0], found[ends[:, 1]])
        least = np.minimum(least, least[least])
        least = least[least]
        if np.array_equal(least, found):
            return found
        found = least
