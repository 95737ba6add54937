"""How boxes move: a Kalman filter for many at once, of almost constant velocity.

A box is its centre, the logarithm of its mean side, and that of its shape, width over height; all
but the shape have a velocity (as in SORT, Bewley et al. 2016): four axes, independent of one
another. What is seen from frame to frame, the way of the points inside, is a measurement of
velocity, taken in before the box moves on; what a network finds is a measurement of place. So a box
goes with its points as long as there are any, straight on when there are none, and what it was
found to be off by corrects its velocity too. Its size and shape are what they were in several
results: a walking person is now wide and now slim, and the last one says little about the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Standard deviations. Places and velocities of the centre are in mean sides of the box.
FOUND = (0.04, 0.04, 0.06, 0.06)  # what a network's box is off by
FIRST = (0.04, 0.04, 0.01, 0.0)  # velocity a frame, before anything is known of it
WANDER = (0.004, 0.004, 0.001, 0.0)  # change of velocity from frame to frame
TURN = (0.0, 0.0, 0.0, 0.01)  # change beside that, as of a shape that is seen from another side
SURPRISE = 4.0  # standard deviations off where it was expected: it had followed something else
NEVER = 1e12  # the variance of what was not measured


@dataclass
class Motion:
    """``mean`` (n, 4, 2): place and velocity a frame of x, y, log side and log shape; ``cov``
    (n, 4, 2, 2) belongs to it."""

    mean: np.ndarray
    cov: np.ndarray

    @classmethod
    def of(cls, boxes: np.ndarray) -> Motion:
        """Boxes (n, 4: left, top, right, bottom) that were found just now, at rest."""
        mean = np.zeros((len(boxes), 4, 2))
        mean[:, :, 0] = _places(boxes)
        cov = np.zeros((len(boxes), 4, 2, 2))
        unit = _units(mean)
        cov[..., 0, 0] = (unit * FOUND) ** 2
        cov[..., 1, 1] = (unit * FIRST) ** 2
        return cls(mean, cov)

    def __len__(self) -> int:
        return len(self.mean)

    def copy(self) -> Motion:
        return Motion(self.mean.copy(), self.cov.copy())

    def chosen(self, rows: np.ndarray) -> Motion:
        """The motion of these boxes only."""
        return Motion(self.mean[rows], self.cov[rows])

    def joined(self, other: Motion) -> Motion:
        """These boxes and the others."""
        return Motion(
            np.concatenate([self.mean, other.mean]), np.concatenate([self.cov, other.cov])
        )

    def boxes(self) -> np.ndarray:
        """(n, 4): left, top, right, bottom."""
        middle, side, shape = self.mean[:, :2, 0], self.mean[:, 2:3, 0], self.mean[:, 3:, 0]
        half = np.exp(np.hstack([side + shape / 2, side - shape / 2])) / 2
        return np.hstack([middle - half, middle + half])

    def sides(self) -> np.ndarray:
        """(n,): the geometric mean of width and height."""
        return np.asarray(np.exp(self.mean[:, 2, 0]))

    def doubt(self) -> np.ndarray:
        """(n,): what each box's place is uncertain by, in mean sides."""
        return np.sqrt(self.cov[:, :2, 0, 0].mean(axis=1)) / self.sides()

    def turned(self, camera: np.ndarray) -> None:
        """The picture has moved under the boxes by the similarity ``camera`` (2, 3)."""
        turn, places = camera[:, :2], self.mean[:, :2]
        self.mean[:, :2] = turn @ places
        self.mean[:, :2, 0] += camera[:, 2]
        self.mean[:, 2, 0] += np.log(np.hypot(*camera[:, 0]))

    def step(self, frames: int, way: np.ndarray, variance: np.ndarray) -> None:
        """Go on by ``frames``, in which the points inside went ``way`` (n, 4), of that ``variance``
        (n, 4): ``NEVER`` where there were none."""
        mean, cov, unit = self.mean, self.cov, _units(self.mean)
        cov[..., 1, 1] += frames * (unit * WANDER) ** 2
        error = way / frames - mean[..., 1]
        gain = cov[..., 1] / (cov[..., 1, 1] + variance / frames**2)[..., None]
        self._corrected(gain, error, 1)
        self.mean[..., 0] += frames * self.mean[..., 1]
        onward = np.array([[1.0, frames], [0.0, 1.0]])
        self.cov = onward @ self.cov @ onward.T
        self.cov[..., 0, 0] += frames * (unit * TURN) ** 2

    def found(self, boxes: np.ndarray) -> None:
        """A network found them here, ``boxes`` (n, 4): there they are. Velocities, sizes and
        shapes are corrected by what they are off from what was expected."""
        variance = (_units(self.mean) * FOUND) ** 2
        error = _places(boxes) - self.mean[..., 0]
        doubt = self.cov[..., 0, 0] + variance
        lost = (error[:, :2] ** 2 > SURPRISE**2 * doubt[:, :2]).any(axis=1)
        gain = self.cov[..., 0] / doubt[..., None]
        self._corrected(gain, error, 0)
        self.mean[:, :2, 0] = _places(boxes)[:, :2]
        if lost.any():
            # It followed something else: what was known of its place and speed is worth nothing.
            anew = Motion.of(boxes[lost])
            self.mean[lost], self.cov[lost] = anew.mean, anew.cov

    def _corrected(self, gain: np.ndarray, error: np.ndarray, measured: int) -> None:
        self.mean = self.mean + gain * error[..., None]
        self.cov = self.cov - gain[..., :, None] * self.cov[..., None, measured, :]


def _places(boxes: np.ndarray) -> np.ndarray:
    size = np.log(np.maximum(boxes[:, 2:] - boxes[:, :2], 1e-3))
    side, shape = size.mean(axis=1), size[:, 0] - size[:, 1]
    return np.column_stack([(boxes[:, :2] + boxes[:, 2:]) / 2, side, shape])


def _units(mean: np.ndarray) -> np.ndarray:
    """(n, 4): what one is in each axis: the mean side for places, and 1 for logarithms."""
    side = np.exp(mean[:, 2, 0])
    return np.stack([side, side, np.ones_like(side), np.ones_like(side)], axis=1)
