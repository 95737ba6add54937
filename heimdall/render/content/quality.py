"""How finely models are drawn: coarser, or with fewer pixels, when frames would be late.

A state machine without clock: it is told what frames took of the GPU, and what there was to draw.
"""

from __future__ import annotations

# Of the sides of the picture that models are drawn in. Stretching it takes llvmpipe as long as
# 0.75 of the sides save it.
SCALES = (1.0, 0.5)
COARSEST = 3  # level of detail
_PIXELS = (1.0, 0.5)  # a triangle needs to be worth drawing: on software, on a GPU
_TRIANGLE_NS, _PIXEL_NS = 400.0, 12.0  # about what they take llvmpipe
_FULL, _CALM = 0.80, 0.45  # of a frame's interval
_SOON, _LATER = 6, 90  # frames between two changes: to coarser, to finer
_FOLLOWS = 0.3  # share of a new frame in what is usual


class Quality:
    """``coarser`` levels of detail for everything, and the ``scale`` of the picture."""

    def __init__(self, *, software: bool):
        self._pixels = _PIXELS[not software]
        self.coarser = 0
        self._scale = 0
        self._usual_ns = 0.0
        self._frames = 0  # since the last change
        self._triangles = self._covered = 0.0

    @property
    def scale(self) -> float:
        """The scale of the sides of the picture that models are drawn in."""
        return SCALES[self._scale]

    def begin(self) -> None:
        """A new frame."""
        self._triangles = self._covered = 0.0

    def drew(self, triangles: int) -> None:
        """So many triangles were drawn."""
        self._triangles += triangles

    def covers(self, pixels: float) -> None:
        """A model covers so many pixels at most."""
        self._covered += pixels

    def level(self, triangles: int, pixels: float) -> int:
        """Which level of detail, 0 to ``COARSEST``, for a model of so many triangles on so many
        pixels."""
        shares = (1.0, 0.4, 0.15, 0.05)
        worth = pixels * self.scale**2 / self._pixels
        fitting = (level for level, share in enumerate(shares) if triangles * share <= worth)
        return min(next(fitting, COARSEST) + self.coarser, COARSEST)

    def took(self, render_ns: float, interval_ns: float) -> None:
        """The last frame took so long of the GPU, and frames are so far apart."""
        if not self._covered:
            return
        self._frames += 1
        self._usual_ns += _FOLLOWS * (render_ns - self._usual_ns)
        if self._usual_ns > _FULL * interval_ns and self._frames >= _SOON:
            self._step(1)
        elif self._usual_ns < _CALM * interval_ns and self._frames >= _LATER:
            self._step(-1)

    def _step(self, way: int) -> None:
        """Coarser or finer, whichever of triangles and pixels costs more (and can be changed)."""
        triangles_first = self._triangles * _TRIANGLE_NS >= self._covered * _PIXEL_NS
        coarser = min(max(self.coarser + way, 0), COARSEST)
        scale = min(max(self._scale + way, 0), len(SCALES) - 1)
        change_detail = triangles_first if way > 0 else scale == self._scale
        if change_detail and coarser == self.coarser:
            change_detail = False
        elif not change_detail and scale == self._scale:
            change_detail = True
        if change_detail:
            changed, self.coarser = coarser != self.coarser, coarser
        else:
            changed, self._scale = scale != self._scale, scale
        if changed:
            self._frames = 0
