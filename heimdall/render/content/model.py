"""A 3-D model as arrays that the GPU takes: y up, metres, counter-clockwise from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from heimdall.render.content.images import Texture
from heimdall.render.content.motion import Animation, Skeleton

POINTS, LINES, TRIANGLES = "points", "lines", "triangles"


@dataclass(frozen=True)
class Material:
    """Metallic-roughness, as glTF has it; colours are linear, maps are numbers of textures."""

    name: str = ""
    base: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    metallic: float = 0.0
    roughness: float = 0.9
    emissive: tuple[float, float, float] = (0.0, 0.0, 0.0)
    base_map: int | None = None
    surface_map: int | None = None  # green: roughness, blue: metal
    normal_map: int | None = None
    occlusion_map: int | None = None
    emissive_map: int | None = None
    bumps: float = 1.0  # scale of the normal map
    occlusion: float = 1.0  # strength of the occlusion map
    alpha: str = "OPAQUE"  # or MASK, BLEND
    cutoff: float = 0.5
    double_sided: bool = False
    unlit: bool = False


@dataclass(frozen=True)
class Shape:
    """A morph target: what it adds to positions and normals, (n, 3) float32 each."""

    positions: np.ndarray
    normals: np.ndarray | None


@dataclass(frozen=True)
class DrawCall:
    """What is drawn at once. ``node``: its matrix places it (None: the model's own space);
    ``skin``: its joints do instead."""

    mode: str
    material: int
    positions: np.ndarray  # (n, 3) float32
    normals: np.ndarray  # (n, 3) float32, unit
    uvs: np.ndarray  # (n, 4) float32: of the base colour; of the other maps
    colours: np.ndarray  # (n, 4) uint8, linear
    indices: np.ndarray  # (m,) uint32
    node: int | None = None
    skin: int | None = None
    joints: np.ndarray | None = None  # (n, 4) uint16
    weights: np.ndarray | None = None  # (n, 4) float32, of sum 1
    shapes: tuple[Shape, ...] = ()
    shaped_by: int | None = None  # the node whose weights move the shapes
    coarser: tuple[Coarse, ...] = ()  # from fine to coarse
    closed: bool = False  # its inside cannot be seen
    turning: float = 0.0  # radians, of what neighbouring vertices reflect: see `shading`

    @property
    def triangles(self) -> int:
        """How many it has, all levels of detail apart."""
        return len(self.indices) // 3 if self.mode == TRIANGLES else 0


@dataclass(frozen=True)
class Coarse:
    """A level of detail of a part: which of its vertices are left, and triangles between those."""

    vertices: np.ndarray  # (k,) uint32, of the part's
    indices: np.ndarray  # (m,) uint32, of ``vertices``


@dataclass(frozen=True)
class Skin:
    """Joints (node numbers) and their inverse bind matrices (j, 4, 4) float32."""

    joints: np.ndarray
    inverse_binds: np.ndarray


@dataclass(frozen=True)
class Ground:
    """The shadow on the plane that the model stands on: how much light its low, middle and high
    parts take, (h, w, 3) uint8, over (left, back, right, front) in metres, how high above the
    plane those parts are, and a polygon around the shadow of each, (n, 2) in shares of the
    picture's sides."""

    picture: np.ndarray
    extent: tuple[float, float, float, float]
    heights: tuple[float, float, float]
    outlines: tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that is drawn of one file; ``notes``: what is not."""

    name: str
    parts: tuple[DrawCall, ...]
    materials: tuple[Material, ...]
    textures: tuple[Texture, ...]
    skeleton: Skeleton
    skins: tuple[Skin, ...]
    animations: dict[str, Animation]
    low: np.ndarray  # (3,) corners of the box around it at rest, metres
    high: np.ndarray
    ground: Ground | None
    notes: tuple[str, ...] = field(default=())

    @property
    def triangles(self) -> int:
        """At full detail."""
        return sum(part.triangles for part in self.parts)

    @cached_property
    def nbytes(self) -> int:
        """Of its arrays and textures; the GPU has about as much."""
        found = sum(texture.nbytes for texture in self.textures)
        for part in self.parts:
            arrays = [part.positions, part.normals, part.uvs, part.colours, part.indices]
            arrays += [each for each in (part.joints, part.weights) if each is not None]
            for shape in part.shapes:
                arrays += [each for each in (shape.positions, shape.normals) if each is not None]
            for level in part.coarser:
                arrays += [level.vertices, level.indices]
            found += sum(each.nbytes for each in arrays)
        return found

    @property
    def size(self) -> np.ndarray:
        """Width, height and depth at rest in metres, (3,)."""
        return np.asarray(self.high - self.low)

    @property
    def corners(self) -> np.ndarray:
        """The corners of the box around it at rest, (8, 3)."""
        return box_corners(self.low, self.high)


def box_corners(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The corners of a box, (8, 3)."""
    ends = np.stack([low, high])
    return np.array([[ends[i, 0], ends[j, 1], ends[k, 2]] for i, j, k in np.ndindex(2, 2, 2)])
