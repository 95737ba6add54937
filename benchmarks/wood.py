"""A wooden table as a picture, with things on it: what rendered clips are painted with."""

from __future__ import annotations

import cv2
import numpy as np

TABLE_M, TEXELS = 3.2, 700  # texels a metre


def table(seed: int = 4, things: bool = True) -> np.ndarray:
    """Planks, with ``things`` on them, BGR uint8."""
    draw = np.random.default_rng(seed)
    side = round(TABLE_M * TEXELS)
    rough = draw.standard_normal((side, side // 48)).astype(np.float32)
    grain = cv2.resize(cv2.GaussianBlur(rough, (0, 0), 2.5), (side, side)) * 34
    plank = np.arange(side) // round(0.16 * TEXELS)
    tone = draw.uniform(-16, 16, plank[-1] + 1)[plank][:, None]
    seam = (np.arange(side) % round(0.16 * TEXELS) < 3)[:, None] * -38.0
    wood = np.array([74.0, 118.0, 158.0]) + (grain + tone + seam)[..., None]
    picture = np.clip(wood, 0, 255).astype(np.uint8)
    for _ in range(240 if things else 0):  # cards, pens, coins
        at = draw.uniform(0, side, 2)
        if np.linalg.norm(at - side / 2) < 0.17 * TEXELS:
            continue
        ink = draw.uniform(30, 235, 3).tolist()
        if draw.random() < 0.3:
            cv2.circle(
                picture, at.astype(int).tolist(), int(draw.uniform(6, 12)), ink, -1, cv2.LINE_AA
            )
            continue
        sides = draw.uniform(20, 70, 2) if draw.random() < 0.5 else (draw.uniform(70, 110), 7)
        box = cv2.boxPoints((tuple(at), tuple(sides), draw.uniform(0, 180))).astype(np.int32)
        cv2.fillConvexPoly(picture, box, ink, cv2.LINE_AA)
        cv2.polylines(picture, [box], True, [0.6 * each for each in ink], 2, cv2.LINE_AA)
    for place in range(14 if things else 0):  # papers with something written on them
        around = 2 * np.pi * place / 14 + draw.uniform(-0.2, 0.2)
        far = draw.uniform(0.26, 0.62)
        at = side / 2 + far * TEXELS * np.array([np.cos(around), np.sin(around)])
        written(picture, at, draw)
    return picture


def written(picture: np.ndarray, at: np.ndarray, draw: np.random.Generator) -> None:
    """A paper with lines of words, turned somehow."""
    rows, columns = 112, 80
    paper = np.full((rows, columns, 3), draw.uniform(190, 235, 3), np.uint8)
    for row in range(16, rows - 4, 15):
        word = "".join(chr(int(each)) for each in draw.integers(65, 91, 6))
        size = float(draw.uniform(0.36, 0.5))
        cv2.putText(paper, word, (5, row), cv2.FONT_HERSHEY_DUPLEX, size, (50, 40, 40), 1, 16)
    turn = cv2.getRotationMatrix2D((columns / 2, rows / 2), draw.uniform(0, 360), 1.0)
    turn[:, 2] = turn[:, 2] + at - (columns / 2, rows / 2)
    cv2.warpAffine(
        paper, turn, picture.shape[1::-1], picture, cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_TRANSPARENT,
    )  # fmt: skip
