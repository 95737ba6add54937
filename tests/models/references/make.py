"""What the reference implementations give on the pictures of ``cases.py``, as JSON beside it.

In an environment of its own, for MediaPipe wants other versions than Heimdall does:

    pip install mediapipe==0.10.21 rapidocr-onnxruntime==1.4.4 "onnx<1.19" platformdirs psutil
    PYTHONPATH=. python -m tests.models.references.make

MediaPipe 0.10.21 (Apache-2.0) looks at each picture as a single one, without what it saw before:
``face_mesh.FaceMesh`` (its irises are of ``refine_landmarks``, another network than ours),
``pose.Pose`` (model_complexity 1, full) and ``hands.Hands`` (model_complexity 0, lite). RapidOCR
1.4.4 (Apache-2.0) reads the texts, with the networks that ours were made of in float32; these are
also run in Heimdall's own pipeline (``float32``), which leaves nothing but their precision as a
difference. Points are pixels of the whole frame; z as MediaPipe scales it, by the picture's width.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import mediapipe
import numpy as np
import onnxruntime as ort
import rapidocr_onnxruntime

from heimdall.graph.graph import load_graph
from heimdall.models import open_pipeline
from heimdall.models.base import Network
from heimdall.models.walk import run_pipeline
from tests.models.references.cases import FACES, HANDS, STANDING, TEXTS, Case

FOLDER = Path(__file__).parent
ORIGINALS = Path(rapidocr_onnxruntime.__file__).parent / "models"
NETWORKS = (
    "ch_PP-OCRv4_det_infer.onnx",
    "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    "ch_PP-OCRv4_rec_infer.onnx",
)
COMPACT = (",", ":")
solutions = mediapipe.solutions


def points(landmarks: Any, image: np.ndarray, corner: tuple[int, int], *more: str) -> list:
    """The landmarks in pixels of the frame, rounded, with ``more`` of what is known of each."""
    height, width = image.shape[:2]
    return [
        [
            *(round(p.x * width + corner[0], 1), round(p.y * height + corner[1], 1)),
            round(p.z * width, 1),
            *(round(getattr(p, name), 3) for name in more),
        ]
        for p in landmarks.landmark
    ]


def metres(landmarks: Any) -> list:
    return [[round(p.x, 4), round(p.y, 4), round(p.z, 4)] for p in landmarks.landmark]


def shown(solution: Any, case: Case) -> tuple[Any, np.ndarray, tuple[int, int]]:
    """What a solution of MediaPipe finds in a case's region."""
    image, corner = case.cut(case.picture())
    return solution.process(cv2.cvtColor(image, cv2.COLOR_BGR2RGB)), image, corner


def face(case: Case) -> dict[str, Any]:
    make = solutions.face_mesh.FaceMesh
    with (
        make(static_image_mode=True) as plain,
        make(static_image_mode=True, refine_landmarks=True) as fine,
    ):
        found, image, corner = shown(plain, case)
        refined, _, _ = shown(fine, case)
    (mesh,), (other,) = found.multi_face_landmarks, refined.multi_face_landmarks
    return {
        "points": points(mesh, image, corner),
        "irises": points(other, image, corner)[468:478],
    }


def body(case: Case) -> dict[str, Any]:
    with solutions.pose.Pose(static_image_mode=True, model_complexity=1) as solution:
        found, image, corner = shown(solution, case)
    joints = points(found.pose_landmarks, image, corner, "visibility")
    return {"joints": joints, "world": metres(found.pose_world_landmarks)}


def hand(case: Case) -> dict[str, Any]:
    with solutions.hands.Hands(
        static_image_mode=True, max_num_hands=1, model_complexity=0
    ) as solution:
        found, image, corner = shown(solution, case)
    ((marks,), (world,)) = found.multi_hand_landmarks, found.multi_hand_world_landmarks
    side = found.multi_handedness[0].classification[0].label.lower()
    return {"points": points(marks, image, corner), "world": metres(world), "side": side}


def text(case: Case) -> dict[str, Any]:
    image, corner = case.cut(case.picture())
    read, _ = rapidocr_onnxruntime.RapidOCR()(image)
    lines = [
        {"corners": (np.array(corners) + corner).round(1).tolist(), "text": words}
        for corners, words, _ in read or ()
    ]
    full = [{"text": each.text, "score": round(each.score, 4)} for each in float32(case)]
    return {"lines": lines, "float32": full}


def float32(case: Case) -> list:
    """What Heimdall's pipeline reads with the originals of its networks."""
    pipeline = open_pipeline("ocr")
    stored = zip(NETWORKS, pipeline.networks, strict=True)
    pipeline.networks = tuple(Network(str(ORIGINALS / n), each.shapes) for n, each in stored)
    graphs = [load_graph(each.path, each.shapes) for each in pipeline.networks]
    pipeline.bind(graphs)
    sessions = [ort.InferenceSession(each.serialized) for each in graphs]

    def infer(stage: int, inputs: Any) -> dict[str, np.ndarray]:
        names = [output.name for output in sessions[stage].get_outputs()]
        return dict(zip(names, sessions[stage].run(None, dict(inputs)), strict=True))

    return run_pipeline(pipeline, case.picture(), infer, {"region": case.region})


def write(name: str, cases: Sequence[Case], look: Callable[[Case], dict[str, Any]]) -> None:
    found = {case.name: look(case) for case in cases}
    rows = (
        f"{json.dumps(case)}: {json.dumps(each, separators=COMPACT)}"
        for case, each in found.items()
    )
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write("face", FACES, face)
    write("body", STANDING, body)
    write("hand", HANDS, hand)
    write("text", TEXTS, text)
