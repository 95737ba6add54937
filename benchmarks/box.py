"""How well a real printed thing is followed: ``python -m benchmarks.box``.

In assets/media/box.mp4 a hand turns a printed box. Its top, straightened from frame 152 with a
guessed lens, is the target; the camera is not known. Corners that were labelled by hand in 20 other
frames say how far off the tracker's are, as a run goes: the focal length is found on the way. The
fourth corner is under a thumb. The front one is worn, where three faces meet: two labellings of it
differ by 1.2 and 1.4 px in the mean, and by 4.6 at most.
"""

from __future__ import annotations

import time
from pathlib import Path

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.system.cpu import cpu_name
from heimdall.tracking.pose import ImageTarget, PoseTracker
from heimdall.tracking.pose.clips import pictures

CLIP = Path(__file__).parents[1] / "assets" / "media" / "box.mp4"
FROM_FRAME, ACROSS_PX, WIDTH_M = 152, 480, 0.3
# in that frame, px: under the thumb (where the edges meet), right, front, left
OUTLINE = ((254.5, 56.2), (490.5, 131.5), (367.5, 252.5), (106.5, 131.5))
CLOSE_PX = 4.0
NAMES = ("left", "front", "right")
LABELS = {  # frame: left, front, right, px
    11: ((297.9, 98.8), (562.6, 176.7), (594.0, 66.0)),
    34: ((298.2, 100.5), (560.1, 176.4), (589.1, 69.4)),
    57: ((301.4, 97.1), (557.5, 165.7), (576.7, 63.7)),
    80: ((270.7, 100.0), (530.8, 172.5), (562.7, 72.9)),
    103: ((210.3, 105.1), (481.3, 196.2), (549.0, 86.7)),
    126: ((154.5, 110.3), (418.2, 212.4), (520.8, 102.3)),
    149: ((112.1, 121.9), (372.0, 236.1), (495.1, 124.2)),
    172: ((109.1, 147.9), (384.2, 229.2), (477.7, 93.8)),
    195: ((168.6, 132.2), (450.2, 191.2), (501.5, 80.4)),
    218: ((228.5, 133.4), (523.1, 188.2), (548.2, 79.8)),
    241: ((243.0, 165.7), (526.7, 228.3), (543.1, 121.4)),
    264: ((198.3, 194.1), (474.0, 282.5), (512.7, 168.7)),
    287: ((153.5, 200.3), (433.3, 294.7), (495.0, 178.5)),
    310: ((136.4, 196.2), (410.6, 290.5), (484.3, 175.5)),
    333: ((206.9, 199.9), (482.7, 276.4), (509.3, 168.3)),
    356: ((280.9, 188.9), (576.9, 244.1), (570.6, 141.7)),
    379: ((308.9, 157.8), (594.1, 189.0), (566.9, 108.8)),
    402: ((307.9, 143.2), (572.9, 162.1), (539.4, 91.9)),
    425: ((304.9, 143.7), (566.2, 164.2), (534.7, 94.8)),
    448: ((301.6, 146.6), (561.2, 173.0), (532.0, 98.8)),
}


def main() -> None:
    cv2.setNumThreads(1)
    frames = [each.image for each in pictures(str(CLIP))]
    height, width = frames[0].shape[:2]
    camera = Camera.guess(width, height)
    target = ImageTarget(_straightened(frames[FROM_FRAME], camera), WIDTH_M)
    tracker = PoseTracker([target], None)
    outline = tracker.prepared[0].corners[[3, 2, 1]]
    tracked, ms, off_px = 0, [], []
    for number, frame in enumerate(frames):
        began_s = time.thread_time()
        found = tracker.advance(frame, camera, number)
        ms.append(1e3 * (time.thread_time() - began_s))
        tracked += found.tracked
        if number in LABELS:
            off_px.append(np.full(len(outline), np.inf))
            if found.pose is not None:
                seen = camera.zoomed(found.focal).pixels(found.pose.to_camera(outline))
                off_px[-1] = np.linalg.norm(seen - LABELS[number], axis=1)
    off = np.array(off_px)
    each = ", ".join(f"{name} {px:.1f}" for name, px in zip(NAMES, off.mean(0), strict=True))
    print(f"{cpu_name()}, one thread of OpenCV")
    print(f"tracked: {tracked} of {len(frames)} frames")
    print(f"CPU time: p50 {np.median(ms):.1f}, p99 {np.percentile(ms, 99):.1f} ms")
    print(f"corners within {CLOSE_PX:g} px: {(off <= CLOSE_PX).sum()} of {off.size}")
    print(f"off by: {off.mean():.1f} px in the mean ({each}), {off.max():.1f} at most")
    print(f"focal length: {camera.fx:.0f} px guessed, {camera.fx * found.focal:.0f} at the end")


def _straightened(frame: np.ndarray, camera: Camera) -> np.ndarray:
    """The top as a picture, with the proportions that it has by that lens."""
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float64)
    sides = np.linalg.inv(camera.matrix) @ cv2.findHomography(square, np.array(OUTLINE))[0]
    across, down = np.linalg.norm(sides[:, :2], axis=0)
    size = ACROSS_PX, round(ACROSS_PX * down / across)
    there = (square * size - 0.5).astype(np.float32)
    onto = cv2.getPerspectiveTransform(np.array(OUTLINE, np.float32), there)
    return cv2.warpPerspective(frame, onto, size, flags=cv2.INTER_CUBIC)


if __name__ == "__main__":
    main()
