"""Similarities, their logarithms, and graphs of them."""

from __future__ import annotations

import numpy as np

from heimdall.tracking.slam.similarity import Similarities, relaxed

DRAW = np.random.default_rng(4)
VECTORS = DRAW.normal(0, 0.6, (20, 7))
POINTS = DRAW.normal(0, 2, (20, 3))


def test_logarithms_lead_back():
    made = Similarities.exp(VECTORS)
    assert np.abs(made.log() - VECTORS).max() < 1e-10
    assert np.abs(Similarities.exp(np.zeros((1, 7))).log()).max() == 0
    half = Similarities.exp(VECTORS / 2)
    assert np.abs(half.after(half).to(POINTS) - made.to(POINTS)).max() < 1e-10


def test_back_is_where_they_came_from():
    made = Similarities.exp(VECTORS)
    assert np.abs(made.inverse.to(made.to(POINTS)) - POINTS).max() < 1e-10


def test_an_adjoint_leads_a_small_one_to_the_other_side():
    made, small = Similarities.exp(VECTORS), DRAW.normal(0, 0.2, (20, 7))
    there = made.after(Similarities.exp(small)).after(made.inverse)
    assert np.abs(there.log() - np.einsum("nij,nj->ni", made.adjoint, small)).max() < 1e-10


def test_a_pose_sees_what_its_similarity_does():
    made = Similarities.exp(VECTORS)
    seen = made.pose(3).to_camera(POINTS[3]) * made.scale[3]
    assert np.abs(seen - made.to(POINTS)[3]).max() < 1e-10


def ring(count: int) -> Similarities:
    angle = 2 * np.pi * np.arange(count) / count
    none = np.zeros(count)
    return Similarities.exp(
        np.column_stack([3 * np.cos(angle), 3 * np.sin(angle), none, none, none, angle / 2, none])
    )


def test_drift_around_a_loop_is_spread_over_it():
    truth = ring(60)
    one, other = np.arange(59), np.arange(1, 60)
    slip = Similarities.exp(np.tile([0.005, 0, 0.003, 0, 0.002, 0, 0.008], (59, 1)))
    steps = truth[one].after(truth[other].inverse).after(slip)
    nodes = [truth[:1]]
    for at in range(59):
        nodes.append(steps[at : at + 1].inverse.after(nodes[-1]))

    def joined(parts):
        names = ("scale", "rotation", "translation")
        return Similarities(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def off(some):
        return np.linalg.norm(some.inverse.translation - truth.inverse.translation, axis=1).max()

    begun = joined(nodes)
    closing = truth[59:].after(truth[:1].inverse)
    weights = np.vstack([np.ones((59, 7)), np.full((1, 7), 50.0)])
    found = relaxed(
        begun, np.append(one, 59), np.append(other, 0), joined([steps, closing]), weights,
        np.arange(60) == 0,
    )  # fmt: skip
    assert off(found) < off(begun) / 4
    assert abs(np.log(found.scale[-1])) < 0.02 < abs(np.log(begun.scale[-1]))
    assert np.array_equal(found.translation[0], truth.translation[0])
