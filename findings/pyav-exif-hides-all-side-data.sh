#!/usr/bin/env bash
# av (PyAV) 18.1.0 with FFmpeg 8.1, Linux x86-64.
# Guess: VideoFrame.side_data of a TIFF or JPEG frame with EXIF lists what PyAV knows.
# Seen: it raises "ValueError: 31 is not a valid Type": FFmpeg 8.1 adds EXIF to frames as side data,
#   and PyAV's enumeration lacks it, so that a display matrix beside it cannot be read either.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
if command -v uv >/dev/null; then
  uv venv -q venv; uv pip install -q --python venv/bin/python av==18.1.0 numpy==2.2.6
else
  python3 -m venv venv; venv/bin/pip install -q av==18.1.0 numpy==2.2.6
fi
venv/bin/python - <<'PY'
import sys

import av
import numpy as np

with av.open("a.tiff", "w", format="image2") as file:
    stream = file.add_stream("tiff", rate=1)
    stream.width, stream.height, stream.pix_fmt = 64, 48, "rgb24"
    image = np.full((48, 64, 3), 90, np.uint8)
    file.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
    file.mux(stream.encode())
with av.open("a.tiff") as file:
    frame = next(file.decode(video=0))
try:
    print("side data:", [each.type.name for each in frame.side_data])
except ValueError as error:
    print("ValueError:", error)
    sys.exit(0 if "31" in str(error) else 1)
sys.exit(1)
PY
