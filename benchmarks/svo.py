"""SVO (Forster, Pizzoli and Scaramuzza, ICRA 2014) on the clips of ``benchmarks.world``.

    pip install svo-cpp      # GPL-3: to measure beside, no part of Heimdall
    python -m benchmarks.svo --clip vamr:FOLDER --frames 370
    python -m benchmarks.svo --variants hand,fast --seeds 4

Frames come 30 times a second, as it maps on a thread of its own. Its Python package tells where a
camera is and not how it is turned, so that places alone are judged; times are its own, of a frame.
"""

from __future__ import annotations

import time
from typing import Any

import cv2
import numpy as np

from benchmarks.clips import Clip
from benchmarks.rooms import FPS
from benchmarks.trajectory import Quality, judged
from benchmarks.world import arguments, clips
from heimdall.capture.pose import Pose


def followed(clip: Clip) -> tuple[dict[int, Pose], list[float]]:
    """Where it has the camera, by frame number, with rotations left out; milliseconds a frame."""
    svo_cpp = _library()
    lens = clip.camera
    system = svo_cpp.SVO(svo_cpp.PinholeCamera(*lens.size, lens.fx, lens.fy, lens.cx, lens.cy))
    system.start()
    found, costs = {}, []
    began_s = time.perf_counter()
    for number, picture in enumerate(clip.pictures):
        if lens.coefficients.any():
            picture = cv2.undistort(picture, lens.matrix, lens.coefficients)
        time.sleep(max(0.0, began_s + number / FPS - time.perf_counter()))
        system.addImage(picture, number / FPS)
        costs.append(1e3 * system.lastProcessingTime())
        if system.stage() == svo_cpp.Stage.DEFAULT_FRAME:
            place = np.ravel(system.lastFrame().T_f_w.inverse().translation())
            found[number] = Pose(np.eye(3), -place)
    return found, costs


def _library() -> Any:
    try:
        import svo_cpp
    except ImportError:
        raise SystemExit("SVO is not installed: pip install svo-cpp (GPL-3)") from None
    return svo_cpp


def row(clip: Clip, quality: Quality | None, share: float, costs: list[float]) -> str:
    """A line of the table."""
    if quality is None:
        return f"| {clip.name} | poses in {share:.1%} of frames |"
    q, (usual, long) = quality, np.percentile(costs, [50, 99])
    return (
        f"| {clip.name} | {q.first} | {q.tracked:.1%} | {q.ate:.3%} | {q.worst:.3%} | "
        f"{q.drift:.3f} | {usual:.1f} / {long:.1f} |"
    )


def main() -> None:
    """Print a row a clip."""
    options = arguments().parse_args()
    print("| clip | first | tracked | ATE | worst | drift | ms |\n|" + "---|" * 7)
    for clip in clips(options):
        for _ in range(options.repeat):
            found, costs = followed(clip)
            frames = len(clip.pictures)
            quality = judged(found, clip.truth, clip.depths, frames=frames, gaps=clip.gaps)
            print(row(clip, quality, len(found) / frames, costs), flush=True)


if __name__ == "__main__":
    main()
