"""Surroundings monitoring: objects, faces, and the posture of whoever is near.

A scenario of the Heimdall paper (Table 1), for visual support: objects and faces are looked for
all the time, among many people faces more often than objects (section 10.1.1). Only when a person
is near, the pose networks are asked about that person, for 33 joints; of several, one after the
other. A line of text sums up what is there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from heimdall import DNN, App, Body3D, Detection, Frame, Scene

NEAR = 0.45  # of the picture's height: a person so tall is near
MARGIN = 0.1  # of a person's box, looked at around it
PATIENCE = 3  # rounds without news after which a posture is forgotten
CROWD = 3  # so many faces


@dataclass
class Posture:
    """The joints of one near person, found in ``box`` so many detections ago."""

    body: Body3D
    box: tuple[float, float, float, float]
    age: int = 0


class Surroundings(App):
    """See objects and faces around you, and the posture of people who are near."""

    title = "Surroundings"
    fps = 30
    scheduler = "max-total"
    clip = "single_face.mp4"

    # Rates as in the paper's Table 1. As attributes DNNs know the type of their results.
    detect = DNN(model="nanodet", rate_hz=1, max_rate_hz=8)
    face = DNN(model="centerface", rate_hz=1, max_rate_hz=8)
    pose = DNN(model="body", on_event=True, latency_constraint_ms=100, priority="high")

    def __init__(self) -> None:
        super().__init__()
        self.near: list[Detection] = []
        self.turn = 0  # whose posture was asked for last
        self.asked: Detection | None = None
        self.postures: list[Posture] = []

    def on_result(self, dnn: str, result: object, frame: Frame) -> None:
        if dnn == self.detect.name:
            self.look_at_people(self.detect.latest or [], frame.image.shape[0])
        elif dnn == self.pose.name and self.asked is not None:
            kept = [each for each in self.postures if apart(each.box, self.asked.box) > 0.5]
            found = [Posture(body, self.asked.box) for body in self.pose.latest or []]
            self.postures = [*found, *kept]
        elif dnn == self.face.name:
            self.mind_faces(len(self.face.latest or []))

    def mind_faces(self, count: int) -> None:
        """In a crowd faces matter more than objects do."""
        if count >= CROWD:
            self.face.adjust(priority="high", rate_hz=5, max_rate_hz=15)
        else:
            self.face.adjust()  # as declared

    def look_at_people(self, objects: list[Detection], height: int) -> None:
        """The event: a person is near. Ask for the posture of the next one."""
        people = [found for found in objects if found.label == "person"]
        self.near = [found for found in people if tall(found) > NEAR * height]
        self.postures = [each for each in self.postures if self.still_there(each)]
        if self.near:
            self.turn += 1
            self.asked = self.near[self.turn % len(self.near)]
            self.pose.request(region=widened(self.asked.box))

    def still_there(self, posture: Posture) -> bool:
        posture.age += 1
        return posture.age <= PATIENCE * max(len(self.near), 1)

    def draw(self, scene: Scene) -> None:
        objects, faces = self.detect.tracked or [], self.face.tracked or []
        scene.boxes(objects)
        scene.polygons([corners(face.box) for face in faces], "#facc15")
        newest = self.pose.tracked if self.postures else []
        scene.bodies([*(newest or []), *(each.body for each in self.postures[1:])])
        scene.text(self.summary(objects, len(faces)), at=(10, scene.free[3] - 22))

    def summary(self, objects: list[Detection], faces: int) -> str:
        """What is around, in words."""
        counts = Counter(found.label for found in objects)
        things = [f"{count} × {label}" for label, count in counts.most_common(4)]
        things += [f"{faces} × face"] if faces else []
        things += [f"{len(self.near)} near"] if self.near else []
        return " · ".join(things) or "nothing in sight"


def tall(found: Detection) -> float:
    """The height of a box."""
    return found.box[3] - found.box[1]


def corners(box: tuple[float, float, float, float]) -> np.ndarray:
    """The corners of a box, (4, 2), clockwise from the top left."""
    left, top, right, bottom = box
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)])


def widened(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """The box with a margin on every side."""
    left, top, right, bottom = box
    x, y = MARGIN * (right - left), MARGIN * (bottom - top)
    return left - x, top - y, right + x, bottom + y


def apart(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> float:
    """The distance of two boxes' middles, in widths of the second."""
    middles = [np.array([box[0] + box[2], box[1] + box[3]]) / 2 for box in (a, b)]
    return float(np.linalg.norm(middles[0] - middles[1]) / max(b[2] - b[0], 1.0))
