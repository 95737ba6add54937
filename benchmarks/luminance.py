"""What C of Eq. 4 says of real clips, by cells and by pixels: ``python benchmarks/luminance.py``.

The Heimdall paper sums the change of luminance over all pixels of a frame, because that follows
the structural similarity (SSIM) and costs little (section 6.2.2). ``App.luminance`` chooses between
that and a sum over means of cells. Prints, for both: C between frames that are apart by so much,
how its order agrees with that of 1 - SSIM and of the IoU that a result so old has lost, and what
it costs. benchmarks/content.py shows what they do to scheduling; both are in
docs/laboratory/content.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

import cv2
import numpy as np

from heimdall.engine import open_engine
from heimdall.lab.bench.accuracy import score
from heimdall.lab.bench.footage import read_clip, results_of, with_moving_camera
from heimdall.lab.simulator.parallel import results
from heimdall.models.catalog import open_pipeline
from heimdall.models.luminance import MEASURES, luminance_difference
from heimdall.system import paths

FPS = 30.0
LAGS = (3, 10, 30)  # frames: 100 ms, 333 ms, a second
STEP = 3  # every third frame is compared with its past
# Clips, and the network whose results on them are the truth; None: none of ours is at home there.
CLIPS = (
    ("single_face.mp4", False, "centerface"),
    ("single_face.mp4", True, "centerface"),
    ("single_face.mp4", False, "selfie"),
    ("single_face.mp4", True, "selfie"),
    ("box.mp4", False, "selfie"),
    ("cup.mp4", False, "selfie"),
    ("desk.mp4", False, None),
    ("desk.mp4", True, None),
)
SIZES = ((480, 640), (720, 1280), (1080, 1920))


def pictures_of(clip: str, moving: bool, seconds: float) -> list[np.ndarray]:
    """A bundled clip, or what a moving camera sees of it."""
    pictures = read_clip(paths.ASSETS / "media" / clip, seconds)
    return with_moving_camera(pictures, FPS) if moving else pictures


def named(clip: str, moving: bool) -> str:
    """As the tables call it."""
    return clip + (", moving camera" if moving else "")


def ssim(one: np.ndarray, other: np.ndarray) -> float:
    """Mean structural similarity of two grey pictures (Wang et al. 2004: Gaussian of 11 pixels,
    sigma 1.5, K1 = 0.01, K2 = 0.03)."""
    a, b = (each.astype(np.float32) for each in (one, other))

    def blurred(picture: np.ndarray) -> np.ndarray:
        return cv2.GaussianBlur(picture, (11, 11), 1.5)

    mean_a, mean_b = blurred(a), blurred(b)
    var_a, var_b = blurred(a * a) - mean_a**2, blurred(b * b) - mean_b**2
    shared = blurred(a * b) - mean_a * mean_b
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    above = (2 * mean_a * mean_b + c1) * (2 * shared + c2)
    below = (mean_a**2 + mean_b**2 + c1) * (var_a + var_b + c2)
    return float(np.mean(above / below))


def agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation: 1 when both put everything in the same order."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Places in the order; equal values share the middle of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def changes(pictures: Sequence[np.ndarray], truth: Sequence[Any] | None) -> dict[str, Any]:
    """For every pair of frames that is ``LAGS`` apart: C by each measure, 1 - SSIM, and the IoU
    lost by the older one's result; ``c``: of each measure and lag."""
    taken = range(max(LAGS), len(pictures), STEP)
    grey = [cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY) for picture in pictures]
    found: dict[str, Any] = {"unlike": [], "lost": []}
    for lag in LAGS:
        pairs = [(index, index - lag) for index in taken]
        found["unlike"] += [1 - ssim(grey[now], grey[then]) for now, then in pairs]
        if truth is not None:
            found["lost"] += [1 - score([truth[b]], [truth[a]]).mean for a, b in pairs]
    for name, measure in MEASURES.items():
        measured = [measure(picture) for picture in pictures]
        found[name] = {
            lag: [luminance_difference(measured[now], measured[now - lag]) for now in taken]
            for lag in LAGS
        }
    return found


def rows(seconds: float) -> Iterator[str]:
    """Lines of the table: every clip, by cells and by pixels."""
    titles = ["clip", "sum of"]
    titles += [f"C at {1000 * lag / FPS:.0f} ms, millions" for lag in LAGS]
    titles += ["order as 1 - SSIM", "order as lost IoU"]
    yield "| " + " | ".join(titles) + " |"
    yield "|---" * len(titles) + "|"
    lines = dict(results(rows_of, [(*clip, seconds) for clip in CLIPS]))
    for index in range(len(CLIPS)):
        yield from lines[index]


def rows_of(clip: str, moving: bool, model: str | None, seconds: float) -> list[str]:
    """Those of one clip."""
    cv2.setNumThreads(1)
    pictures, truth = pictures_of(clip, moving, seconds), None
    if model is not None:
        truth = list(results_of(open_pipeline(model), open_engine("onnxruntime"), pictures))
    found, lines = changes(pictures, truth), []
    for name in MEASURES:
        cells = [named(clip, moving), name]
        for lag in LAGS:
            low, middle, high = np.percentile(found[name][lag], [5, 50, 95]) / 1e6
            cells.append(f"{middle:.1f} ({low:.1f}-{high:.1f})")
        every = [value for lag in LAGS for value in found[name][lag]]
        cells.append(f"{agreement(every, found['unlike']):.2f}")
        lost = f"{agreement(every, found['lost']):.2f} ({model})" if truth else ""
        lines.append("| " + " | ".join([*cells, lost]) + " |")
    return lines


def cost_ms(height: int, width: int, name: str, times: int = 100) -> float:
    """Median of what one inference's C takes on one core, its picture's part included."""
    draw = np.random.default_rng(0)
    pictures = [draw.integers(0, 256, (height, width, 3), np.uint8) for _ in range(2)]
    measure, before = MEASURES[name], MEASURES[name](pictures[0])
    took = []
    for _ in range(times):
        began_s = time.perf_counter()
        luminance_difference(measure(pictures[1]), before)
        took.append(time.perf_counter() - began_s)
    return float(1e3 * np.median(took))


def costs() -> Iterator[str]:
    """Lines of the table of costs."""
    yield "| | " + " | ".join(f"{width}x{height}" for height, width in SIZES) + " |"
    yield "|---" * (len(SIZES) + 1) + "|"
    for name in MEASURES:
        cells = [f"{cost_ms(height, width, name):.2f} ms" for height, width in SIZES]
        yield f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each clip")
    parser.add_argument("--costs", action="store_true", help="only what it costs")
    arguments = parser.parse_args()
    cv2.setNumThreads(1)
    print("\n".join(costs()))
    if not arguments.costs:
        print()
        for row in rows(arguments.seconds):
            print(row, flush=True)


if __name__ == "__main__":
    main()
