"""Sends a model to the GPU in small steps, so that none of them makes a frame late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import moderngl
import numpy as np

from heimdall.render.content.images import Texture
from heimdall.render.content.model import POINTS, TRIANGLES, DrawCall, Material, Model, box_corners
from heimdall.render.content.shading import variant
from heimdall.render.programs import Programs

STEP_BYTES = 1 << 18
_STEP_VERTICES, _STEP_INDICES = 1 << 12, 1 << 16
_FORMATS = {"in_position": "3f", "in_normal": "3f", "in_uv": "4f", "in_colour": "4f1",
            "in_joints": "4f", "in_weights": "4f"}  # fmt: skip


class Picture:
    """A texture on the GPU. Software GL gets each of its levels as a texture of its own, and the
    one to draw with is chosen for a whole part: making levels takes llvmpipe 28 ms for 1024 x
    1024, in one piece, and choosing them pixel by pixel costs, too."""

    def __init__(self, textures: list[moderngl.Texture], size: tuple[int, int]):
        self._textures = textures
        self.size = size

    def use(self, unit: int, level: int = 0) -> None:
        """Bind it, or a smaller one, where it has those."""
        self._textures[min(max(level, 0), len(self._textures) - 1)].use(unit)

    def release(self) -> None:
        """Free it."""
        for each in self._textures:
            each.release()


@dataclass(frozen=True)
class SentPart:
    """A part on the GPU: an array for each level of detail, from fine to coarse."""

    part: DrawCall
    material: Material
    arrays: tuple[moderngl.VertexArray, ...]
    program: moderngl.Program
    mode: int
    rows: moderngl.Buffer | None  # those of the finest, where shapes change them
    texels: float  # of a texture a metre, for one of 1 x 1
    middle: np.ndarray  # (3,) of its vertices
    corners: np.ndarray  # (8, 3) of the box around them
    reaches: np.ndarray  # (k,) how far each shape moves a vertex along an axis, at most

    @property
    def one_sided(self) -> bool:
        """True if only the outsides of its triangles are seen."""
        closed = self.part.closed and self.material.alpha == "OPAQUE"
        return closed or not self.material.double_sided


@dataclass(frozen=True)
class Sent:
    """A model on the GPU."""

    model: Model
    parts: tuple[SentPart, ...]
    pictures: tuple[Picture, ...]
    ground: moderngl.Texture | None
    buffers: tuple[moderngl.Buffer, ...]  # of its parts

    def release(self) -> None:
        """Free it. No frame that shows it may be drawn afterwards."""
        for part in self.parts:
            for array in part.arrays:
                array.release()
        for buffer in self.buffers:
            buffer.release()
        for picture in self.pictures:
            picture.release()
        if self.ground is not None:
            self.ground.release()


def send(
    model: Model, ctx: moderngl.Context, programs: Programs, *, software: bool
) -> Iterator[Sent | None]:
    """Steps of about ``STEP_BYTES``: None after each, the model after the last."""
    pictures: list[Picture] = []
    for texture in model.textures:
        for step in sent_picture(texture, ctx, software=software):
            if step is not None:
                pictures.append(step)
            yield None
    parts: list[SentPart] = []
    buffers: list[moderngl.Buffer] = []
    for part in model.parts:
        material = model.materials[part.material]
        program = programs[variant(part, material)]
        yield None
        levels = [(None, part.indices), *((each.vertices, each.indices) for each in part.coarser)]
        arrays, kept = [], None
        for chosen, indices in levels[: 1 if part.shapes else None]:
            vertices = np.arange(len(part.positions)) if chosen is None else chosen
            format_, names, width = _layout(part, program)
            buffer = ctx.buffer(reserve=len(vertices) * width, dynamic=bool(part.shapes))
            index = ctx.buffer(reserve=indices.nbytes)
            buffers += [buffer, index]
            for at in range(0, len(vertices), _STEP_VERTICES):
                some = vertices[at : at + _STEP_VERTICES]
                rows = _packed(part, names, part.positions[some], part.normals[some], some)
                buffer.write(rows, offset=at * width)
                yield None
            for at in range(0, len(indices), _STEP_INDICES):
                some = indices[at : at + _STEP_INDICES]
                index.write(np.ascontiguousarray(some), offset=at * indices.itemsize)
                yield None
            arrays.append(ctx.vertex_array(program, [(buffer, format_, *names)], index))
            kept = buffer if part.shapes else None
            yield None
        mode = {POINTS: moderngl.POINTS, TRIANGLES: moderngl.TRIANGLES}.get(
            part.mode, moderngl.LINES
        )
        middle = part.positions.mean(axis=0)
        corners = box_corners(part.positions.min(axis=0), part.positions.max(axis=0))
        reaches = np.array([np.abs(each.positions).max(initial=0) for each in part.shapes])
        parts.append(
            SentPart(
                *(part, material, tuple(arrays), program, mode, kept),
                *(_density(part), middle, corners, reaches),
            )
        )
    ground = None
    if model.ground is not None:
        side = model.ground.picture.shape[1::-1]
        ground = ctx.texture(side, 3, model.ground.picture, alignment=1)
        ground.repeat_x = ground.repeat_y = False
    yield Sent(model, tuple(parts), tuple(pictures), ground, tuple(buffers))


def sent_picture(
    texture: Texture, ctx: moderngl.Context, *, software: bool
) -> Iterator[Picture | None]:
    """Send a picture, in steps."""
    made = []
    levels = texture.levels if software else texture.levels[:1]
    for pixels in levels:
        height, width = pixels.shape[:2]
        found = ctx.texture((width, height), 4)
        rows = max(STEP_BYTES // (4 * width), 1)
        for top in range(0, height, rows):
            band = np.ascontiguousarray(pixels[top : top + rows])
            found.write(band, viewport=(0, top, width, len(band)))
            yield None
        found.repeat_x, found.repeat_y = texture.repeat
        if not texture.smooth:
            found.filter = (moderngl.LINEAR, moderngl.NEAREST)
        if not software and len(texture.levels) > 1:
            found.build_mipmaps()
            magnified = moderngl.LINEAR if texture.smooth else moderngl.NEAREST
            found.filter = (moderngl.LINEAR_MIPMAP_LINEAR, magnified)
        made.append(found)
    size = texture.levels[0].shape[1::-1]
    yield Picture(made, (size[0], size[1]))


def rows_of(
    part: DrawCall, positions: np.ndarray, normals: np.ndarray, program: moderngl.Program
) -> np.ndarray:
    """The finest vertices again, elsewhere."""
    names = _layout(part, program)[1]
    return _packed(part, names, positions, normals, slice(None))


def _layout(part: DrawCall, program: moderngl.Program) -> tuple[str, list[str], int]:
    """How vertices lie as this program takes them: format, names, bytes."""
    skinned = part.skin is not None and part.joints is not None
    names = [
        name
        for name in _FORMATS
        if name in program and (skinned or name not in ("in_joints", "in_weights"))
    ]
    width = sum(int(_FORMATS[name][0]) * (1 if name == "in_colour" else 4) for name in names)
    return " ".join(_FORMATS[name] for name in names), names, width


def _packed(
    part: DrawCall,
    names: list[str],
    positions: np.ndarray,
    normals: np.ndarray,
    chosen: np.ndarray | slice,
) -> np.ndarray:
    """The chosen vertices, which lie at these positions, as rows of bytes."""
    others = {"in_uv": part.uvs, "in_joints": part.joints, "in_weights": part.weights}
    columns = {"in_position": positions, "in_normal": normals, "in_colour": part.colours[chosen]}
    for name, values in others.items():
        if name in names and values is not None:
            columns[name] = values[chosen]
    found = []
    for name in names:
        kind = np.uint8 if name == "in_colour" else np.float32
        column = np.ascontiguousarray(columns[name], kind)
        found.append(column.view(np.uint8).reshape(len(positions), -1))
    return np.hstack(found)


def _density(part: DrawCall) -> float:
    """How many texels a metre a texture of one texel would have: sides of triangles compared."""
    if part.mode != TRIANGLES or not len(part.indices):
        return 0.0
    corners = part.indices.reshape(-1, 3)[:2000]
    uvs, points = part.uvs[corners][..., :2], part.positions[corners]
    across = np.linalg.norm(uvs[:, 1] - uvs[:, 0], axis=1).sum()
    along = np.linalg.norm(points[:, 1] - points[:, 0], axis=1).sum()
    return float(across / along) if along > 0 else 0.0
