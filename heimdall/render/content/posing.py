"""Where the vertices of a part are when its nodes, joints and shapes have moved it: on the CPU,
for what is computed once (the GPU does nodes and joints itself)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heimdall.render.content.model import DrawCall, Skin
from heimdall.render.content.motion import Stance


def shaped(part: DrawCall, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and normals with morph targets, each by its weight, added."""
    positions, normals = part.positions, part.normals
    for shape, weight in zip(part.shapes, weights, strict=False):
        if weight:
            positions = positions + np.float32(weight) * shape.positions
            if shape.normals is not None:
                normals = normals + np.float32(weight) * shape.normals
    return positions, normals


def joint_matrices(skin: Skin, stance: Stance) -> np.ndarray:
    """What the joints do to vertices in the skin's bind pose, (j, 4, 4) float32."""
    found: np.ndarray = (stance.matrices[skin.joints] @ skin.inverse_binds).astype(np.float32)
    return found


def placed(part: DrawCall, stance: Stance, skins: Sequence[Skin]) -> np.ndarray:
    """Positions (n, 3) in the model's space."""
    weights = np.zeros(0)
    if part.shaped_by is not None:
        weights = stance.weights.get(part.shaped_by, weights)
    positions, _ = shaped(part, weights)
    if part.skin is not None and part.joints is not None and part.weights is not None:
        matrices = joint_matrices(skins[part.skin], stance)
        blended = np.einsum("nk,nkij->nij", part.weights, matrices[part.joints])
        return np.einsum("nij,nj->ni", blended[:, :3, :3], positions) + blended[:, :3, 3]
    if part.node is not None:
        matrix = stance.matrices[part.node]
        return positions @ matrix[:3, :3].T + matrix[:3, 3]
    return positions
