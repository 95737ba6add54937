"""Sends a model to the GPU in small steps, so that none of them makes a frame late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import moderngl
import numpy as np

from heimdall.render.content.images import Texture
from heimdall.render.content.model import POINTS, TRIANGLES, Material, Model, Part
from heimdall.render.programs import Programs

STEP_BYTES = 1 << 18
_MATTE = 0.85  # roughness from which reflections are not drawn: nobody would see them
_FORMATS = {"in_position": "3f", "in_normal": "3f", "in_colour": "4f1", "in_joints": "4f",
            "in_weights": "4f"}  # fmt: skip


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

    part: Part
    material: Material
    arrays: tuple[moderngl.VertexArray, ...]
    program: moderngl.Program
    mode: int
    rows: moderngl.Buffer | None  # those of the finest, where shapes change them
    texels: float  # of a texture a metre, for one of 1 x 1


@dataclass(frozen=True)
class Sent:
    """A model on the GPU."""

    model: Model
    parts: tuple[SentPart, ...]
    pictures: tuple[Picture, ...]
    ground: moderngl.Texture | None


def variant(part: Part, material: Material) -> str:
    """The name of the program that draws it: no more is computed than can be seen."""
    rough = material.roughness > _MATTE and material.metallic == 0
    flat = part.mode != TRIANGLES or material.unlit
    matte = (rough or flat) and not (material.has_maps and not flat)
    words = [
        "MATTE" if matte else "MAPS" if material.has_maps else "",
        "SKIN" if part.skin is not None else "",
        "MASK" if material.alpha == "MASK" else "",
    ]
    return "+".join(["model", *(word for word in words if word)])


def send(
    model: Model, ctx: moderngl.Context, programs: Programs, *, software: bool
) -> Iterator[Sent | None]:
    """Steps of at most ``STEP_BYTES``: None after each, the model after the last."""
    pictures: list[Picture] = []
    for texture in model.textures:
        for step in sent_picture(texture, ctx, software=software):
            if step is not None:
                pictures.append(step)
            yield None
    parts: list[SentPart] = []
    for part in model.parts:
        material = model.materials[part.material]
        program = programs[variant(part, material)]
        yield None
        arrays, rows = [], None
        levels = [(None, part.indices), *((each.vertices, each.indices) for each in part.coarser)]
        if part.shapes:
            levels = levels[:1]
        for chosen, indices in levels:
            content, format_, names = _rows(part, program, chosen)
            buffer = ctx.buffer(reserve=content.nbytes, dynamic=bool(part.shapes))
            flat = content.view(np.uint8).reshape(-1)
            for at in range(0, len(flat), STEP_BYTES):
                buffer.write(flat[at : at + STEP_BYTES], offset=at)
                yield None
            index = ctx.buffer(np.ascontiguousarray(indices))
            arrays.append(ctx.vertex_array(program, [(buffer, format_, *names)], index))
            rows = buffer if rows is None else rows
            yield None
        mode = {POINTS: moderngl.POINTS, TRIANGLES: moderngl.TRIANGLES}.get(
            part.mode, moderngl.LINES
        )
        kept = rows if part.shapes else None
        parts.append(SentPart(part, material, tuple(arrays), program, mode, kept, _density(part)))
    ground = None
    if model.ground is not None:
        side = model.ground.picture.shape[1::-1]
        ground = ctx.texture(side, 3, model.ground.picture, alignment=1)
        ground.repeat_x = ground.repeat_y = False
    yield Sent(model, tuple(parts), tuple(pictures), ground)


def sent_picture(
    texture: Texture, ctx: moderngl.Context, *, software: bool
) -> Iterator[Picture | None]:
    """The same for a picture."""
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
    part: Part, positions: np.ndarray, normals: np.ndarray, program: moderngl.Program
) -> np.ndarray:
    """The finest vertices again, elsewhere."""
    return _packed(part, program, positions, normals, None)[0]


def _rows(
    part: Part, program: moderngl.Program, chosen: np.ndarray | None
) -> tuple[np.ndarray, str, list[str]]:
    return _packed(part, program, part.positions, part.normals, chosen)


def _packed(
    part: Part,
    program: moderngl.Program,
    positions: np.ndarray,
    normals: np.ndarray,
    chosen: np.ndarray | None,
) -> tuple[np.ndarray, str, list[str]]:
    """Vertices side by side as this program takes them: rows, their format, their names."""
    maps = "u_surface" in program
    columns = {
        "in_position": positions.astype(np.float32),
        "in_normal": normals.astype(np.float32),
        "in_uv": (part.uvs if maps else part.uvs[:, :2]).astype(np.float32),
        "in_colour": part.colours,
    }
    if part.joints is not None and part.weights is not None and part.skin is not None:
        columns["in_joints"] = part.joints.astype(np.float32)
        columns["in_weights"] = part.weights
    formats = {**_FORMATS, "in_uv": "4f" if maps else "2f"}
    names = [name for name in columns if name in program]
    raw = [
        np.ascontiguousarray(columns[name] if chosen is None else columns[name][chosen])
        .view(np.uint8)
        .reshape(len(positions) if chosen is None else len(chosen), -1)
        for name in names
    ]
    return np.hstack(raw), " ".join(formats[name] for name in names), names


def _density(part: Part) -> float:
    """How many texels a metre a texture of one texel would have: sides of triangles compared."""
    if part.mode != TRIANGLES or not len(part.indices):
        return 0.0
    corners = part.indices.reshape(-1, 3)[:2000]
    uvs, points = part.uvs[corners][..., :2], part.positions[corners]
    across = np.linalg.norm(uvs[:, 1] - uvs[:, 0], axis=1).sum()
    along = np.linalg.norm(points[:, 1] - points[:, 0], axis=1).sum()
    return float(across / along) if along > 0 else 0.0
