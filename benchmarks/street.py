"""A street that is drawn, so that everybody's place is known: persons and vehicles who move by
themselves, pass in front of one another, and are seen by a camera in a hand.

``Street(seed)`` is always the same one. ``shot(index)`` is a picture with the truth about it;
``found(truth)`` is what a network could have made of it: boxes a little off, now and then one
missing, and none of whom somebody else hides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.models.results import Detection

SIZE = (640, 360)  # of the pictures
FPS = 30.0
PERSON, VEHICLE = (48, 128), (160, 72)  # pixels of a sprite
HEIGHTS = {"person": (0.25, 0.5), "vehicle": (0.16, 0.3)}  # of the picture
SPEEDS = {"person": (0.4, 1.0), "vehicle": (0.4, 1.0)}  # heights and lengths a second
CAMERA_S = (2.9, 3.7, 5.3)  # periods of the hand: across, down, roll and zoom
ROLL, ZOOM, SWAY = 0.03, 0.05, (50.0, 15.0)  # radians, share, pixels
NOISE = 3.0  # standard deviation of a pixel
SEEN = 0.4  # of a thing that must be visible to be found
OFF = 0.03  # standard deviation of a found box's edges, in its sides
OVERLOOKED = 0.05  # probability that a network misses a thing


@dataclass(frozen=True)
class Seen:
    """Where somebody is in a picture: who, what, the box, and which share of it is not hidden."""

    who: int
    label: str
    box: tuple[float, float, float, float]
    share: float


@dataclass(frozen=True)
class _Actor:
    label: str
    sprite: np.ndarray  # (h, w, 4)
    height: float
    base: float  # y of its feet in the world; who stands lower is in front
    middle: float  # x at the time of `meeting`
    meeting_s: float
    speed: float  # pixels a second
    rhythm: float  # its pace and its speed vary by this


class Street:
    """``crossings`` pairs of persons who meet in mid-picture, others who walk alone, vehicles."""

    def __init__(
        self, seed: int, *, seconds: float = 8.0, crossings: int = 2, camera: bool = True
    ) -> None:
        self._draw = np.random.default_rng(seed)
        self._camera, self.count = camera, round(seconds * FPS)
        self._phase = self._draw.uniform(0, 2 * math.pi, 3)
        self._ground = self._scenery()
        shape = (8, SIZE[1], SIZE[0], 3)
        self._noise = (NOISE * self._draw.standard_normal(shape, np.float32)).astype(np.int16)
        actors = [
            self._actor("person", meeting, side)
            for meeting in np.linspace(0.3, 0.7, crossings) * seconds
            for side in (-1, 1)
        ]
        times = self._draw.uniform(0.1, 0.9, 4) * seconds
        actors += [
            self._actor(label, when, self._draw.choice((-1, 1)))
            for label, when in zip(("person", "person", "vehicle", "vehicle"), times, strict=True)
        ]
        self._actors = sorted(actors, key=lambda each: each.base)

    def shot(self, index: int) -> tuple[np.ndarray, list[Seen]]:
        """Picture ``index`` (h, w, 3), BGR uint8, and who is in it."""
        time_s = index / FPS
        view = self._view(time_s)
        picture = cv2.warpAffine(self._ground, view, SIZE, flags=cv2.INTER_AREA)
        owner = np.full(SIZE[::-1], -1, np.int16)
        boxes: dict[int, tuple[tuple[int, int, int, int], int]] = {}
        for who, actor in enumerate(self._actors):
            solid = _pasted(picture, _posed(actor, time_s), view @ _placed(actor, time_s))
            left, top, wide, high = cv2.boundingRect(solid.astype(np.uint8))
            if wide > 3 and high > 3:
                boxes[who] = (left, top, left + wide, top + high), int(solid.sum())
            owner[solid] = who
        picture = cv2.GaussianBlur(picture, (0, 0), 0.7)
        noisy = cv2.add(picture, self._noise[index % len(self._noise)], dtype=cv2.CV_8U)
        return noisy, [
            Seen(who, self._actors[who].label, box, np.count_nonzero(owner == who) / area)
            for who, (box, area) in boxes.items()
        ]

    def found(self, truth: list[Seen]) -> list[Detection]:
        """What a network might find."""
        found = []
        for each in visible(truth):
            if self._draw.random() < OVERLOOKED:
                continue
            box = np.array(each.box, float)
            box += self._draw.normal(0, OFF, 4) * np.tile(box[2:] - box[:2], 2)
            found.append(Detection(each.label, 0.9, tuple(box.tolist())))
        return found

    def _view(self, time_s: float) -> np.ndarray:
        """The affine transform (2, 3) from the world to the picture."""
        sway = np.sin(2 * math.pi * time_s / np.array(CAMERA_S) + self._phase) * self._camera
        turn, zoom = ROLL * sway[2], 1 + ZOOM * sway[2]
        cos, sin = zoom * math.cos(turn), zoom * math.sin(turn)
        matrix = np.array([[cos, -sin], [sin, cos]])
        middle = np.array(self._ground.shape[1::-1]) / 2 + sway[:2] * SWAY
        return np.column_stack([matrix, np.array(SIZE) / 2 - matrix @ middle])

    def _scenery(self) -> np.ndarray:
        """A wall of grain, windows and posters, larger than a picture."""
        shape = (SIZE[1] + 160, SIZE[0] + 240, 3)
        picture = np.full(shape, self._draw.uniform(90, 150, 3), np.float32)
        for sigma, strength in ((2, 10), (8, 14), (40, 25)):
            grain = cv2.GaussianBlur(self._draw.standard_normal(shape), (0, 0), sigma)
            picture += (strength * grain / grain.std()).astype(np.float32)
        for _ in range(40):
            left, top = self._draw.integers(0, shape[1::-1]).tolist()
            wide, high = self._draw.integers(10, 90, 2).tolist()
            color = self._draw.uniform(20, 230, 3).tolist()
            thick = int(self._draw.choice((-1, 2, 4)))
            cv2.rectangle(picture, (left, top), (left + wide, top + high), color, thick)
        return np.clip(picture, 0, 255).astype(np.uint8)

    def _actor(self, label: str, meeting_s: float, side: int) -> _Actor:
        draw = self._draw
        height = draw.uniform(*HEIGHTS[label]) * SIZE[1]
        sprite = _person(draw) if label == "person" else _vehicle(draw)
        length = height if label == "person" else height * VEHICLE[0] / VEHICLE[1]
        world = self._ground.shape
        return _Actor(
            label,
            sprite,
            height,
            base=world[0] / 2 + SIZE[1] * draw.uniform(0.1, 0.4),
            middle=world[1] / 2 + SIZE[0] * draw.uniform(-0.2, 0.2),
            meeting_s=meeting_s,
            speed=side * length * draw.uniform(*SPEEDS[label]),
            rhythm=draw.uniform(0.8, 1.2),
        )


def visible(truth: list[Seen]) -> list[Seen]:
    """Of whom enough is to be seen that a network would find them."""
    return [each for each in truth if each.share >= SEEN]


def _placed(actor: _Actor, time_s: float) -> np.ndarray:
    """The affine transform (3, 3) from the sprite to the world."""
    since = time_s - actor.meeting_s
    # People walk at different speeds, a quarter more or less, over some seconds.
    way = actor.speed * (since + 0.25 * math.sin(actor.rhythm * 2 * since) / (2 * actor.rhythm))
    high, wide = actor.sprite.shape[:2]
    zoom = actor.height / high
    flip = math.copysign(1.0, actor.speed)
    x = actor.middle + way - flip * zoom * wide / 2
    return np.array([[flip * zoom, 0, x], [0, zoom, actor.base - actor.height], [0, 0, 1]])


def _posed(actor: _Actor, time_s: float) -> np.ndarray:
    """The sprite as it looks now: legs swing."""
    if actor.label == "vehicle":
        return actor.sprite
    sprite = actor.sprite.copy()
    swing = math.sin(2 * math.pi * 0.9 * actor.rhythm * time_s)
    hips = np.array([PERSON[0] / 2, 72])
    for side in (-1, 1):
        foot = (PERSON[0] / 2 + side * swing * 17, PERSON[1] - 3)
        color = (*(actor.sprite[70, PERSON[0] // 2, :3] * (0.7 + 0.1 * side)).tolist(), 255)
        ends = np.array([hips, foot]).round().astype(int).tolist()
        cv2.line(sprite, ends[0], ends[1], color, 11)
    return sprite


def _pasted(picture: np.ndarray, sprite: np.ndarray, view: np.ndarray) -> np.ndarray:
    """Draw ``sprite`` over ``picture``; where it is solid (h, w)."""
    layer = cv2.warpAffine(sprite, view, SIZE, flags=cv2.INTER_LINEAR)
    solid = cv2.inRange(layer, (0, 0, 0, 128), (255, 255, 255, 255))
    cv2.copyTo(layer[..., :3], solid, picture)
    return solid > 0


def _cloth(draw: np.random.Generator, wide: int, high: int) -> np.ndarray:
    """Something to wear: plain, or with a pattern, as it comes."""
    color, strength = draw.uniform(20, 230, 3), draw.choice((4, 15, 40))
    pattern = cv2.GaussianBlur(draw.standard_normal((high, wide)), (0, 0), draw.uniform(1.5, 4))
    cloth = color + strength * (pattern / pattern.std())[..., None]
    if draw.random() < 0.3:
        cloth[:: int(draw.integers(6, 12))] *= 0.5
    return np.clip(cloth, 0, 255)


def _person(draw: np.random.Generator) -> np.ndarray:
    wide, high = PERSON
    sprite = np.zeros((high, wide, 4), np.uint8)
    skin = (*draw.uniform((60, 90, 120), (170, 190, 230)).tolist(), 255)
    hair = (*draw.uniform(10, 90, 3).tolist(), 255)
    sprite[22:80, 10:38, :3], sprite[22:80, 10:38, 3] = _cloth(draw, 28, 58), 255
    sprite[26:66, 6:10] = sprite[26:66, 38:42] = skin
    cv2.ellipse(sprite, (24, 12), (9, 12), 0, 0, 360, skin, -1)
    cv2.ellipse(sprite, (21, 8), (9, 8), 0, 0, 360, hair, -1)
    cv2.circle(sprite, (30, 12), 2, (20, 20, 20, 255), -1)
    return sprite


def _vehicle(draw: np.random.Generator) -> np.ndarray:
    wide, high = VEHICLE
    sprite = np.zeros((high, wide, 4), np.uint8)
    paint = (*draw.uniform(30, 220, 3).tolist(), 255)
    glass = (*draw.uniform(120, 220, 3).tolist(), 255)
    body = np.array(
        [[0, 62], [4, 32], [36, 28], [56, 2], [120, 2], [138, 28], [160, 36], [160, 62]]
    )
    cv2.fillPoly(sprite, [body], paint)
    for left, right in ((60, 84), (90, 118)):
        cv2.rectangle(sprite, (left, 8), (right, 27), glass, -1)
    cv2.line(sprite, (87, 8), (87, 60), (30, 30, 30, 255), 2)
    cv2.rectangle(sprite, (150, 38), (158, 46), (180, 240, 250, 255), -1)
    for x in (34, 126):
        cv2.circle(sprite, (x, 58), 13, (20, 20, 20, 255), -1)
        cv2.circle(sprite, (x, 58), 6, (150, 150, 150, 255), -1)
    return sprite
