#!/usr/bin/env bash
# opencv-python 5.0.0.93 (its own FFmpeg), Linux x86-64; clip made with av 18.1.0 (libx264, tff=1).
# Guess: cv2.VideoCapture shows an interlaced H.264 clip, or read() returns False.
# Seen: read() returns True with a picture that is not the clip's (all black in a new process: what
#   the new buffer held); only libav complains, on standard error. The same file's frames
#   are right by PyAV. A valid, everyday file: DV, MPEG-2 and 1080i cameras write such frames.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
if command -v uv >/dev/null; then
  uv venv -q venv; uv pip install -q --python venv/bin/python av==18.1.0 opencv-python==5.0.0.93 numpy==2.2.6
else
  python3 -m venv venv; venv/bin/pip install -q av==18.1.0 opencv-python==5.0.0.93 numpy==2.2.6
fi
venv/bin/python - <<'PY'
import sys

import av
import cv2
import numpy as np

green = np.full((240, 320, 3), (30, 160, 60), np.uint8)
for name, params in (("whole", ""), ("interlaced", "tff=1")):
    with av.open(f"{name}.mp4", "w") as clip:
        stream = clip.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        stream.options = {"x264-params": params}
        for _ in range(10):
            clip.mux(stream.encode(av.VideoFrame.from_ndarray(green, format="rgb24")))
        clip.mux(stream.encode())


def off(name):
    ok, image = cv2.VideoCapture(f"{name}.mp4").read()
    with av.open(f"{name}.mp4") as clip:
        right = next(clip.decode(video=0)).to_ndarray(format="bgr24")
    wrong = np.abs(image.astype(int) - right).max() if ok else None
    print(f"{name}: read() {ok}, {image[100, 100] if ok else None}, PyAV {right[100, 100]}")
    return ok, wrong


interlaced = off("interlaced")  # first: a later buffer may hold the picture before
whole = off("whole")
sys.exit(0 if whole[0] and whole[1] < 10 and interlaced[0] and interlaced[1] > 30 else 1)
PY
