#!/bin/bash
# opencv-python 5.0.0: cv2.dnn.NMSBoxesBatched lets boxes of different classes remove one another
# where a box has negative coordinates (a detector's boxes often leave the picture).
# Guess: boxes of different classes never suppress each other; that is what the function is for.
# Seen: classes are moved apart by (largest coordinate + 1) a class, so a box of class 1 that lies as
# far below zero lands on a box of class 0. Moved by +200, the same boxes are both kept.
set -e
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
(uv venv -q "$dir/v" && uv pip install -q -p "$dir/v/bin/python" opencv-python-headless==5.0.0.93 numpy) 2>/dev/null ||
    (python3 -m venv "$dir/v" && "$dir/v/bin/pip" install -q opencv-python-headless==5.0.0.93 numpy)
"$dir/v/bin/python" - <<'PY'
import cv2, numpy as np
boxes = np.array([[300, 300, 110, 110], [-111, -111, 110, 110]], float)  # left, top, width, height
scores, classes = np.array([0.9, 0.8], np.float32), np.array([0, 1])
as_they_are = list(cv2.dnn.NMSBoxesBatched(boxes, scores, classes, 0.1, 0.5))
boxes[:, :2] += 200
moved = list(cv2.dnn.NMSBoxesBatched(boxes, scores, classes, 0.1, 0.5))
print("OpenCV", cv2.__version__, "keeps", as_they_are, "and, moved by 200,", moved)
raise SystemExit(0 if as_they_are == [0] and moved == [0, 1] else 1)
PY
