"""Walks on which something goes wrong, and how many poses are false then.

python -m tests.tracking.slam.mishaps --seeds 5
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import cv2
import numpy as np

from benchmarks.trajectory import Similarity, degrees_between
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.model import Map
from heimdall.tracking.slam.tracker import RoomTracker
from tests.tracking.slam.scene import CAMERA, SIZE, TEXTURES, look, texture

FALSE_SHARE, FALSE_DEGREES = 0.05, 5.0  # of the path
SETTLED = 15  # frames of a map by which it is aligned at least
STILL = Pose(np.eye(3), np.zeros(3))
OTHERS = [texture(seed) for seed in range(20, 24)]  # of another room


@dataclass(frozen=True, eq=False)
class Shown:
    """A picture, and the true pose in room ``room`` by which it was taken; None: nobody can know
    it, so that any pose is false."""

    picture: np.ndarray
    truth: Pose | None
    room: int = 0
    camera: Camera = CAMERA


@dataclass(frozen=True)
class Found:
    """What the tracker made of one picture: in which map, and why there is no pose."""

    pose: Pose | None
    map: int
    reason: str


def wander(seed: int, frames: int) -> list[Pose]:
    """A hand-held camera that sways, at its own pace."""
    draw = np.random.default_rng(seed)
    pace, phase = draw.uniform(0.9, 2.1, 6), draw.uniform(0, 2 * np.pi, 6)
    far = np.array([0.35, 0.1, 0.12, 0.04, 0.1, 0.03])
    poses = []
    for t in np.arange(frames) / 30:
        way = far * np.sin(pace * t + phase)
        turn = cv2.Rodrigues(way[3:])[0]
        poses.append(Pose(turn, -turn @ way[:3]))
    return poses


def seen(poses: list[Pose], seed: int, room: int = 0) -> list[Shown]:
    """The poses as they show the room, or another one."""
    walls = TEXTURES if room == 0 else OTHERS
    return [
        Shown(look(each, seed=1000 * seed + at, textures=walls), each, room)
        for at, each in enumerate(poses)
    ]


def plain(grey: int, frames: int, noise: float = 2.0) -> list[Shown]:
    """A wall of one colour; or none, if it is dark."""
    draw = np.random.default_rng(grey)
    shape = frames, SIZE[1], SIZE[0]
    pictures = np.clip(grey + draw.normal(0, noise, shape), 0, 255).astype(np.uint8)
    return [Shown(each, None) for each in pictures]


# --- what goes wrong -----------------------------------------------------------------------------


def white_wall(seed: int) -> list[Shown]:
    """A white wall is all there is in the middle."""
    walk = seen(wander(seed, 150), seed)
    return [*walk[:70], *plain(235, 40), *walk[110:]]


def darkness(seed: int) -> list[Shown]:
    """The light goes out slowly, and on again."""
    walk = seen(wander(seed, 150), seed)
    lit = np.interp(np.arange(150), (60, 75, 105, 110), (1, 0.02, 0.02, 1))
    draw = np.random.default_rng(seed)
    shown = []
    for each, light in zip(walk, lit, strict=True):
        dark = each.picture * light + draw.normal(0, 2, each.picture.shape)
        shown.append(replace(each, picture=np.clip(dark, 0, 255).astype(np.uint8)))
    return shown


def capped(seed: int) -> list[Shown]:
    """The lens cap is on at the start."""
    return [*plain(2, 30), *seen(wander(seed, 90), seed)]


def zoomed(seed: int) -> list[Shown]:
    """The lens zooms to 1.5 and stays so, and nothing says it: poses are those it does not tell."""
    times = np.interp(np.arange(150), (70, 90), (1.0, 1.5))
    shown = []
    for at, (pose, each) in enumerate(zip(wander(seed, 150), times, strict=True)):
        picture = look(pose, CAMERA.zoomed(float(each)), seed=1000 * seed + at)
        shown.append(Shown(picture, pose))
    return shown


def resized(seed: int) -> list[Shown]:
    """The source changes its size."""
    small = Camera(320, 240, 266.7, 266.7, 159.5, 119.5)
    walk = wander(seed, 160)
    after = [Shown(look(each, small, seed=at), each, 0, small) for at, each in enumerate(walk[70:])]
    return [*seen(walk[:70], seed), *after]


def cut(seed: int) -> list[Shown]:
    """A cut to another room, of the same shape, and back."""
    walk = wander(seed, 200)
    other = seen(wander(seed + 50, 80), seed, room=1)
    return [*seen(walk[:80], seed), *other, *seen(walk[80:], seed)]


def alike(seed: int) -> list[Shown]:
    """A cut to another room in which some of the same things stand elsewhere."""
    walk = seen(wander(seed, 80), seed)
    turned = [*OTHERS[:2], TEXTURES[3], TEXTURES[2]]
    there = [
        Shown(look(each, seed=at, textures=turned), each, 1)
        for at, each in enumerate(wander(seed + 50, 100))
    ]
    return [*walk, *there]


def repeated(seed: int) -> list[Shown]:
    """Each frame comes three times."""
    return [each for each in seen(wander(seed, 60), seed) for _ in range(3)]


def frozen(seed: int) -> list[Shown]:
    """The camera stands still, and later the source repeats one picture."""
    walk = seen(wander(seed, 90), seed)
    return [*walk[:60], *[walk[60]] * 45, *walk[60:]]


def still(seed: int) -> list[Shown]:
    """A still picture from the start."""
    first = seen(wander(seed, 1), seed)[0]
    return [replace(first, truth=None)] * 45


def turning(seed: int) -> list[Shown]:
    """The camera turns, and never moves: there is no depth to be known."""
    draw = np.random.default_rng(seed)
    pace, phase = draw.uniform(0.8, 2, 3), draw.uniform(0, 6, 3)
    shown = []
    for at in range(120):
        turn = np.array([0.1, 0.3, 0.08]) * np.sin(pace * at / 30 + phase)
        pose = Pose(cv2.Rodrigues(turn)[0], np.zeros(3))
        shown.append(Shown(look(pose, seed=1000 * seed + at), None))
    return shown


def drifting(seed: int) -> list[Shown]:
    """Textures that all move by themselves: leaves, a crowd. No camera sees that."""
    draw = np.random.default_rng(seed)
    tiles = [texture(100 + 10 * seed + each, 256) for each in range(12)]
    pace = draw.uniform(-1.2, 1.2, (12, 2))
    shown = []
    for at in range(120):
        picture = np.zeros((SIZE[1], SIZE[0]), np.uint8)
        for number, (tile, each) in enumerate(zip(tiles, pace, strict=True)):
            x, y = number % 4 * 120, number // 4 * 120
            way = np.array([[1, 0, -60 + each[0] * at], [0, 1, -60 + each[1] * at]])
            moved = cv2.warpAffine(tile, way, (120, 120), borderMode=cv2.BORDER_WRAP)
            picture[y : y + 120, x : x + 120] = moved
        noise = draw.normal(0, 2, picture.shape)
        shown.append(Shown(np.clip(picture + noise, 0, 255).astype(np.uint8), None))
    return shown


def crowded(seed: int) -> list[Shown]:
    """A person walks in, fills the picture for a second, sways, and walks out."""
    walk = seen(wander(seed, 170), seed)
    coat = cv2.resize(texture(60 + seed), (560, 420), interpolation=cv2.INTER_CUBIC)
    shown = []
    for at, each in enumerate(walk):
        left = int(np.interp(at, (60, 80, 110, 130), (480, -60, -60, -560)))
        left += int(12 * np.sin(at / 5)) if 80 <= at < 110 else 0
        picture = each.picture.copy()
        begin, end = max(left, 0), min(left + 560, SIZE[0])
        if begin < end:
            picture[:, begin:end] = coat[20 : 20 + SIZE[1], begin - left : end - left]
        hidden = end - begin > 0.9 * SIZE[0]
        shown.append(replace(each, picture=picture, truth=None if hidden else each.truth))
    return shown


def away(seed: int) -> list[Shown]:
    """The camera is turned away for 3 s, where another wall is, and comes back."""
    walk = seen(wander(seed, 230), seed)
    behind = seen(wander(seed + 70, 90), seed, room=1)
    shown = []
    for at, each in enumerate(walk):
        picture, truth = each.picture, each.truth
        if 70 <= at < 160:
            picture, truth = behind[at - 70].picture, None
        for begin in (66, 158):  # a quick turn: nothing but streaks
            if begin <= at < begin + 5:
                picture, truth = cv2.blur(picture, (91, 3)), None
        shown.append(replace(each, picture=picture, truth=truth))
    return shown


MISHAPS: dict[str, Callable[[int], list[Shown]]] = {
    each.__name__: each
    for each in (
        white_wall, darkness, capped, zoomed, resized, cut, alike, repeated, frozen, still,
        turning, drifting, crowded, away,
    )
}  # fmt: skip


# --- what comes of it ----------------------------------------------------------------------------


def played(shown: list[Shown]) -> list[Found]:
    """What a tracker makes of it."""
    tracker = RoomTracker(Mapper())
    found: list[Found] = []
    maps: list[Map] = []
    for at, each in enumerate(shown):
        tracking = tracker.advance(each.picture, each.camera, at, at / 30)
        if not any(each is tracker.map for each in maps):
            maps.append(tracker.map)
        pose = tracking.pose if tracking.tracked else None
        found.append(Found(pose, len(maps) - 1, tracker.reason))
    tracker.close()
    return found


def false_poses(shown: list[Shown], found: list[Found]) -> list[int]:
    """The frames whose pose is false: off by 5% of the path or 5 degrees in its map, which is that
    of the room where it began; or of what no pose can be known."""
    false = []
    for number in {each.map for each in found}:
        mine = [at for at, each in enumerate(found) if each.map == number and each.pose is not None]
        if mine:
            false += _false_in(mine, shown, found)
    return sorted(false)


def _false_in(mine: list[int], shown: list[Shown], found: list[Found]) -> list[int]:
    """By whichever part of the map's poses most others are right."""
    room = shown[mine[0]].room
    good = [at for at in mine if shown[at].truth is not None and shown[at].room == room]
    never = sorted(set(mine) - set(good))
    if len(good) < SETTLED:
        return mine
    own, true = [found[at].pose for at in good], [shown[at].truth for at in good]
    there = np.array([each.position for each in true])
    path = float(np.linalg.norm(np.diff(there, axis=0), axis=1).sum())
    best = good
    for part in (slice(None), *(slice(at, at + 60) for at in range(0, len(good) - SETTLED, 15))):
        to_truth = same_world(own[part], true[part])
        wrong = []
        for at, pose, truth in zip(good, own, true, strict=True):
            far = float(np.linalg.norm(to_truth.places(pose.position) - truth.position))
            turn = degrees_between(to_truth.pose(pose).rotation, truth.rotation)
            if far > FALSE_SHARE * path or turn > FALSE_DEGREES:
                wrong.append(at)
        best = min(best, wrong, key=len)
    return sorted(best + never)


def same_world(own: list[Pose], true: list[Pose]) -> Similarity:
    """The similarity between two worlds by how cameras are turned and where they are: places alone
    do not say it if they are nearly on a line."""
    turned = sum(b.rotation.T @ a.rotation for a, b in zip(own, true, strict=True))
    u, _, v = np.linalg.svd(turned)
    rotation = u @ v
    a, b = (np.array([each.position for each in poses]) for poses in (own, true))
    a_off, b_off = (a - a.mean(axis=0)) @ rotation.T, b - b.mean(axis=0)
    scale = float((a_off * b_off).sum() / (a_off**2).sum())
    return Similarity(scale, rotation, b.mean(axis=0) - scale * rotation @ a.mean(axis=0))


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--seeds", type=int, default=3)
    ask.add_argument("--only", nargs="*", default=list(MISHAPS))
    given = ask.parse_args()
    frames = wrong = 0
    for name in given.only:
        for seed in range(given.seeds):
            shown = MISHAPS[name](seed)
            found = played(shown)
            false = false_poses(shown, found)
            frames, wrong = frames + len(shown), wrong + len(false)
            tracked = sum(each.pose is not None for each in found)
            spans = f" {false[:3]}..{false[-1]}" if false else ""
            reasons = sorted({each.reason for each in found if each.reason})
            print(
                f"{name:11} seed {seed}: {len(shown)} frames, {tracked} tracked in"
                f" {found[-1].map + 1} maps, {len(false)} false{spans}; {reasons}",
                flush=True,
            )
    print(f"false: {wrong} of {frames} frames, {100 * wrong / frames:.2f}%")


if __name__ == "__main__":
    main()
