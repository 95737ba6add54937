"""Two networks on every frame of a clip, without drawing; prints what they find."""

import cv2

from heimdall import DNN, Session
from heimdall.system.paths import ASSETS

video = cv2.VideoCapture(str(ASSETS / "media" / "desk.mp4"))
with Session([DNN("things", model="nanodet"), DNN("hands", model="hand")]) as session:
    for _ in range(10):
        results = session.infer(video.read()[1])
        print([each.label for each in results["things"]], len(results["hands"]), "hands")
