"""Poses of clips that nobody has measured, by COLMAP (Schönberger and Frahm, "Structure-from-Motion
Revisited", CVPR 2016), which takes minutes and all pictures at once:

    python -m benchmarks.colmap CLIP.mp4    # once; beside it lies CLIP.colmap.npz then

Of every eighth frame SIFT features, matched along the clip; one camera of the SIMPLE_RADIAL model.
Needs pycolmap. In a rendered room, where the truth is known, this says how far to trust it:

    python -m benchmarks.colmap --folder rooms --seeds 2
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.rooms import FPS, Room, rendered
from benchmarks.trajectory import judged
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose

EVERY = 8  # frames
OVERLAP = 12  # pictures that each one is matched with, and then at doubling distances
LEAST_POINTS = 20  # of a picture, for its depth


@dataclass(frozen=True, eq=False)
class Reference:
    """The ``camera``, ``poses`` and ``depths`` (median of what it saw) by frame number, in a unit
    of its own; of how many pictures (``asked``), and the mean reprojection error, pixels."""

    camera: Camera
    poses: dict[int, Pose]
    depths: dict[int, float]
    asked: int
    error_px: float


def reference(clip: Path) -> Reference:
    """That of a clip, kept beside it."""
    kept = clip.with_suffix(".colmap.npz")
    if not kept.exists():
        save(kept, reconstructed(frames(clip)))
    return load(kept)


def frames(clip: Path, every: int = EVERY) -> Iterator[tuple[int, np.ndarray]]:
    """Every so many frames, with their numbers; BGR uint8."""
    video = cv2.VideoCapture(str(clip))
    number = 0
    while video.grab():
        if number % every == 0:
            yield number, video.retrieve()[1]
        number += 1


def reconstructed(pictures: Iterable[tuple[int, np.ndarray]]) -> Reference:
    """The camera and poses of numbered pictures, all of one size. Raises ValueError if COLMAP finds
    none."""
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.Level.ERROR.value
    with tempfile.TemporaryDirectory() as folder:
        images, database = Path(folder) / "images", Path(folder) / "database.db"
        images.mkdir()
        asked, size = 0, (0, 0)
        for number, picture in pictures:
            cv2.imwrite(str(images / f"{number:06d}.png"), picture)
            asked, size = asked + 1, picture.shape[1::-1]
        pycolmap.set_random_seed(0)
        pycolmap.extract_features(
            database,
            images,
            camera_mode=pycolmap.CameraMode.SINGLE,
            reader_options=pycolmap.ImageReaderOptions(camera_model="SIMPLE_RADIAL"),
            extraction_options=pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False),
        )
        pycolmap.match_sequential(
            database,
            matching_options=pycolmap.FeatureMatchingOptions(num_threads=1, use_gpu=False),
            pairing_options=pycolmap.SequentialPairingOptions(
                overlap=OVERLAP, quadratic_overlap=True, num_threads=1
            ),
        )
        options = pycolmap.IncrementalPipelineOptions(num_threads=1, random_seed=0)
        models = pycolmap.incremental_mapping(database, images, Path(folder), options)
        if not models:
            raise ValueError("COLMAP found no poses: too little texture, or no parallax")
        best = max(models.values(), key=lambda each: each.num_reg_images())
        return _read(best, size, asked)


def _read(model: Any, size: tuple[int, int], asked: int) -> Reference:
    ((focal, x, y, k),) = [each.params.tolist() for each in model.cameras.values()]
    # it counts from the first pixel's corner
    camera = Camera(*size, focal, focal, x - 0.5, y - 0.5, (k, 0.0, 0.0, 0.0, 0.0))
    poses, depths = {}, {}
    for image in model.images.values():
        if not image.has_pose:
            continue
        number, flat = int(Path(image.name).stem), image.cam_from_world().matrix()
        poses[number] = Pose(flat[:, :3].copy(), flat[:, 3].copy())
        seen = [each.point3D_id for each in image.get_observation_points2D()]
        points = np.array([model.points3D[each].xyz for each in seen]).reshape(-1, 3)
        if len(points) >= LEAST_POINTS:
            depths[number] = float(np.median(poses[number].to_camera(points)[:, 2]))
    return Reference(
        camera,
        dict(sorted(poses.items())),
        depths,
        asked,
        float(model.compute_mean_reprojection_error()),
    )


def save(kept: Path, found: Reference) -> None:
    """Write it, so that `load` gives it again."""
    camera, poses = found.camera, found.poses
    np.savez(
        kept,
        camera=[*camera.size, camera.fx, camera.fy, camera.cx, camera.cy, *camera.distortion],
        numbers=list(poses),
        poses=[np.column_stack([each.rotation, each.translation]) for each in poses.values()],
        depths=[found.depths.get(number, np.nan) for number in poses],
        rest=[found.asked, found.error_px],
    )


def load(kept: Path) -> Reference:
    """What `save` wrote."""
    with np.load(kept) as read:
        width, height, fx, fy, cx, cy, *distortion = read["camera"].tolist()
        camera = Camera(int(width), int(height), fx, fy, cx, cy, tuple(distortion))
        numbers = read["numbers"].tolist()
        flat = [Pose(each[:, :3], each[:, 3]) for each in read["poses"]]
        depths = dict(zip(numbers, read["depths"].tolist(), strict=True))
        asked, error_px = read["rest"].tolist()
    depths = {number: depth for number, depth in depths.items() if np.isfinite(depth)}
    poses = dict(zip(numbers, flat, strict=True))
    return Reference(camera, poses, depths, int(asked), error_px)


def _room(folder: Path, seed: int, variant: str) -> str:
    """How far COLMAP is off in a rendered room."""
    room = Room(seed, variant)
    place = rendered(folder, room)
    kept = place / "colmap.npz"
    if not kept.exists():
        numbers = range(0, room.frames, EVERY)
        files = ((n, cv2.imread(str(place / f"{n:05d}.jpg"))) for n in numbers)
        save(kept, reconstructed((n, each) for n, each in files if each is not None))
    found = load(kept)
    truth = {n: room.pose(n / FPS) for n in range(0, room.frames, EVERY)}
    result = judged(found.poses, truth, {n: room.depth(n / FPS) for n in truth})
    row = f"{variant}-{seed}: {len(found.poses)} of {found.asked} pictures, {found.error_px:.2f} px"
    row += f", focal length {found.camera.fx:.1f} for {room.camera.fx:.1f}"
    if result is None:
        return row
    off_mm = 1e3 * result.ate * result.path
    return f"{row}, off by {off_mm:.2f} mm, {result.turn:.3f} / {result.worst_turn:.3f} degrees"


def main() -> None:
    """Print a row a clip, or a room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clips", nargs="*", type=Path)
    parser.add_argument("--folder", type=Path, help="of rendered rooms")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--variants", default="hand")
    options = parser.parse_args()
    for clip in options.clips:
        found = reference(clip)
        row = f"{clip.name}: {len(found.poses)} of {found.asked} pictures, {found.error_px:.2f} px"
        lens = f"focal length {found.camera.fx:.1f}, k1 {found.camera.distortion[0]:+.3f}"
        print(f"{row}, {lens}", flush=True)
    if options.folder is not None:
        for seed in range(options.seeds):
            for variant in options.variants.split(","):
                print(_room(options.folder, seed, variant), flush=True)


if __name__ == "__main__":
    main()
