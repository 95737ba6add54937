#!/bin/sh
# RealSense's lens model "inverse_brown_conrady" is not the inverse of "brown_conrady".
#
# Versions: pyrealsense2 2.59.1, opencv-python 4.12.0.88 (Python 3.11).
# Guess: coefficients of "inverse_brown_conrady" lead from distorted to undistorted points, as its
#   name and its description in rs_types.h say, so cv2.undistortPoints or a negated lens is needed.
# Seen: rs2_project_point_to_pixel takes them as forward coefficients, and rs2_deproject inverts
#   that by iteration. The pixels are those of OpenCV's plumb-bob within 0.02 px (tangential terms
#   are added to the radially scaled point). It is "modified_brown_conrady" whose two directions do
#   not fit each other: projected and deprojected, a point comes back 1% off.
# No camera is needed. Where libusb-1.0 is not installed, Debian's package is unpacked here.
set -eu
cd "$(mktemp -d)"
python3 -m venv venv
venv/bin/pip -q install pyrealsense2==2.59.1.11053 opencv-python==4.12.0.88 || exit 3
if ! venv/bin/python -c "import pyrealsense2" 2>/dev/null; then
    mkdir -p usb/apt && chmod 777 usb/apt && (cd usb/apt && apt-get -q download libusb-1.0-0)
    dpkg -x usb/apt/*.deb usb
    LD_LIBRARY_PATH=$(dirname "$(find "$PWD/usb" -name 'libusb-1.0.so.0')")
    export LD_LIBRARY_PATH
fi
venv/bin/python - <<'PY'
import cv2
import numpy as np
import pyrealsense2 as rs

coefficients = [-0.055, 0.065, -0.0008, 0.0006, -0.021]  # as a D455's colour camera has them
lens = rs.intrinsics()
lens.width, lens.height, lens.ppx, lens.ppy, lens.fx, lens.fy = 1280, 720, 640, 360, 640, 640
lens.coeffs = coefficients
matrix = np.array([[640.0, 0, 640], [0, 640, 360], [0, 0, 1]])
points = np.array([(x, y, 1.0) for x in (-0.8, -0.4, 0, 0.4, 0.8) for y in (-0.5, 0, 0.5)])
still = np.zeros(3)
plumb_bob = cv2.projectPoints(points, still, still, matrix, np.array(coefficients))[0][:, 0]
off = {}
for name in ("brown_conrady", "inverse_brown_conrady", "modified_brown_conrady"):
    lens.model = getattr(rs.distortion, name)
    pixels = np.array([rs.rs2_project_point_to_pixel(lens, list(p)) for p in points])
    back = np.array([rs.rs2_deproject_pixel_to_point(lens, list(p), 1.0) for p in pixels])
    off[name] = np.abs(pixels - plumb_bob).max(), np.abs(back - points).max()
    print(f"{name:24} {off[name][0]:.4f} px from OpenCV's plumb-bob, "
          f"{off[name][1]:.5f} off when projected and deprojected")
assert off["inverse_brown_conrady"][0] < 0.05 and off["inverse_brown_conrady"][1] < 1e-4
assert off["modified_brown_conrady"][1] > 1e-3
PY
