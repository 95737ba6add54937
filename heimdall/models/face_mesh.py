"""Faces in three stages: CenterFace, then MediaPipe's 468 points of each, then both irises.

A face is cut out upright, by its eyes; an eye by its corners, and one of the two mirrored, for the
iris network has only seen the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from heimdall.models import crop
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.face import CenterFace
from heimdall.models.letterbox import unit_rgb
from heimdall.models.results import Detection, FaceMesh

FACE_SIDE, EYE_SIDE = 192, 64
POINTS = 468
# Side of the crop over the longer one of the face's box. Points are nearest to MediaPipe's own at
# 1.3 (1.2% of the distance of the eyes; 2.0% at 1.5, 2.9% at 1.6); a little more keeps the chin.
FACE_REACH = 1.35
EYE_REACH = 2.3  # of an eye's crop over the distance of its corners
CORNERS = ((33, 133), (362, 263))  # of both eyes in the mesh, from left to right in the picture
MIRRORED = 1  # which of the two
# Lines along a face's features, from point to point: its outline, then eyes, brows and lips.
_FEATURES = (
    "10-338-297-332-284-251-389-356-454-323-361-288-397-365-379-378-400-377-152"
    "-148-176-149-150-136-172-58-132-93-234-127-162-21-54-103-67-109-10",
    "33-7-163-144-145-153-154-155-133-173-157-158-159-160-161-246-33",
    "263-249-390-373-374-380-381-382-362-398-384-385-386-387-388-466-263",
    "70-63-105-66-107-55-65-52-53-46",
    "300-293-334-296-336-285-295-282-283-276",
    "61-146-91-181-84-17-314-405-321-375-291-409-270-269-267-0-37-39-40-185-61",
    "78-95-88-178-87-14-317-402-318-324-308-415-310-311-312-13-82-81-80-191-78",
)
CONTOURS = tuple(
    pair for chain in _FEATURES for pair in pairwise(int(point) for point in chain.split("-"))
)


class FaceMeshes(Pipeline[list[FaceMesh]]):
    """Result: list[FaceMesh], at most ``most``, the surest face first.

    ``size`` = (height, width) of the detector's input, multiples of 32: larger finds smaller
    faces. ``score`` is its smallest score, ``presence`` the mesh's smallest.
    """

    size_step = CenterFace.size_step

    def __init__(
        self,
        size: tuple[int, int] = (480, 640),
        most: int = 2,
        score: float = 0.5,
        presence: float = 0.5,
    ) -> None:
        self.most, self.presence = most, presence
        self._faces = CenterFace(size, score)
        self.networks = (
            *self._faces.networks,
            Network("face_mesh_192.onnx"),
            Network("iris_64.onnx"),
        )

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        if stage == 0:
            return self._faces.prepare(0, image, previous, options)
        if stage == 1:
            maps = [face_crop(face) for face in previous[0][: self.most]]
            return [self._cut(image, to_crop, FACE_SIDE) for to_crop in maps]
        tasks = []
        for points in (mesh[0] for mesh in previous if mesh is not None):
            for eye in range(2):
                tasks.append(self._cut(image, eye_crop(points, eye), EYE_SIDE))
        return tasks

    def _cut(self, image: np.ndarray, to_crop: np.ndarray, size: int) -> Prepared:
        return Prepared({"input_1": unit_rgb(crop.cut(image, to_crop, size))}, to_crop)

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Any:
        """Stage 0: list[Detection]; 1: points (468, 3) and a score, or None where the crop shows no
        face; 2: an iris (5, 3)."""
        if stage == 0:
            return self._faces.decode(0, outputs, context)
        if stage == 2:
            return crop.to_frame(outputs["output_iris"].reshape(5, 3), context)
        presence = crop.sigmoid(outputs["conv2d_31"].flat[0])
        if presence < self.presence:
            return None
        return crop.to_frame(outputs["conv2d_21"].reshape(POINTS, 3), context), presence

    def combine(self, results: Sequence[Sequence[Any]], image: np.ndarray) -> list[FaceMesh]:
        if len(results) < 3:
            return []
        meshes = [mesh for mesh in results[1] if mesh is not None]
        irises = iter(results[2])
        return [
            FaceMesh(points, score, np.stack([next(irises), next(irises)]))
            for points, score in meshes
        ]


def face_crop(face: Detection) -> np.ndarray:
    """The map (2, 3) to the upright 192 x 192 crop around a face with its five landmarks."""
    left, top, right, bottom = face.box
    centre = np.array([(left + right) / 2, (top + bottom) / 2])
    up = np.array([0.0, -1.0])
    if face.points is not None:
        across = face.points[1] - face.points[0]  # from eye to eye
        up = np.array([across[1], -across[0]])
    return crop.upright(centre, up, FACE_REACH * max(right - left, bottom - top), FACE_SIDE)


def eye_crop(points: np.ndarray, eye: int) -> np.ndarray:
    """The map (2, 3) to the 64 x 64 crop around one eye of a mesh, mirrored where it must be."""
    start, end = points[CORNERS[eye], :2]
    across = end - start
    side = EYE_REACH * float(np.hypot(*across))
    up = np.array([across[1], -across[0]])
    to_crop = crop.upright((start + end) / 2, up, side, EYE_SIDE)
    if eye == MIRRORED:
        to_crop[0] = -to_crop[0]
        to_crop[0, 2] += EYE_SIDE
    return to_crop
