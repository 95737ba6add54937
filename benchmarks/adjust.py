"""What bundle adjustment takes: ``python -m benchmarks.adjust [--seeds 5] [--repeats 5]``.

The same synthetic problems (``Problem``: cameras in a row, each point seen by neighbouring ones,
0.8 px of noise at a focal length of 520 px, a tenth of looks wrong) are adjusted by
``heimdall.tracking.slam.adjust`` and, where it is installed, by pycolmap (Ceres; Cauchy at the same
scale, one thread), in turn, in one run. CPU time of the one thread; pycolmap's with and without
what it takes to build its objects. ``off`` is how far each is from the truth at the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.system.cpu import cpu_name
from heimdall.tracking.slam.adjust import adjust, exponential
from heimdall.tracking.slam.observations import OUTLIER

SIGMA = 0.8 / 520


@dataclass(frozen=True)
class Problem:
    """How many cameras, those fixed among them, points, and looks at each point."""

    cameras: int
    fixed: int
    points: int
    looks: int
    wrong: float = 0.1

    @property
    def name(self) -> str:
        """For the table."""
        return (
            f"{self.cameras - self.fixed} + {self.fixed} cameras, {self.points:,} points, "
            f"{self.points * self.looks:,} looks"
        )


PROBLEMS = (
    Problem(8, 2, 359, 7),
    Problem(22, 10, 600, 8),
    Problem(22, 10, 900, 7),
    Problem(22, 10, 1200, 7),
    Problem(80, 1, 5000, 6),
)


@dataclass(frozen=True, eq=False)
class Drawn:
    """Arguments of ``adjust``, and the true camera centres and points."""

    arguments: tuple[np.ndarray, ...]
    centres: np.ndarray
    points: np.ndarray


def drawn(problem: Problem, seed: int) -> Drawn:
    """One such problem, its free cameras and points moved from where they are."""
    draw = np.random.default_rng(seed)
    count, points = problem.cameras, problem.points
    rotations = exponential(draw.normal(0, 0.1, (count, 3)))
    centres = np.column_stack([np.arange(count) * 0.1, draw.normal(0, 0.1, (count, 2))])
    moves = -np.einsum("nij,nj->ni", rotations, centres)
    first = draw.integers(0, count - problem.looks + 1, points)
    cameras = (first[:, None] + np.arange(problem.looks)).ravel()
    which = np.repeat(np.arange(points), problem.looks)
    middle = (first + problem.looks / 2) * 0.1
    there = draw.uniform((-1.5, -1.5, 1.5), (1.5, 1.5, 4.0), (points, 3))
    there[:, 0] += middle
    before = np.einsum("nij,nj->ni", rotations[cameras], there[which]) + moves[cameras]
    seen = before[:, :2] / before[:, 2:] + draw.normal(0, SIGMA, (len(which), 2))
    wrong = draw.random(len(which)) < problem.wrong
    seen[wrong] += draw.normal(0, 0.06, (int(wrong.sum()), 2))
    fixed = np.zeros(count, bool)
    fixed[draw.permutation(count)[: problem.fixed]] = True
    free = ~fixed[:, None]
    turned = exponential(free * draw.normal(0, 0.005, (count, 3))) @ rotations
    moved = moves + free * draw.normal(0, 0.005, (count, 3))
    near = there + draw.normal(0, 0.02, there.shape)
    return Drawn((turned, moved, near, cameras, which, seen, fixed), centres, there)


def own(arguments: tuple[np.ndarray, ...], steps: int) -> tuple[np.ndarray, float]:
    """Where cameras are, and seconds without preparation."""
    begun = time.thread_time()
    found = adjust(*arguments, sigma=SIGMA, steps=steps)
    took = time.thread_time() - begun
    return centres_of(found.rotations, found.translations), took


def peer(arguments: tuple[np.ndarray, ...], steps: int) -> tuple[np.ndarray, float]:
    """The same of pycolmap."""
    import pycolmap

    rotations, moves, points, cameras, which, seen, fixed = arguments
    record = pycolmap.Reconstruction()
    lens = pycolmap.Camera(
        model="SIMPLE_PINHOLE", width=640, height=480, params=[1 / SIGMA, 0, 0], camera_id=1
    )
    record.add_camera_with_trivial_rig(lens)
    tracks: list[list[Any]] = [[] for _ in points]
    keypoints: list[list[Any]] = [[] for _ in rotations]
    for camera, point, spot in zip(cameras.tolist(), which.tolist(), seen / SIGMA, strict=True):
        tracks[point].append(pycolmap.TrackElement(camera + 1, len(keypoints[camera])))
        keypoints[camera].append(spot)
    for number, (turn, move) in enumerate(zip(rotations, moves, strict=True)):
        image = pycolmap.Image(
            name=str(number), keypoints=np.array(keypoints[number]), camera_id=1,
            image_id=number + 1,
        )  # fmt: skip
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(turn), move)
        record.add_image_with_trivial_frame(image, pose)
    for point, track in zip(points, tracks, strict=True):
        record.add_point3D(point, pycolmap.Track(track))
    options = pycolmap.BundleAdjustmentOptions()
    options.refine_focal_length = options.refine_principal_point = False
    options.refine_extra_params = options.print_summary = False
    options.ceres.solver_options.max_num_iterations = steps
    options.ceres.solver_options.num_threads = 1
    options.ceres.loss_function_type = pycolmap.LossFunctionType.CAUCHY
    options.ceres.loss_function_scale = OUTLIER
    config = pycolmap.BundleAdjustmentConfig()
    for number in range(len(rotations)):
        config.add_image(number + 1)
    for number in np.flatnonzero(fixed).tolist():
        config.set_constant_rig_from_world_pose(record.image(number + 1).frame_id)
    begun = time.thread_time()
    pycolmap.create_default_bundle_adjuster(options, config, record).solve()
    took = time.thread_time() - begun
    poses = [record.image(number + 1).cam_from_world() for number in range(len(rotations))]
    turned = np.array([each.rotation.matrix() for each in poses])
    moved = np.array([each.translation for each in poses])
    return centres_of(turned, moved), took


def centres_of(rotations: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Where cameras are, (C, 3)."""
    return np.asarray(-np.einsum("nji,nj->ni", rotations, moves))


Way = Callable[[tuple[np.ndarray, ...], int], tuple[np.ndarray, float]]


def measured(way: Way, problems: list[Drawn], steps: int, repeats: int) -> str:
    """A cell of the table: medians over problems."""
    whole, alone, away = [], [], []
    for each in problems:
        for _ in range(repeats):
            begun = time.thread_time()
            centres, took = way(each.arguments, steps)
            whole.append((time.thread_time() - begun) * 1e3)
            alone.append(took * 1e3)
        off = np.linalg.norm(centres - each.centres, axis=1).max()
        away.append(off)
    return (
        f"{np.median(whole):.1f} ms (solver {np.median(alone):.1f}), "
        f"off {np.median(away) * 1e3:.2f}e-3"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    given = parser.parse_args()
    ways: dict[str, Way] = {"own": own}
    try:
        import pycolmap  # noqa: F401

        ways["pycolmap"] = peer
    except ImportError:
        print("pycolmap is not installed: own figures only")
    print(f"{cpu_name()}; {given.steps} steps at most, medians of {given.seeds} problems")
    for problem in PROBLEMS:
        problems = [drawn(problem, seed) for seed in range(given.seeds)]
        for name, way in ways.items():
            way(problems[0].arguments, 1)
            print(f"{problem.name}: {name} {measured(way, problems, given.steps, given.repeats)}")


if __name__ == "__main__":
    main()
