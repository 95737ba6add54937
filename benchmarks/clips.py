"""Clips to try trackers on: rendered rooms, films, and sequences that others have published."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from benchmarks import colmap
from benchmarks.rooms import FPS, FRAMES, Room, TruePlane, rendered
from benchmarks.trajectory import Flat
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose


@dataclass(frozen=True, eq=False)
class Clip:
    """Grey pictures of a ``camera``, at FPS, and what is known about them: ``truth`` and ``depths``
    by number, the ``gaps``, flat ``faces``, whether lengths are ``metric``, and what sensors say
    (``motions``)."""

    name: str
    pictures: Sequence[np.ndarray]
    camera: Camera
    truth: dict[int, Pose]
    depths: dict[int, float] = field(default_factory=dict)
    gaps: tuple[range, ...] = ()
    faces: Sequence[Flat] = ()
    metric: bool = False
    motions: Sequence[Motion] = ()


def room(
    folder: Path,
    seed: int,
    variant: str,
    size: tuple[int, int] = (640, 480),
    frames: int = FRAMES,
    *,
    sensors: bool = False,
) -> Clip:
    """A rendered room; it is rendered now if it is not in the folder."""
    made = Room(seed, variant, size, frames)
    place = rendered(folder, made)
    depths = np.load(place / "truth.npz")["depths"].tolist()
    return Clip(
        f"{variant}-{seed}",
        _read(sorted(place.glob("*.jpg"))),
        made.camera,
        dict(enumerate(made.poses)),
        dict(enumerate(depths)),
        (made.gap,) if made.gap else (),
        [_flat(each) for each in made.faces],
        metric=True,
        motions=made.motions if sensors else (),
    )


def _flat(plane: TruePlane) -> Flat:
    point, normal = np.array(plane.point, float), np.array(plane.normal, float)
    return Flat(plane.name, point, normal, math.hypot(*plane.size) / 2)


def _read(files: Sequence[Path]) -> list[np.ndarray]:
    pictures = (cv2.imread(str(each), cv2.IMREAD_GRAYSCALE) for each in files)
    return [each for each in pictures if each is not None]


def vamr(folder: Path, most: int | None) -> Clip:
    """The University of Zurich's exercise 1."""
    files = sorted((folder / "images").glob("*.jpg"))[:most]
    rows = np.loadtxt(folder / "poses.txt")[: len(files)]
    k, (k1, k2) = np.loadtxt(folder / "K.txt"), np.loadtxt(folder / "D.txt").ravel()
    square = float(k[0, 0] ** 2)  # its radii are in pixels
    distortion = (float(k1) * square, float(k2) * square**2, 0.0, 0.0, 0.0)
    pictures = _read(files)
    lens = (float(k[0, 0]), float(k[1, 1]), float(k[0, 2]), float(k[1, 2]))
    height, width = pictures[0].shape
    camera = Camera(width, height, *lens, distortion)
    return Clip("vamr", pictures, camera, {n: Pose.of(r[:3], r[3:]) for n, r in enumerate(rows)})


def tsukuba(folder: Path, most: int | None) -> Clip:
    """New Tsukuba's beginning: places in centimetres, rotations from the camera to the world."""
    pictures = _read(sorted((folder / "dataset_images_matlab").glob("*.png"))[:most])
    rows = np.loadtxt(folder / "test_data" / "cam_traj_truth.txt")[: len(pictures)]
    truth = {n: Pose(row[3:].reshape(3, 3), row[:3] / 100).inverse for n, row in enumerate(rows)}
    camera = Camera(640, 480, 615.0, 615.0, 319.5, 239.5)
    return Clip("tsukuba", pictures, camera, truth, metric=True)


def hololens(folder: Path, most: int | None) -> Clip:
    """Frames of a HoloLens that are far apart: poses from the camera to the world, metres."""
    files = sorted((folder / "images").glob("*.png"))[:most]
    pictures = _read(files)
    rows = np.loadtxt(folder / "poses.txt").reshape(-1, 4, 4)[: len(files)]
    truth = {n: Pose(row[:3, :3], row[:3, 3]).inverse for n, row in enumerate(rows)}
    (fx, _, cx), (_, fy, cy), _ = np.loadtxt(folder / "K.txt").tolist()
    height, width = pictures[0].shape
    camera = Camera(width, height, fx, fy, cx, cy)
    return Clip("hololens", pictures, camera, truth, metric=True)


def film(file: Path, most: int | None, by: str | None) -> Clip:
    """A video, about FPS of its frames a second; without a reference its camera is a guess."""
    video = cv2.VideoCapture(str(file))
    step = max(1, round(video.get(cv2.CAP_PROP_FPS) / FPS))
    pictures = [
        cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY) for _, picture in colmap.frames(file, step)
    ][:most]
    if by is None:
        return Clip(file.stem, pictures, Camera.guess(*pictures[0].shape[1::-1]), {})
    known = colmap.reference(file)
    own = {n: n // step for n in known.poses if n % step == 0 and n // step < len(pictures)}
    truth = {at: known.poses[n] for n, at in own.items()}
    depths = {at: known.depths[n] for n, at in own.items() if n in known.depths}
    return Clip(file.stem, pictures, known.camera, truth, depths)


def euroc(folder: Path, most: int | None) -> Clip:
    """The left camera of a sequence in EuRoC's format (``mav0/cam0``). Poses of the body are not
    read: this is for MIT-SPARK/Kimera-VIO's 95 frames (tests/data/MicroEurocDataset), in which the
    camera moves by 1.7 cm, so that no map may begin."""
    camera = folder / "mav0" / "cam0"
    told = dict(
        re.findall(r"^(\w+): *(\[.*?\])", (camera / "sensor.yaml").read_text(), re.MULTILINE)
    )
    fx, fy, cx, cy = json.loads(told["intrinsics"])
    bent = (*json.loads(told["distortion_coefficients"]), 0.0)
    pictures = _read(sorted((camera / "data").glob("*.png"))[:most])
    height, width = pictures[0].shape
    return Clip("euroc", pictures, Camera(width, height, fx, fy, cx, cy, bent), {})


FOLDERS = {"vamr": vamr, "tsukuba": tsukuba, "hololens": hololens, "euroc": euroc}
