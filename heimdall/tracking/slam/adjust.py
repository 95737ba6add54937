"""Bundle adjustment: poses of cameras and places of points, so that points are where cameras saw
them (Triggs, McLauchlan, Hartley and Fitzgibbon, 2000).

Levenberg-Marquardt steps with robust weights. Points are eliminated (the Schur complement, section
6.1), so that a step solves for the cameras only, and S = U - Y Y' is one product of dense matrices:
each point's block is factored, V = L L', and its looks' Jacobians are divided by L beforehand. All
else is arithmetic on arrays of all looks, a component at a time, which numpy does fastest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

OUTLIER = 2.0  # standard deviations: a look farther off loses its say (Cauchy)
DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-9, 1e6
SETTLED = 1e-5  # of the cost: a step that gains less is the last one
FLOOR = 1e-10  # of a point's information: what it has at least in each direction
NEAREST = 1e-3  # of the median depth: nearer to the camera's plane, a point is behind it
BEHIND = 1.0  # distance on z = 1 that a point behind a camera counts as
_LOWER = np.tril_indices(6)
_PAIRS = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))


@dataclass(frozen=True, eq=False)
class Adjusted:
    """``rotations`` (C, 3, 3) and ``translations`` (C, 3) from the world to each camera, ``points``
    (P, 3) of the world; ``errors`` (n,), how far each look is off on the plane z = 1, infinite
    where the point is behind the camera; the cost ``before`` and ``after``, in squared standard
    deviations, and how many ``steps`` lowered it."""

    rotations: np.ndarray
    translations: np.ndarray
    points: np.ndarray
    errors: np.ndarray
    before: float
    after: float
    steps: int


def adjust(
    rotations: np.ndarray,
    translations: np.ndarray,
    points: np.ndarray,
    cameras: np.ndarray,
    which: np.ndarray,
    seen: np.ndarray,
    fixed: np.ndarray,
    *,
    sigma: float,
    weights: np.ndarray | None = None,
    steps: int = 8,
) -> Adjusted:
    """Adjust cameras, but for those ``fixed`` (C,), and all points.

    Look i is that of camera ``cameras[i]`` at point ``which[i]``, at ``seen[i]`` on its plane
    z = 1; a camera looks at a point once. ``sigma`` is the standard deviation of x and y there,
    ``weights`` (n,) say how much each look counts. ``steps``: how many are tried. A step that does
    not lower the cost is not taken.

    What looks do not say, damping holds near where it was: the scale if one camera is fixed, all of
    the gauge if none is, a camera that sees nothing, the depth of a point without parallax. With
    all cameras fixed only points move. A point does not step behind a camera that saw it.
    """
    held = np.asarray(fixed, bool)[cameras]
    looks = _arranged(cameras, which, seen, held, weights, len(points), OUTLIER * sigma)
    state = _State(
        np.array(rotations, np.float64),
        np.array(translations, np.float64),
        np.ascontiguousarray(np.asarray(points, np.float64).T),
    )
    nearest = NEAREST * float(np.median(np.abs(_there(looks, state)[2]))) if len(which) else 0.0
    view = _viewed(looks, state, nearest)
    before, damping, taken = view.cost, DAMPING, 0
    system: _System | None = None
    dense = np.zeros((6 * len(looks.free), 3 * looks.count))
    for _ in range(steps):
        system = system or _System(looks, state, view)
        step = system.solved(damping, dense)
        new = None if step is None else _stepped(looks, state, view, *step, nearest)
        if new is None or not new[1].cost < view.cost:
            damping = min(damping * 10, MOST_DAMPING)
            continue
        gained = view.cost - new[1].cost
        (state, view), system = new, None
        damping, taken = max(damping / 10, LEAST_DAMPING), taken + 1
        if gained < SETTLED * view.cost:
            break
    if taken and len(looks.free):
        u, _, v = np.linalg.svd(state.rotations[looks.free])
        state.rotations[looks.free] = u @ v
    errors = np.empty(len(looks.camera))
    errors[looks.order] = view.errors
    return Adjusted(
        state.rotations, state.translations, np.ascontiguousarray(state.points.T), errors,
        before, view.cost, taken,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _State:
    """Poses, and points (3, P)."""

    rotations: np.ndarray
    translations: np.ndarray
    points: np.ndarray


@dataclass(frozen=True, eq=False)
class _Looks:
    """All looks: first those of ``free`` cameras, by camera and point, so that what is written to
    a matrix and what is summed for a camera lies in one piece."""

    order: np.ndarray  # of looks, as they were given
    camera: np.ndarray
    point: np.ndarray
    seen: np.ndarray  # (2, n)
    weight: np.ndarray | None
    free: np.ndarray  # cameras
    begins: np.ndarray  # the first look of each of them
    count: int  # points
    scale: float  # distance on z = 1 at which a look is an outlier
    places: np.ndarray  # of looks' blocks in the matrix Y, (18 m,)
    sums: np.ndarray  # of what looks say of points, (9 n,)

    @property
    def inner(self) -> int:
        """How many looks free cameras have."""
        return len(self.places) // 18


def _arranged(
    cameras: np.ndarray,
    which: np.ndarray,
    seen: np.ndarray,
    held: np.ndarray,
    weights: np.ndarray | None,
    count: int,
    scale: float,
) -> _Looks:
    order = np.lexsort((which, cameras, held))
    camera, point = cameras[order], which[order]
    inner = len(order) - int(held.sum())
    free, begins, own = np.unique(camera[:inner], return_index=True, return_inverse=True)
    rows = own * 6 + np.arange(6)[:, None]
    columns = point[:inner] + count * np.arange(3)[:, None]
    return _Looks(
        order=order,
        camera=camera,
        point=point,
        seen=np.ascontiguousarray(np.asarray(seen, np.float64)[order].T),
        weight=None if weights is None else np.asarray(weights, np.float64)[order],
        free=free,
        begins=begins,
        count=count,
        scale=scale,
        places=(rows[:, None] * (3 * count) + columns).ravel(),
        sums=(point + count * np.arange(9)[:, None]).ravel(),
    )


@dataclass(frozen=True, eq=False)
class _View:
    """What a state makes of all looks."""

    flat: np.ndarray  # (2, n) on z = 1
    near: np.ndarray  # (n,) 1 / depth
    off: np.ndarray  # (2, n) from where it was seen
    share: np.ndarray  # (n,) how much each look has to say
    ahead: np.ndarray  # (n,) whether the point is before the camera
    cost: float

    @property
    def errors(self) -> np.ndarray:
        """Distances on z = 1, (n,)."""
        return np.where(self.ahead, np.hypot(*self.off), np.inf)


def _viewed(looks: _Looks, state: _State, nearest: float) -> _View:
    there = _there(looks, state)
    ahead = there[2] > nearest
    near = 1 / np.where(ahead, there[2], 1.0)
    flat = there[:2] * near
    off = flat - looks.seen
    square = (off[0] ** 2 + off[1] ** 2) / looks.scale**2
    square[~ahead] = (BEHIND / looks.scale) ** 2
    costs, share = np.log1p(square), ahead / (1 + square)
    if looks.weight is not None:
        costs *= looks.weight
        share *= looks.weight
    return _View(flat, near, off, share, ahead, float(costs.sum()) * OUTLIER**2)


def _there(looks: _Looks, state: _State) -> np.ndarray:
    """Each look's point before its camera, (3, n)."""
    turned = _turned(looks, state)
    point = state.points[:, looks.point]
    moved: np.ndarray = (turned * point).sum(axis=1)
    moved += state.translations.T[:, looks.camera]
    return moved


def _turned(looks: _Looks, state: _State) -> np.ndarray:
    """The rotation of each look's camera, (3, 3, n)."""
    flat = np.ascontiguousarray(state.rotations.reshape(-1, 9).T)
    return np.take(flat, looks.camera, axis=1).reshape(3, 3, -1)


class _System:
    """The normal equations at a state: of each point ``_points`` (6, P) and ``_pull`` (3, P), of
    each free camera ``_cameras`` (F, 6, 6) and ``_turn`` (6 F,), and the looks' Jacobians."""

    def __init__(self, looks: _Looks, state: _State, view: _View) -> None:
        self._looks = looks
        scale = np.sqrt(view.share) / looks.scale
        self._by_point = by_point = _by_point(_turned(looks, state), view, scale)
        off = view.off * scale
        said = np.empty((9, len(scale)))
        for row, (i, j) in enumerate(_PAIRS):
            said[row] = by_point[0, i] * by_point[0, j] + by_point[1, i] * by_point[1, j]
        said[6:] = by_point[0] * off[0] + by_point[1] * off[1]
        summed = _summed(looks, said)
        self._points, self._pull = summed[:6], summed[6:]
        self._sum_cameras(view, scale, off)

    def _sum_cameras(self, view: _View, scale: np.ndarray, off: np.ndarray) -> None:
        looks = self._looks
        inner, free = looks.inner, len(looks.free)
        self._by_camera = by_camera = _by_camera(view, scale, inner)
        self._cameras, self._turn = np.empty((free, 6, 6)), np.empty(0)
        if not free:
            return
        said = np.empty((27, inner))
        for row, (i, j) in enumerate(zip(*_LOWER, strict=True)):
            said[row] = by_camera[0, i] * by_camera[0, j] + by_camera[1, i] * by_camera[1, j]
        said[21:] = by_camera[0] * off[0, :inner] + by_camera[1] * off[1, :inner]
        said = np.add.reduceat(said, looks.begins, axis=1)
        self._cameras[:, _LOWER[0], _LOWER[1]] = said[:21].T
        self._cameras[:, _LOWER[1], _LOWER[0]] = said[:21].T
        self._turn = said[21:].T.ravel()

    def solved(self, damping: float, dense: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The step: a turn and a move of each free camera, (F, 6), and moves of points, (3, P).
        ``dense`` is room for the matrix Y, 0 where no camera looks."""
        lower = _factored(self._points, damping)
        pull = _divided(self._pull, lower)
        if not len(self._turn):
            return np.empty((0, 6)), -_divided_back(pull, lower)
        looks = self._looks
        inner, free = looks.inner, len(looks.free)
        spread = lower[:, looks.point[:inner]]
        left, right = (_divided(each, spread) for each in self._by_point[:, :, :inner])
        across, down = self._by_camera
        blocks = across[:, None] * left + down[:, None] * right
        dense.ravel()[looks.places] = blocks.ravel()
        system = -(dense @ dense.T)  # one matrix twice: the symmetric product takes half as long
        damped = self._cameras.copy()
        diagonal = np.einsum("fii->fi", damped)
        diagonal += damping * diagonal + FLOOR * diagonal.mean(axis=1, keepdims=True) + 1e-300
        each = np.arange(free)
        system.reshape(free, 6, free, 6)[each, :, each, :] += damped
        try:
            turns = np.linalg.solve(system, dense @ pull.ravel() - self._turn)
        except np.linalg.LinAlgError:
            return None
        moves = -_divided_back(pull + (turns @ dense).reshape(3, -1), lower)
        if not (np.isfinite(turns).all() and np.isfinite(moves).all()):
            return None
        return turns.reshape(free, 6), moves


def _summed(looks: _Looks, said: np.ndarray) -> np.ndarray:
    """What looks say of their points, (k, n), summed for each point, (k, P)."""
    rows, count = len(said), looks.count
    index = looks.sums[: said.size]
    summed: np.ndarray = np.bincount(index, said.ravel(), rows * count).astype(np.float64)
    return summed.reshape(rows, count)


def _by_point(turned: np.ndarray, view: _View, scale: np.ndarray) -> np.ndarray:
    """Derivatives of each look by its point, (2, 3, n)."""
    near = view.near * scale
    return np.stack([(turned[k] - view.flat[k] * turned[2]) * near for k in (0, 1)])


def _by_camera(view: _View, scale: np.ndarray, inner: int) -> np.ndarray:
    """Derivatives by a turn of the camera's axes and a move, (2, 6, inner)."""
    (x, y), near, scale = view.flat[:, :inner], view.near[:inner], scale[:inner]
    found = np.zeros((2, 6, inner))
    across, down = found
    across[0], across[1], across[2] = -x * y, 1 + x * x, -y
    across[3], across[5] = near, -x * near
    down[0], down[1], down[2] = -1 - y * y, x * y, x
    down[4], down[5] = near, -y * near
    found *= scale
    return found


def _factored(points: np.ndarray, damping: float) -> np.ndarray:
    """Cholesky factors of points' damped blocks, (6, P), row by row; the diagonal inverted."""
    trace = points[0] + points[2] + points[5]
    floor = np.where(trace > 0, FLOOR * trace, 1.0)
    lower = np.empty_like(points)
    with np.errstate(all="ignore"):
        lower[0] = 1 / np.sqrt(points[0] * (1 + damping) + floor)
        lower[1] = points[1] * lower[0]
        lower[3] = points[3] * lower[0]
        left = points[2] * (1 + damping) + floor - lower[1] ** 2
        lower[2] = 1 / np.sqrt(np.maximum(left, floor))
        lower[4] = (points[4] - lower[3] * lower[1]) * lower[2]
        left = points[5] * (1 + damping) + floor - lower[3] ** 2 - lower[4] ** 2
        lower[5] = 1 / np.sqrt(np.maximum(left, floor))
    return lower


def _divided(rows: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """x with L x = rows (3, n)."""
    found = np.empty_like(rows)
    found[0] = rows[0] * lower[0]
    found[1] = (rows[1] - lower[1] * found[0]) * lower[2]
    found[2] = (rows[2] - lower[3] * found[0] - lower[4] * found[1]) * lower[5]
    return found


def _divided_back(rows: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """x with L' x = rows (3, n)."""
    found = np.empty_like(rows)
    found[2] = rows[2] * lower[5]
    found[1] = (rows[1] - lower[4] * found[2]) * lower[2]
    found[0] = (rows[0] - lower[1] * found[1] - lower[3] * found[2]) * lower[0]
    return found


def _stepped(
    looks: _Looks, state: _State, view: _View, turns: np.ndarray, moves: np.ndarray, nearest: float
) -> tuple[_State, _View]:
    rotations, translations = state.rotations.copy(), state.translations.copy()
    turned = exponential(turns[:, :3])
    rotations[looks.free] = turned @ rotations[looks.free]
    translations[looks.free] = (turned @ translations[looks.free][..., None])[..., 0] + turns[:, 3:]
    new = _State(rotations, translations, state.points + moves)
    seen = _viewed(looks, new, nearest)
    passed = view.ahead & ~seen.ahead
    if passed.any():  # one point does not refuse the step of all others
        held = looks.point[passed]
        new.points[:, held] = state.points[:, held]
        seen = _viewed(looks, new, nearest)
    return new, seen


def exponential(turns: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) by Rodrigues vectors (n, 3), radians."""
    angle = np.linalg.norm(turns, axis=1)[:, None, None]
    safe = np.maximum(angle, 1e-9)
    x, y, z = turns.T
    cross = np.zeros((len(turns), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -z, y, -x
    cross -= cross.transpose(0, 2, 1)
    square = cross @ cross
    return np.eye(3) + cross * (np.sin(safe) / safe) + square * ((1 - np.cos(safe)) / safe**2)


def refine_points(
    rotations: np.ndarray,
    translations: np.ndarray,
    cameras: np.ndarray,
    which: np.ndarray,
    seen: np.ndarray,
    points: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of points from all looks at them, by cameras whose poses are known: the linear
    solution (Hartley and Zisserman, 2004, 12.2), then two Gauss-Newton steps on what is seen.

    Looks are given as to ``adjust``; ``points`` (P, 3) are returned where looks say nothing better.
    Returns places (P, 3); the largest error of each point's looks on z = 1, (P,), infinite where
    it is behind a camera, 0 without looks; and the largest angle between its rays, (P,) radians
    (found in two sweeps over them: with three looks or more it may be a little too small).
    """
    given = np.ascontiguousarray(np.asarray(points, np.float64).T)
    count = given.shape[1]
    if not len(which):
        return given.T.copy(), np.zeros(count), np.zeros(count)
    held = np.ones(len(which), bool)
    looks = _arranged(cameras, which, seen, held, None, count, np.inf)
    poses = np.asarray(rotations, np.float64), np.asarray(translations, np.float64)
    turned = _turned(looks, _State(*poses, given))
    moved = poses[1].T[:, looks.camera]
    found = _linear(looks, turned, moved, given)
    nearest = 1e-12
    for _ in range(2):
        state = _State(*poses, found)
        view = _viewed(looks, state, nearest)
        found = _refined(looks, turned, view, found)
    state = _State(*poses, found)
    view = _viewed(looks, state, nearest)
    worst = np.zeros(count)
    order = np.argsort(view.errors, kind="stable")
    worst[looks.point[order]] = view.errors[order]  # the last one stays
    return np.ascontiguousarray(found.T), worst, _parallax(looks, turned, moved, found)


def _linear(looks: _Looks, turned: np.ndarray, moved: np.ndarray, given: np.ndarray) -> np.ndarray:
    rows = np.stack([turned[k] - looks.seen[k] * turned[2] for k in (0, 1)])
    aims = np.stack([looks.seen[k] * moved[2] - moved[k] for k in (0, 1)])
    return _solved(looks, rows, aims, given)


def _refined(looks: _Looks, turned: np.ndarray, view: _View, found: np.ndarray) -> np.ndarray:
    rows = _by_point(turned, view, view.ahead.astype(float))
    step = _solved(looks, rows, -view.off * view.ahead, np.zeros_like(found))
    return found + step


def _solved(looks: _Looks, rows: np.ndarray, aims: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Of each point the least squares of its looks: x (3, P) with rows (2, 3, n) x = aims."""
    said = np.empty((9, rows.shape[2]))
    for row, (i, j) in enumerate(_PAIRS):
        said[row] = rows[0, i] * rows[0, j] + rows[1, i] * rows[1, j]
    said[6:] = rows[0] * aims[0] + rows[1] * aims[1]
    summed = _summed(looks, said)
    lower = _factored(summed[:6], 0.0)
    found = _divided_back(_divided(summed[6:], lower), lower)
    return np.where(np.isfinite(found).all(axis=0) & (summed[0] > 0), found, otherwise)


def _parallax(
    looks: _Looks, turned: np.ndarray, moved: np.ndarray, found: np.ndarray
) -> np.ndarray:
    centres = -(turned * moved[:, None]).sum(axis=0)
    rays = found[:, looks.point] - centres
    rays /= np.maximum(np.sqrt((rays**2).sum(axis=0)), 1e-300)
    middle = _summed(looks, rays)
    middle /= np.maximum(np.sqrt((middle**2).sum(axis=0)), 1e-300)
    count = looks.count
    farthest, most = middle, np.zeros(count)
    for sweep in range(3):
        chord = ((rays - farthest[:, looks.point]) ** 2).sum(axis=0)
        order = np.argsort(chord, kind="stable")
        point = looks.point[order]
        reached = np.zeros(count)
        farthest = np.zeros((3, count))
        reached[point], farthest[:, point] = chord[order], rays[:, order]  # the last one stays
        if sweep:  # the first was from the middle
            most = np.maximum(most, reached)
    return np.asarray(2 * np.arcsin(np.minimum(np.sqrt(most) / 2, 1.0)))
