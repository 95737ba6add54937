"""Pages to print: a board to calibrate with."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from heimdall.errors import ConfigError
from heimdall.tracking.pose.calibration import ChessBoard

DPI = 300
A4 = (3508, 2480)  # pixels, lying
MARGIN = 140  # about 12 mm: printers leave 3 to 6 mm white
CELLS = 8  # of a square, which are whole pixels: so are those of its marker
KINDS = (".pdf", ".png")


def board_page(board: ChessBoard) -> np.ndarray:
    """An A4 page with the board as large as fits, grey uint8, 300 dots an inch."""
    page = np.full(A4[::-1], 255, np.uint8)
    square = min(
        (side - 2 * MARGIN) // count // CELLS * CELLS
        for side, count in zip(A4, (board.columns, board.rows), strict=True)
    )
    size = (board.columns * square, board.rows * square)
    left, top = (whole - part for whole, part in zip(A4, size, strict=True))
    left, top = left // 2, top // 2
    page[top : top + size[1], left : left + size[0]] = board.opened().generateImage(size)
    said = f"ChArUco, {board.name}, {square / DPI * 25.4:.1f} mm each"
    at = (left, min(top + size[1] + 70, A4[1] - 40))
    cv2.putText(page, said, at, cv2.FONT_HERSHEY_SIMPLEX, 1.2, 0, 2, cv2.LINE_AA)
    return page


def print_board(board: ChessBoard, path: Path) -> None:
    """Write the board as .pdf or .png. Raises ConfigError where that is not possible."""
    if path.suffix.lower() not in KINDS:
        raise ConfigError(f"{path}: a board is written as {' or '.join(KINDS)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # black or white: a PDF keeps that as it is, and grey as JPEG
        Image.fromarray(board_page(board) > 127).save(path, resolution=DPI, dpi=(DPI, DPI))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error
