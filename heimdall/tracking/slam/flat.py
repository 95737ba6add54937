"""One flat piece of a sparse map: guesses of planes, the best plane through points, and which of
them hang together.

A point is uncertain along the ray by which it was seen, more than across it. So how far it may be
from a plane follows from its depth, its spread, and how steeply the ray meets the plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

ACROSS = 0.002  # standard deviation of a point across its ray, over its depth
ALONG = 0.005  # and along it, at least: a map is bent, too; measured in rendered rooms
NEAR = 2.7  # standard deviations from the plane that are still on it
MOST_OFF = 0.04  # of its depth: vaguer points would be on any plane
SHARP = 0.015  # relative spread of points that count almost fully
FRONT = 0.06  # cosine of ray and normal: below it a plane is seen from its edge, or from behind
REACH = 0.05  # of its depth: two points hang together if their reaches meet
PARTS, LEAST_THERE = 4, 5  # by which it is seen whether something is flat: across, points in each
WARPED = 0.003  # of its depth: by which a map is bent
COMPANY = 3  # points around one, itself too, that make it more than a stray
SPARSE = 0.15  # of the usual company
FITS = 2
TUKEY = 4.0
GRID = 112  # cells across, at most
POOL = 500  # points among which neighbours are looked for
NEIGHBOURS = 8, 16, 32, 64
ALIKE = 0.5  # of their points: two guesses that share so many are one
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Flat:
    """A plane: ``normal`` (3,) to the side from which it is seen, its ``offset`` along that, and a
    point of it, the ``middle``. Standard deviations: ``offset_sd`` there, and ``turn_sd`` of the
    normal, radians."""

    normal: np.ndarray
    offset: float
    middle: np.ndarray
    offset_sd: float = 0.0
    turn_sd: float = 0.0

    def axes(self) -> np.ndarray:
        """Two directions within it, (2, 3)."""
        x, y, z = self.normal.tolist()
        sign = 1.0 if z >= 0 else -1.0  # Duff et al., 2017: Building an orthonormal basis
        a = -1 / (sign + z)
        b = x * y * a
        return np.array([[1 + sign * x * x * a, sign * b, -sign * x], [b, sign + y * y * a, -y]])


class Cloud:
    """Points (n, 3) of a map, the relative standard deviation ``spread`` (n,) of each one's depth,
    and from where each was seen (n, 3)."""

    def __init__(self, points: np.ndarray, spread: np.ndarray, seen_from: np.ndarray) -> None:
        rays = points - seen_from
        self.points = points
        self.depth = np.maximum(np.linalg.norm(rays, axis=1), TINY)
        self.rays = rays / self.depth[:, None]
        self.spread = np.hypot(spread, ALONG)
        self.weight = 1 / (1 + (spread / SHARP) ** 2)

    def __len__(self) -> int:
        return len(self.points)

    def part(self, chosen: np.ndarray) -> Cloud:
        """Some of the points."""
        return Cloud.__new__(Cloud)._of(self, chosen)

    def _of(self, whole: Cloud, chosen: np.ndarray) -> Cloud:
        for name in ("points", "depth", "rays", "spread", "weight"):
            setattr(self, name, getattr(whole, name)[chosen])
        return self

    def off(self, flat: Flat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each point: how far it is from the plane, the standard deviation of that, and whether
        it was seen from the plane's front; (n,) each."""
        steep = self.rays @ flat.normal
        sd = self.depth * np.hypot(self.spread * steep, ACROSS)
        return self.points @ flat.normal - flat.offset, sd, steep < -FRONT

    def near(self, flat: Flat) -> np.ndarray:
        """Which of the points are on the plane, as far as its distance says, (n,)."""
        away, sd, front = self.off(flat)
        return np.asarray(front & (np.abs(away) < np.minimum(NEAR * sd, MOST_OFF * self.depth)))


def fit(cloud: Cloud, flat: Flat) -> Flat | None:
    """The plane near ``flat`` that all points of ``cloud`` are on: total least squares, weighed by
    what each point is worth, and robust (Tukey). None where they do not say one."""
    points = cloud.points
    if len(points) < 3:
        return None
    for _ in range(FITS):
        away, sd, _ = cloud.off(flat)
        sizes = np.abs(away) / sd
        half = len(sizes) // 2
        scale = min(max(1.48 * float(np.partition(sizes, half)[half]), 0.3), 2.0)
        share = (1 - np.minimum(sizes / (TUKEY * scale), 1) ** 2) ** 2 / sd**2
        total = float(share.sum())
        if not total > 0:
            return None
        middle = share @ points / total
        apart = points - middle
        values, axes = np.linalg.eigh((apart * share[:, None]).T @ apart)
        if not values[1] > 1e-6 * max(float(values[2]), TINY):  # all on one line
            return None
        normal = axes[:, 0] * (1.0 if axes[:, 0] @ flat.normal >= 0 else -1.0)
        size = max(scale, 0.7)
        deviations = float(size / np.sqrt(total)), float(size / np.sqrt(values[1]))
        flat = Flat(normal, float(normal @ middle), middle, *deviations)
    return flat


class Patch:
    """What points (m, 2) of a plane cover, each as far as its ``reach`` (m,); pieces that do not
    touch are told apart: ``labels`` (m,), from 1."""

    def __init__(self, places: np.ndarray, reach: np.ndarray) -> None:
        low, high = places.min(axis=0), places.max(axis=0)
        most = float(reach.max())
        across = float((high - low).max()) + 4 * most
        self._cell = max(across / GRID, float(reach.mean()) / 3)
        self._start = low - 2 * most
        shape = np.ceil((high - low + 4 * most) / self._cell).astype(int) + 1
        covered = np.zeros((int(shape[1]), int(shape[0])), np.uint8)
        column, row = self._cells(places)
        size = np.round(np.log2(np.maximum(reach / self._cell, 1))).astype(int)
        size[self._lonely(row, column, covered.shape, float(reach.mean()))] = -1
        for each in np.unique(size[size >= 0]).tolist():  # reaches alike are drawn together
            dots = np.zeros_like(covered)
            dots[row[size == each], column[size == each]] = 1
            wide = 2**each * 2 + 1
            disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (wide, wide))
            covered |= np.asarray(cv2.dilate(dots, disc), np.uint8)
        _, self._pieces = cv2.connectedComponents(covered, connectivity=8)
        self.labels = self._pieces[row, column]

    def _lonely(
        self, row: np.ndarray, column: np.ndarray, shape: tuple[int, ...], reach: float
    ) -> np.ndarray:
        """Points with hardly any others around: they are no bridge between pieces (Ester et al.,
        1996, DBSCAN)."""
        count = np.zeros(shape, np.float32)
        np.add.at(count, (row, column), 1)
        side = 2 * round(2 * reach / self._cell) + 1
        around = cv2.boxFilter(count, -1, (side, side), normalize=False)
        company = around[row, column]
        least = max(COMPANY, SPARSE * float(np.median(company)))
        return np.asarray(company < least - 0.5)

    def _cells(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        where = np.floor((places - self._start) / self._cell).astype(int)
        return where[:, 0], where[:, 1]

    def at(self, places: np.ndarray) -> np.ndarray:
        """The label of the piece at each of ``places`` (k, 2): 0 where there is none."""
        column, row = self._cells(places)
        height, width = self._pieces.shape
        inside = (column >= 0) & (row >= 0) & (column < width) & (row < height)
        found = np.zeros(len(places), int)
        found[inside] = self._pieces[row[inside], column[inside]]
        return found

    def compact(self, label: int) -> float:
        """How much of its own hull a piece covers, 0 to 1."""
        mask = (self._pieces == label).astype(np.uint8)
        outline, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
        if not outline:
            return 0.0
        hull = cv2.contourArea(cv2.convexHull(np.concatenate(outline)))
        return float(min(mask.sum() / max(hull, 1.0), 1.0))


def uneven(cloud: Cloud, flat: Flat) -> float:
    """How much more the points of ``cloud`` are off together, each with those around it, than noise
    explains, in standard deviations: 1 for what is flat, more for fronts at several depths."""
    away, sd, _ = cloud.off(flat)
    own = places(cloud.points, flat)
    low, high = own.min(axis=0), own.max(axis=0)
    cell = np.floor((own - low) / np.maximum(high - low, TINY) * PARTS * 0.999).astype(int)
    which = cell[:, 0] * PARTS + cell[:, 1]
    share = 1 / sd**2
    weight, mean, far = (
        np.bincount(which, each, PARTS**2) for each in (share, share * away, share * cloud.depth)
    )
    filled = np.bincount(which, minlength=PARTS**2) >= LEAST_THERE
    if not filled.any():
        return 0.0
    weight = weight[filled]
    apart, depth = mean[filled] / weight, far[filled] / weight
    deviation = apart**2 / (1 / weight + (WARPED * depth) ** 2)
    return float(np.sqrt(np.average(deviation, weights=weight)))


def reach(cloud: Cloud, flat: Flat) -> np.ndarray:
    """How far around it each point stands for the plane, (n,): points of a plane that is seen from
    its edge are farther apart along it."""
    steep = np.clip(-(cloud.rays @ flat.normal), 0.35, 1.0)
    return np.asarray(REACH * cloud.depth / np.sqrt(steep))


def patch(cloud: Cloud, flat: Flat) -> Patch:
    """What the points of ``cloud``, on the plane ``flat``, cover of it."""
    return Patch(places(cloud.points, flat), reach(cloud, flat))


def places(points: np.ndarray, flat: Flat) -> np.ndarray:
    """Points (n, 3) within the plane, (n, 2), along its ``axes``."""
    return np.asarray((points - flat.middle) @ flat.axes().T)


def within(places: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which of ``places`` (n, 2) lie in the convex hull of ``others`` (m, 2), (n,)."""
    corners = cv2.convexHull(others.astype(np.float32))[:, 0].astype(np.float64)
    side = np.roll(corners, -1, axis=0) - corners
    outward = np.column_stack([side[:, 1], -side[:, 0]])
    middle = corners.mean(axis=0)
    outward *= np.sign(((corners - middle) * outward).sum(axis=1, keepdims=True))
    beyond = places @ outward.T - (corners * outward).sum(axis=1)
    return np.asarray((beyond <= 1e-6 * np.abs(corners - middle).max() ** 2).all(axis=1))


# --- guesses ---------------------------------------------------------------------------------


def guesses(
    cloud: Cloud, up: np.ndarray | None, count: int, draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Normals (k, 3) and offsets (k,) of planes through points near one another, ``count`` or fewer
    of each sort. With ``up`` they are level or upright; without, of any direction."""
    seeds = draw.integers(0, len(cloud), count)
    others = _near(cloud, seeds, draw)
    start = cloud.points[seeds]
    first, second = cloud.points[others[:, 0]] - start, cloud.points[others[:, 1]] - start
    if up is None:
        normals = np.cross(first, second)
    else:
        normals = np.concatenate(
            [np.broadcast_to(up, (count, 3)), np.cross(up, first), np.cross(up, second)]
        )
        seeds, start = np.tile(seeds, 3), np.tile(start, (3, 1))
    length = np.linalg.norm(normals, axis=1)
    good = length > TINY
    normals, seeds, start = normals[good] / length[good, None], seeds[good], start[good]
    behind = (normals * cloud.rays[seeds]).sum(axis=1) > 0
    normals[behind] *= -1
    return normals, (normals * start).sum(axis=1)


def _near(cloud: Cloud, seeds: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Two others (k, 2) for each seed, within its neighbourhood: a plane is most of what is near a
    point of it. How wide that is, is drawn."""
    pool = draw.choice(len(cloud), min(len(cloud), POOL), replace=False)
    theirs = cloud.points[pool]
    apart = (theirs**2).sum(axis=1) - 2 * cloud.points[seeds] @ theirs.T  # but for what is its own
    least = min(NEIGHBOURS[-1], len(pool) - 1)
    nearest = np.argpartition(apart, least, axis=1)[:, : least + 1]
    order = np.argsort(np.take_along_axis(apart, nearest, axis=1), axis=1)
    most = np.array(NEIGHBOURS)[draw.integers(0, len(NEIGHBOURS), len(seeds))]
    ranks = 1 + (draw.random((len(seeds), 2)) * np.minimum(most, least)[:, None]).astype(int)
    chosen = np.take_along_axis(order, np.minimum(ranks, least), axis=1)
    return np.asarray(pool[np.take_along_axis(nearest, chosen, axis=1)])


def best(
    cloud: Cloud, normals: np.ndarray, offsets: np.ndarray, most: int
) -> list[tuple[np.ndarray, float]]:
    """Of planes (k, 3) and (k,) those that points bear out best, ``most`` of them that differ in
    their points. Each point counts the more, the nearer it is and the better it is known."""
    steep = cloud.rays @ normals.T
    square = (cloud.points @ normals.T - offsets) ** 2
    square /= (cloud.depth[:, None] * NEAR) ** 2 * (
        (cloud.spread[:, None] * steep) ** 2 + ACROSS**2
    )
    closeness = np.maximum(1 - square, 0) * (steep < -FRONT)
    order = np.argsort(-(cloud.weight @ closeness))
    kept: list[int] = []
    on = closeness > 0
    for at in order[: 10 * most].tolist():
        mine = on[:, at]
        if all((mine & on[:, k]).sum() < ALIKE * (mine | on[:, k]).sum() for k in kept):
            kept.append(at)
        if len(kept) == most:
            break
    return [(normals[at], float(offsets[at])) for at in kept]
