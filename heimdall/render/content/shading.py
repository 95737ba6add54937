"""Which program draws a part: no more is computed for a pixel than can be seen.

Software GL takes 7 ms for 110,000 pixels of a model without pictures whose reflections are looked
up for each of them, 0.1 ms where they are looked up at its 7,500 vertices, and 5 ms for its 15,000
triangles either way (llvmpipe, one core).
"""

from __future__ import annotations

import numpy as np

from heimdall.render.content.model import TRIANGLES, DrawCall, Material

_LOBE = 1.28  # radians in which a reflection falls to a half, of a roughness of 1 (GGX)
_FINEST = 0.2  # radians: a room's map shows no more
_CLOTH = 0.85
_MOST = 0.9  # of a part's surface has to turn by less


def variant(part: DrawCall, material: Material) -> str:
    """The program's name, as `Programs` has them."""
    flat = part.mode != TRIANGLES or material.unlit
    others = {
        "SURFACE": material.surface_map,
        "BUMPS": material.normal_map,
        "SHADE": material.occlusion_map,
        "GLOWING": material.emissive_map,
    }
    maps = [word for word, number in others.items() if number is not None and not flat]
    cloth = material.metallic == 0 and material.roughness > _CLOTH  # its reflections do not show
    blurred = part.turning <= max(_LOBE * material.roughness**2, _FINEST)
    if maps:
        kind = "MAPS"
    elif flat or cloth or blurred:
        kind = "SOFT"
    else:
        kind = "METAL" if material.metallic > 0 else ""
    words = [kind, *maps]
    if material.base_map is not None or part.uvs.any():  # an app may give it a picture
        words.append("PICTURE")
    if part.skin is not None:
        words.append("SKIN")
    if material.alpha != "OPAQUE":
        words.append({"MASK": "MASK", "BLEND": "THROUGH"}[material.alpha])
    return "+".join(["model", *(word for word in words if word)])


def turning(part: DrawCall) -> float:
    """By how much, in radians, what is reflected turns between neighbouring vertices of most of a
    part's surface: twice as much as the surface, and as much as the view from as far away as the
    part is large."""
    if part.mode != TRIANGLES or not len(part.indices):
        return 0.0
    corners = part.indices.reshape(-1, 3)
    points, normals = part.positions[corners], part.normals[corners]
    sides = points - np.roll(points, 1, axis=1)
    cosines = np.clip((normals * np.roll(normals, 1, axis=1)).sum(axis=2), -1, 1)
    reach = float(np.linalg.norm(np.ptp(part.positions, axis=0))) or 1.0
    turns = (2 * np.arccos(cosines) + np.linalg.norm(sides, axis=2) / reach).max(axis=1)
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    order = np.argsort(turns)
    share = np.cumsum(areas[order])
    return float(turns[order][min(np.searchsorted(share, _MOST * share[-1]), len(order) - 1)])
