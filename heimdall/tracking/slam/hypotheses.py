"""Which of several explanations of all looks is right, if it can be said."""

from __future__ import annotations

import math

import cv2
import numpy as np

from heimdall.tracking.slam.adjust import exponential
from heimdall.tracking.slam.depths import Looks, Models, errors, fit
from heimdall.tracking.slam.twoviews import Relative, expected, placed, turns

FEW, MORE = 40, 200  # points by which hypotheses are carried on, and compared
ROUGH_STEPS, COARSE_STEPS, FINE_STEPS = 3, 3, 4
ROUGH = 4.0  # times the noise, as long as looks in between are only guessed
SAME_TURN, SAME_WAY = math.radians(3.0), math.radians(8.0)  # of one model, with its errors
EQUAL_TURN, EQUAL_WAY = math.radians(0.5), math.radians(3.0)  # of one model, before the last steps
CLEARLY = 2.5  # standard deviations by which points say that one model is better
MOST_SAID, LEAST_SAID = 4.0, 15.0  # by one point, by all: squared standard deviations
MOST_OFF = 3.0  # standard deviations: so far a look may be off
DISPLACED = 0.5  # of a movement, to each side


def best(looks: Looks, begun: list[Relative], sigma: float) -> Models | None:
    """The model that explains looks best, of those that begin with movements to the last look; None
    if another one does nearly as well."""
    looks = looks.only(slice(None), spread(looks, MORE))
    models = _carried(looks, begun, sigma)
    models = _refined(looks, models.only(_distinct(models)), sigma)
    costs = _costs(looks, models, sigma)
    found = models.only([int(np.argmin(costs.sum(axis=1)))])
    return None if _doubted(looks, found, models, sigma) else found


def certain(looks: Looks, model: Models, sigma: float) -> bool:
    """Whether the movement of a model (B = 1) is the only one near it that explains looks: others
    to each side come back to it, or are worse."""
    chosen = spread(looks, MORE)
    looks, model = looks.only(slice(None), chosen), model.at(chosen)
    others = _carried(looks, _displaced(model), sigma)
    others = others.only([at for at in _distinct(others) if not _same(model, others.only([at]))])
    return not len(others.places) or not _doubted(
        looks, model, _refined(looks, others, sigma), sigma
    )


def spread(looks: Looks, most: int) -> np.ndarray:
    """Some of the points."""
    count = len(looks.rays)
    return np.linspace(0, count - 1, min(count, most)).astype(int)


def _carried(looks: Looks, begun: list[Relative], sigma: float) -> Models:
    """Each movement to the last look carried through all looks, by few points."""
    looks = looks.only(slice(None), spread(looks, FEW))
    turned = turns(looks)
    shares = _shares(looks, turned)
    rotations, translations = [], []
    for turn, move in begun:
        rest = cv2.Rodrigues(turn @ turned[-1].T)[0][:, 0]
        rotations.append(exponential(shares[:, None] * rest) @ turned)
        translations.append(shares[:, None] * move)
    places = [placed(looks.rays, looks.seen[-1], *each) for each in begun]
    models = Models(np.array(rotations), np.array(translations), np.array(places)).scaled()
    models = fit(looks, models, ROUGH * sigma, ROUGH_STEPS)
    return fit(looks, models, sigma, COARSE_STEPS)


def _refined(looks: Looks, models: Models, sigma: float) -> Models:
    """The same models by all points."""
    last = looks.seen[-1]
    ways = zip(models.rotations[:, -1], models.translations[:, -1], strict=True)
    places = np.array([placed(looks.rays, last, *each) for each in ways])
    begun = Models(models.rotations, models.translations, places).scaled()
    return fit(looks, begun, sigma, FINE_STEPS)


def _shares(looks: Looks, turned: np.ndarray) -> np.ndarray:
    """How far the camera had moved at each look (K,), of how far it has moved at the last one, by
    how far points had."""
    off = looks.seen - expected(looks, turned)
    along = (off * off[-1]).sum(axis=2) / np.maximum((off[-1] ** 2).sum(axis=1), 1e-12)
    return np.asarray(np.median(along, axis=1))


def _distinct(models: Models) -> list[int]:
    """The first of those that are equal."""
    kept: list[int] = []
    for at in range(len(models.places)):
        if not any(_same(models.only([at]), models.only([other])) for other in kept):
            kept.append(at)
    return kept


def _costs(looks: Looks, models: Models, sigma: float) -> np.ndarray:
    """What each point costs, (B, n), in squared standard deviations."""
    off = np.nan_to_num(errors(looks, models) / sigma, nan=0.0, posinf=MOST_OFF)
    return np.asarray((np.minimum(off, MOST_OFF) ** 2).sum(axis=1))


def _doubted(looks: Looks, model: Models, others: Models, sigma: float) -> bool:
    """Whether any that differs from a model explains points nearly as well: a paired test, in
    which no point has much to say, as wrong ones are those that fit a wrong model."""
    own, costs = _costs(looks, model, sigma), _costs(looks, others, sigma)
    for at in range(len(costs)):
        said = np.clip(costs[at] - own[0], -MOST_SAID, MOST_SAID)
        clearly = max(LEAST_SAID, CLEARLY * math.sqrt(float((said**2).sum())))
        if said.sum() < clearly and not _same(model, others.only([at]), SAME_TURN, SAME_WAY):
            return True
    return False


def _same(one: Models, other: Models, turn: float = EQUAL_TURN, way: float = EQUAL_WAY) -> bool:
    """Whether the last look's movement is nearly the same in both."""
    cosine = (np.trace(one.rotations[0, -1] @ other.rotations[0, -1].T) - 1) / 2
    ways = [-each.rotations[0, -1].T @ each.translations[0, -1] for each in (one, other)]
    along = ways[0] @ ways[1] / max(float(np.prod(np.linalg.norm(ways, axis=1))), 1e-12)
    return bool(cosine > math.cos(turn) and along > math.cos(way))


def _displaced(model: Models) -> list[Relative]:
    """Movements to other sides, turned so that most points stay where they are seen: where looks
    do not say the direction, these are as good."""
    turn, move = model.rotations[0, -1], model.translations[0, -1]
    inverse = float(np.median(model.places[0, 2]))
    _, _, across = np.linalg.svd(move[None])
    found = []
    for side in (across[1], -across[1], across[2], -across[2]):
        change = side * DISPLACED * np.linalg.norm(move)
        back = exponential(inverse * np.array([[change[1], -change[0], 0.0]]))[0]
        found.append((back @ turn, move + change))
    return found
