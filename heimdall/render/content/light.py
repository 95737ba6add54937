"""The light that models stand in: a room all around, and what the camera's picture says of it.

A `Room` is made of a picture of everything around (equirectangular): its diffuse light as
spherical harmonics (Ramamoorthi and Hanrahan 2001), its reflections as a small map, rougher level
by level. An `Estimate` is made of the camera's picture: colour and strength of the light, and where
the main light is. The second tints and turns the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.device_pose import DeviceLight
from heimdall.capture.pose import Pose
from heimdall.render.content.images import Texture

SIDE = 32  # texels of the map of reflections
LEVELS = 9  # of it, one above the other: its roughness 0, 1/8, .. 1
BRIGHTEST = 4.0  # of a reflection; a map holds the root of its share of that
_NORMAL = 0.80  # luminance that falls on what faces up, of a room that is neither bright nor dark
_LUMA = np.array([0.2126, 0.7152, 0.0722])
_GREY = 0.16  # mean of a picture that is neither bright nor dark, linear
_STRENGTHS = 0.45, 1.5  # the least and the most
_UP, _BEHIND = 0.9, 0.45  # where a main light is that the picture does not tell of: above, behind
_SETTLING = 0.15  # share of a new estimate in the light


@dataclass(frozen=True, eq=False)
class Room:
    """Light from all around. ``sky``: (9, 3) for the polynomials 1, y, z, x, xy, yz, 3zz - 1, xz,
    xx - yy of a normal, irradiance over pi; ``reflections``: octahedral, y up; ``key``: towards
    where it is brightest, and how much of it is a light of its own, linear RGB."""

    sky: np.ndarray
    reflections: Texture
    key: np.ndarray
    key_colour: np.ndarray


@dataclass(frozen=True)
class Estimate:
    """What a camera's picture says of the light: its ``colour`` (RGB, of luminance 1), its
    ``strength`` (1: neither bright nor dark), and ``towards``: the main light, from the camera (x
    right, y down, z into the picture), unit length."""

    colour: tuple[float, float, float]
    strength: float
    towards: tuple[float, float, float]


def estimate(picture: np.ndarray) -> Estimate:
    """The light of a picture, BGR uint8 (h, w, 3). Grey world: what is seen is grey on average, so
    that the mean's colour is half the light's, half the things'. The main light is on the side
    that is brighter, above and behind the camera otherwise. 0.1 ms: it looks at few pixels."""
    height, width = picture.shape[:2]
    few = picture[:: max(height // 36, 1), :: max(width // 64, 1), ::-1].astype(np.float32) / 255
    linear = few * few
    mean = linear.mean(axis=(0, 1)) + 1e-4
    luma = linear @ _LUMA.astype(np.float32)
    tint = np.clip(mean / float(mean @ _LUMA), 0.5, 2.0)
    colour = 0.5 + 0.5 * tint
    colour /= float(colour @ _LUMA)
    strength = float(np.clip(np.sqrt(float(mean @ _LUMA) / _GREY), *_STRENGTHS))
    bright = np.clip(luma - np.quantile(luma, 0.7), 0, None)
    total = float(bright.sum()) + 1e-6
    rows, columns = luma.shape
    x = float((bright.sum(axis=0) * np.linspace(-1, 1, columns)).sum() / total)
    y = float((bright.sum(axis=1) * np.linspace(-1, 1, rows)).sum() / total)
    towards = np.array([1.4 * x, min(0.5 * y, 0.0) - _UP, -_BEHIND])
    towards /= np.linalg.norm(towards)
    return Estimate(tuple(colour.tolist()), strength, tuple(towards.tolist()))


def as_told(light: DeviceLight, camera: Pose) -> Estimate:
    """The light that a device tells of, whose axes ``camera`` leads to the camera from."""
    towards = np.asarray(light.towards)
    falls = np.asarray(light.around) + np.asarray(light.main) * max(float(towards[1]), 0.0) + 1e-4
    luma = float(falls @ _LUMA)
    strength = float(np.clip(luma / _NORMAL, *_STRENGTHS))
    seen = camera.rotation @ towards
    return Estimate(tuple((falls / luma).tolist()), strength, tuple(seen.tolist()))


class Light:
    """A room as the camera's pictures tint it, followed smoothly, or as a device tells of it."""

    def __init__(self, room: Room):
        self.room = room
        self.estimated: Estimate | None = None

    def see(self, picture: np.ndarray) -> None:
        """Look at a camera's picture, BGR uint8."""
        new, old = estimate(picture), self.estimated
        if old is not None:
            towards = _mixed(old.towards, new.towards)
            towards /= np.linalg.norm(towards)
            strength = old.strength + _SETTLING * (new.strength - old.strength)
            colour = _mixed(old.colour, new.colour)
            new = Estimate(tuple(colour.tolist()), strength, tuple(towards.tolist()))
        self.estimated = new

    @property
    def tint(self) -> np.ndarray:
        """By what the room's light is multiplied, RGB."""
        seen = self.estimated
        return np.ones(3) if seen is None else np.array(seen.colour) * seen.strength

    def key(self, upright: np.ndarray, camera: Pose) -> np.ndarray:
        """Towards the main light in a room's space, unit length. ``upright`` (3, 3) turns the
        world so that y is up; ``camera`` leads from the world to the camera."""
        if self.estimated is None:
            return self.room.key
        towards = upright @ (camera.rotation.T @ np.array(self.estimated.towards))
        towards[1] = max(towards[1], 0.35)  # light comes from above, until it is known
        return np.asarray(towards / np.linalg.norm(towards))


def _mixed(old: tuple[float, ...], new: tuple[float, ...]) -> np.ndarray:
    return np.array(old) + _SETTLING * (np.array(new) - np.array(old))


def room(around: np.ndarray, key_colour: np.ndarray | None = None) -> Room:
    """Of an equirectangular picture (h, w, 3), linear RGB: its middle lies at -z, its top up. Its
    strength is made the usual one. With ``key_colour`` its brightest side is a light besides."""
    small = cv2.resize(around.astype(np.float32), (128, 64), interpolation=cv2.INTER_AREA)
    towards, weights = _equirectangular(64, 128)
    small = np.maximum(np.nan_to_num(small, posinf=1e4), 0)
    flat, directions = small.reshape(-1, 3), towards.reshape(-1, 3)
    sky = _harmonics(flat, directions, weights.ravel())
    above = float(np.maximum(_basis(np.array([[0.0, 1, 0]])) @ sky, 1e-6)[0] @ _LUMA)
    scale = _NORMAL / above
    pull = (directions * (weights.ravel() * (flat @ _LUMA))[:, None]).sum(axis=0)
    pull[1] = max(pull[1], 0.3 * float(np.linalg.norm(pull)) + 1e-9)
    return Room(
        sky=(sky * scale).astype(np.float32),
        reflections=_reflections(small * scale),
        key=pull / np.linalg.norm(pull),
        key_colour=np.zeros(3) if key_colour is None else key_colour,
    )


def usual_room() -> Room:
    """A bright ceiling with a window's width of light, warm ground: what stands for a room that
    was not photographed."""
    towards, _ = _equirectangular(64, 128)
    height = towards[..., 1:2] * 0.5 + 0.5
    sky, ground = np.array([0.66, 0.72, 0.80]), np.array([0.30, 0.26, 0.22])
    around = ground + (sky - ground) * height
    window = np.clip(towards @ np.array([-0.42, 0.75, 0.51]) * 6 - 4.6, 0, 1)
    around = around + window[..., None] * np.array([2.6, 2.5, 2.3])
    return room(around, key_colour=np.array([0.80, 0.74, 0.65]))


def _equirectangular(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions (rows, columns, 3) of such a picture's pixels, and their solid angles."""
    down = (np.arange(rows) + 0.5) / rows * np.pi
    turn = ((np.arange(columns) + 0.5) / columns - 0.5) * 2 * np.pi
    y, ring = np.cos(down)[:, None], np.sin(down)[:, None]
    x, z = ring * np.sin(turn), -ring * np.cos(turn)
    towards = np.stack([x, np.broadcast_to(y, x.shape), z], axis=-1)
    weights = np.broadcast_to(ring, x.shape) * (np.pi / rows) * (2 * np.pi / columns)
    return towards, weights


def _basis(n: np.ndarray) -> np.ndarray:
    x, y, z = n.T
    flat = np.ones_like(x)
    return np.stack([flat, y, z, x, x * y, y * z, 3 * z * z - 1, x * z, x * x - y * y], axis=1)


def _harmonics(light: np.ndarray, towards: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients (9, 3) of irradiance over pi for the polynomials of `_basis`."""
    norms = np.array([0.282095, *[0.488603] * 3, 1.092548, 1.092548, 0.315392, 1.092548, 0.546274])
    shares = np.array([1.0, *[2 / 3] * 3, *[1 / 4] * 5])
    sums = (_basis(towards) * weights[:, None]).T @ light
    return np.asarray(sums * (norms**2 * shares)[:, None])


def _octahedral(side: int) -> np.ndarray:
    """Directions (side, side, 3) of an octahedral map's texels, y up; the outer ones lie on its
    edge, so that looking up needs no care for what is beyond."""
    at = np.linspace(-1, 1, side)
    x, z = np.meshgrid(at, at)
    y = 1 - np.abs(x) - np.abs(z)
    below = y < 0
    fold = np.where(x < 0, -1, 1) * (1 - np.abs(z)), np.where(z < 0, -1, 1) * (1 - np.abs(x))
    towards = np.stack([np.where(below, fold[0], x), y, np.where(below, fold[1], z)], axis=-1)
    return np.asarray(towards / np.linalg.norm(towards, axis=-1, keepdims=True))


def _reflections(around: np.ndarray) -> Texture:
    """A map for each roughness, blurred as a surface that rough reflects, one above the other:
    real levels of a texture would cost a software GPU more to make and to look up."""
    coarse = cv2.resize(around, (48, 24), interpolation=cv2.INTER_AREA).reshape(-1, 3)
    towards, weights = _equirectangular(24, 48)
    flat, weight = towards.reshape(-1, 3), weights.ravel()
    seen = _octahedral(SIDE)
    maps = [_looked_up(around, seen)]
    cosines = np.log(np.maximum(seen.reshape(-1, 3) @ flat.T, 1e-9)).astype(np.float32)
    light = np.column_stack([coarse, np.ones(len(coarse))]) * weight[:, None]
    for level in range(1, LEVELS):
        rough = max(level / (LEVELS - 1), 0.2)  # as fine as the coarse picture
        sharp = 2 / rough**4 - 2  # the lobe of a surface that rough, as a power of a cosine
        sums = np.exp(np.float32(max(sharp, 1.0)) * cosines) @ light.astype(np.float32)
        maps.append((sums[:, :3] / (sums[:, 3:] + 1e-12)).reshape(seen.shape))
    root = np.sqrt(np.clip(np.concatenate(maps) / BRIGHTEST, 0, 1))
    rgba = np.full((*root.shape[:2], 4), 255, np.uint8)
    rgba[..., :3] = np.rint(root * 255)
    return Texture((rgba,), repeat=(False, False))


def _looked_up(around: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """An equirectangular picture in directions (..., 3)."""
    rows, columns = around.shape[:2]
    x, y, z = np.moveaxis(towards, -1, 0)
    right = (np.arctan2(x, -z) / (2 * np.pi) + 0.5) * columns - 0.5
    down = np.arccos(np.clip(y, -1, 1)) / np.pi * rows - 0.5
    return np.asarray(
        cv2.remap(
            around,
            right.astype(np.float32),
            down.astype(np.float32),
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_WRAP,
        )
    )
