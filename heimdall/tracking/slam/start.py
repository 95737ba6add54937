"""How a map begins: from points of one picture followed into later ones, cameras and points.

As ORB-SLAM (Mur-Artal, Montiel and Tardos, 2015, section IV) two models are tried: any scene, by an
essential matrix, and a plane, by a homography, which leaves up to four solutions (Faugeras and
Lustman, 1988). Unlike there each is carried through all looks and adjusted, and a map begins only
if one of them explains those clearly better than all that differ from it: otherwise it is better to
wait for more parallax.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.slam.depths import Looks, Models, errors, fit
from heimdall.tracking.slam.hypotheses import best, certain
from heimdall.tracking.slam.twoviews import Relative, flat, moved, placed, relative

LEAST_POINTS = 40
LEAST_SHARE = 0.5  # of points that agree
STILL_SHARE = 0.6  # of all points: what else moves is a minority
NOISE_PX = 0.8  # standard deviation of where a point is seen
WRONG, WRONG_PX = 4.0, (1.2, 2.5)  # standard deviations, but no less and no more pixels
RAYLEIGH = 1.18  # the median distance of two coordinates, in standard deviations of each
STILL_PX, TURNING_SHARE = 1.5, 0.65  # so many points move as little if the camera only turns
MOST_MOVED = 5.0  # times as far as most points: what is so near, or moves, is left out
LEAST_LOOKS = 3  # by two, a mirrored plane or things that move may look right
MOST_LOOKS = 6  # that are compared
STEPS = 2, 2, 2  # with all points, and with those that agree
LEAST_PARALLAX = math.radians(0.9)  # median of the points
LEAST_MOVED = 0.03  # of the points' distance
ROUGHLY, NEARLY = 0.6, 0.8  # of both, as long as a model is not adjusted, or not by all points
POINT_PARALLAX = math.radians(0.4)
FEATURES, PARALLAX, AMBIGUOUS = "features", "parallax", "ambiguous"


@dataclass(frozen=True, eq=False)
class Started:
    """The beginning of a map: ``poses`` of all looks, the reference being the world's axes;
    ``points`` (n, 3), NaN where unknown; which of them ``agree`` (n,) with all looks and have
    parallax, half of those being nearer than 1; and their median ``parallax``, radians."""

    poses: list[Pose]
    points: np.ndarray
    agree: np.ndarray
    parallax: float


def start(
    reference: np.ndarray, looks: Sequence[np.ndarray], focal_px: float, *, focal_sd: float = 0.02
) -> Started | str:
    """Begin a map from the points (n, 2) of a reference picture and where later ``looks`` (n, 2)
    saw them, NaN where they were lost, on the plane z = 1. ``focal_px`` says how large a pixel is
    there, ``focal_sd`` how uncertain it is relative to itself: a wrong one makes a camera that
    turns appear to move.

    Returns why not yet, otherwise: "features" (too few points are left), "parallax" (the camera has
    turned, or not moved enough), "ambiguous" (looks may be explained in several ways).
    """
    kept = np.flatnonzero(np.isfinite(looks[-1][:, 0]) & np.isfinite(reference[:, 0]))
    if len(kept) < LEAST_POINTS:
        return FEATURES
    followed = len(kept)
    pixel = 1 / focal_px
    given = Looks.of(reference[kept], np.stack([each[kept] for each in looks]))
    if len(looks) < LEAST_LOOKS:
        return PARALLAX
    off = moved(given)
    if _still(off, pixel):
        return PARALLAX
    alike = np.flatnonzero(off < MOST_MOVED * np.median(off))
    kept, given = kept[alike], given.only(slice(None), alike)
    begun, agree = relative(given.rays, given.seen[-1], pixel)
    if agree.sum() < max(LEAST_POINTS, LEAST_SHARE * followed) or not begun:
        return AMBIGUOUS
    kept, given = kept[agree], given.only(slice(None), np.flatnonzero(agree))
    if _still(moved(given), pixel):
        return PARALLAX
    if not any(_apart(_by_two(given, way), ROUGHLY, focal_sd) for way in begun):
        return PARALLAX
    chosen = np.unique(np.linspace(0, len(looks) - 1, MOST_LOOKS).round().astype(int))
    few = given.only(chosen, np.arange(len(kept)))
    model = best(few, begun, NOISE_PX * pixel)
    if model is None:
        return AMBIGUOUS
    if not _apart(model, NEARLY, focal_sd):
        return PARALLAX
    model, fits, still = _adjusted(few, model, pixel)
    if fits.sum() < LEAST_POINTS or still.sum() < STILL_SHARE * followed:
        return AMBIGUOUS
    agree = fits & (_angles(model) > POINT_PARALLAX)
    if not _apart(model.at(np.flatnonzero(fits)), 1.0, focal_sd) or agree.sum() < LEAST_POINTS:
        return PARALLAX
    mine = np.flatnonzero(agree)
    if not certain(few.only(slice(None), mine), model.at(mine), NOISE_PX * pixel):
        return AMBIGUOUS
    return _started(given, model, chosen, kept, fits, agree, len(reference), pixel)


def _still(moved: np.ndarray, pixel: float) -> bool:
    """Whether most points have moved as little as when the camera only turns."""
    return float(np.quantile(moved, TURNING_SHARE)) < STILL_PX * pixel


def _adjusted(looks: Looks, model: Models, pixel: float) -> tuple[Models, np.ndarray, np.ndarray]:
    """The model with all points, which fit, and which do but for one look, in which they may have
    slid along an edge: what moves by itself is off in more."""
    places = _by_two(looks, (model.rotations[0, -1], model.translations[0, -1])).places
    fits = np.ones(len(looks.rays), bool)
    for steps in STEPS:
        mine = np.flatnonzero(fits)
        begun = Models(model.rotations, model.translations, places[:, :, mine])
        model = fit(looks.only(slice(None), mine), begun, NOISE_PX * pixel, steps)
        places[:, :, mine] = model.places
        model = Models(model.rotations, model.translations, places)
        off = errors(looks, model)[0]
        usual = float(np.nanmedian(off[:, fits])) / RAYLEIGH / pixel
        good = np.nan_to_num(off, nan=0.0) < float(np.clip(WRONG * usual, *WRONG_PX)) * pixel
        fits &= good.all(axis=0)
        if fits.sum() < LEAST_POINTS:
            break
    return model, fits, good.sum(axis=0) >= len(good) - 1


def _angles(model: Models) -> np.ndarray:
    """Between rays to points from the reference and from the last look, radians."""
    turn, move = model.rotations[0, -1], model.translations[0, -1]
    one = model.places[0].copy()
    one[2] = 1.0
    other = one.T + (turn.T @ move) * model.places[0, 2][:, None]
    across = np.linalg.norm(np.cross(one.T, other), axis=1)
    return np.asarray(np.arctan2(across, (one.T * other).sum(axis=1)))


def _by_two(looks: Looks, way: Relative) -> Models:
    """What one movement to the last look makes of the points."""
    turn, move = way
    places = placed(looks.rays, looks.seen[-1], turn, move)
    return Models(turn[None, None], move[None, None], places[None])


def _apart(model: Models, times: float, focal_sd: float) -> bool:
    """Whether the camera has moved enough, or so many ``times``: by how far its rays to points are
    apart, which is little if it moves towards them, and relative to their distance."""
    turn, move = model.rotations[0, -1], model.translations[0, -1]
    angle = math.acos(float(np.clip((np.trace(turn) - 1) / 2, -1, 1)))
    least = max(LEAST_PARALLAX, 4 * focal_sd * angle)
    far = float(np.linalg.norm(move)) * float(np.median(model.places[0, 2]))
    return float(np.median(_angles(model))) > times * least and far > times * LEAST_MOVED


def _started(
    looks: Looks,
    model: Models,
    chosen: np.ndarray,
    kept: np.ndarray,
    fits: np.ndarray,
    agree: np.ndarray,
    count: int,
    pixel: float,
) -> Started:
    places = model.places[0]
    scale = float(np.median(places[2, agree]))
    every = _every(looks, model, np.flatnonzero(agree), chosen, NOISE_PX * pixel)
    poses = [
        Pose(turn, move * scale)
        for turn, move in zip(every.rotations[0], every.translations[0], strict=True)
    ]
    points, agreed = np.full((count, 3), np.nan), np.zeros(count, bool)
    points[kept[fits]] = (flat(places[:2].T) * (scale / places[2])[:, None])[fits]
    agreed[kept] = agree
    return Started(poses, points, agreed, float(np.median(_angles(model)[fits])))


def _every(
    looks: Looks, model: Models, points: np.ndarray, chosen: np.ndarray, sigma: float
) -> Models:
    """Poses of all looks, not of the ``chosen`` ones only."""
    nearest = np.abs(np.arange(len(looks.seen))[:, None] - chosen).argmin(axis=1)
    begun = Models(
        model.rotations[:, nearest], model.translations[:, nearest], model.places[:, :, points]
    )
    mine = looks.only(slice(None), points)
    return fit(mine, fit(mine, begun, 4 * sigma, 2, held=True), sigma, 3, held=True)
