"""Draws meshes into the picture: where they stand, how they are lit, the shadow they cast.

The camera is a pinhole with a vertical field of view of 60 degrees that looks down by
``PITCH`` degrees, about what a person holds towards a table or floor. Camera space: x right,
y up, z towards the viewer. With R the rotation of the model (pitch, then yaw) and t the base
centre, a model point p is at R p + t.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import moderngl
import numpy as np

from heimdall.render.layout import Letterbox
from heimdall.render.mesh import Mesh, load, weave
from heimdall.render.programs import Programs
from heimdall.render.textures import TextureCache, smooth

FIELD_OF_VIEW = 60.0
PITCH = 24.0
_NEAR, _FAR = 0.05, 500.0  # metres
_KEY = np.array([-0.45, 0.80, 0.55])  # towards the key light, in the room: left, above, front
_CLOTH = 192  # texels a side: about one a pixel, so that no mipmaps are needed
_WOOD = (82, 60, 44)  # RGB
_TILE, _WEAVE_TILE = 0.62, 0.5  # metres a texture covers: one picture for each cushion
_SHADOW_MARGIN = 0.40  # metres beyond the base


@dataclass(frozen=True)
class Piece:
    """A mesh placed in the picture; positions and lengths are picture pixels, yaw degrees."""

    name: str
    at: tuple[float, float]
    width: float
    yaw: float
    texture: np.ndarray | None
    lift: float


@dataclass(frozen=True)
class Pose:
    """Where a piece is: clip matrix, model-to-camera rotation, base centre, lift in metres."""

    clip: np.ndarray  # (4, 4)
    turn: np.ndarray  # (3, 3)
    base: np.ndarray  # (3,)
    lift: float


def pose(piece: Piece, mesh: Mesh, box: Letterbox) -> Pose:
    """Solve for the base centre on the ray through ``at``, as far away as makes the front of
    the unturned piece, at two thirds of its height, ``width`` pixels wide."""
    width, height = box.picture
    focal = height / 2 / np.tan(np.radians(FIELD_OF_VIEW / 2))
    nearer = _pitch()[2] @ (0, mesh.height * 2 / 3, mesh.half_size[1])
    distance = focal * mesh.width / piece.width + nearer
    x, y = piece.at
    base = distance * np.array([(x - width / 2) / focal, (height / 2 - y) / focal, -1.0])
    turn = _pitch() @ _yaw(piece.yaw)
    lift = piece.lift * distance / focal
    model = np.eye(4)
    model[:3, :3], model[:3, 3] = turn, base + turn[:, 1] * lift
    return Pose(_projection(box, focal) @ model, turn, base, lift)


def _pitch() -> np.ndarray:
    c, s = np.cos(np.radians(PITCH)), np.sin(np.radians(PITCH))
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def _yaw(degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _projection(box: Letterbox, focal: float) -> np.ndarray:
    """Camera space to clip space, so that the picture's centre and scale match the letterbox."""
    across, down = box.surface
    centre_x = box.left + box.zoom * box.picture[0] / 2
    centre_y = box.top + box.zoom * box.picture[1] / 2
    depth = (_FAR + _NEAR) / (_NEAR - _FAR), 2 * _FAR * _NEAR / (_NEAR - _FAR)
    return np.array(
        [
            [2 * box.zoom * focal / across, 0, 1 - 2 * centre_x / across, 0],
            [0, 2 * box.zoom * focal / down, 2 * centre_y / down - 1, 0],
            [0, 0, depth[0], depth[1]],
            [0, 0, -1, 0],
        ]
    )


class Stage:
    """Draws pieces, and knows which part of the screen they cover."""

    def __init__(self, ctx: moderngl.Context, programs: Programs):
        self._ctx = ctx
        self._lit, self._shadow = programs["mesh"], programs["shadow"]
        self._arrays: dict[str, moderngl.VertexArray] = {}
        floor = [(ctx.buffer(_floor_grid()), "2f 2f", "in_side", "in_spread")]
        self._floor = ctx.vertex_array(self._shadow, floor)
        self._cloths = TextureCache(lambda image: _cloth(ctx, image))
        self._weave = _cloth(ctx, weave())
        self._wood = smooth(ctx, np.full((2, 2, 3), _WOOD, np.uint8), 3)

    def corners(self, piece: Piece, box: Letterbox) -> np.ndarray:
        """The corners of the piece and its shadow on the surface, (n, 2) pixels."""
        mesh = load(piece.name)
        return _extent(mesh, pose(piece, mesh, box), box)

    def draw(self, piece: Piece, box: Letterbox, target: moderngl.Framebuffer) -> None:
        """Draw the piece, then its shadow where the piece does not hide it: shading hidden
        pixels would cost a software GPU as much as visible ones."""
        mesh = load(piece.name)
        where = pose(piece, mesh, box)
        self._ctx.enable(moderngl.DEPTH_TEST)
        self._ctx.enable(moderngl.CULL_FACE)
        self._draw_mesh(piece, mesh, where)
        self._ctx.disable(moderngl.CULL_FACE)
        self._draw_shadow(mesh, where, target)
        self._ctx.disable(moderngl.DEPTH_TEST)

    def trim(self) -> None:
        """Forget cloths that have not been used lately."""
        self._cloths.trim()

    def _draw_shadow(self, mesh: Mesh, where: Pose, target: moderngl.Framebuffer) -> None:
        program = self._shadow
        program["u_clip"] = _floor_clip(where)
        program["u_half"] = mesh.half_size
        program["u_margin"] = _SHADOW_MARGIN + where.lift
        program["u_lift"] = where.lift
        target.depth_mask = False
        self._floor.render()
        target.depth_mask = True

    def _draw_mesh(self, piece: Piece, mesh: Mesh, where: Pose) -> None:
        program = self._lit
        program["u_clip"] = _columns(where.clip)
        # Lights stand in the room: turn them into the model's own space instead of every normal.
        program["u_key"] = tuple(_yaw(-piece.yaw) @ (_KEY / np.linalg.norm(_KEY)))
        eye = -where.turn.T @ (where.base + where.turn[:, 1] * where.lift)
        program["u_eye"] = tuple(eye)
        program["u_tile"] = _WEAVE_TILE if piece.texture is None else _TILE
        array, cloth_end = self._array(piece.name, mesh), 3 * mesh.cloth_triangles
        cloth = self._weave if piece.texture is None else self._cloths.get(piece.texture)
        cloth.use(0)
        array.render(vertices=cloth_end)
        self._wood.use(0)
        array.render(first=cloth_end, vertices=array.vertices - cloth_end)

    def _array(self, name: str, mesh: Mesh) -> moderngl.VertexArray:
        if name not in self._arrays:
            columns = (mesh.positions, mesh.normals, mesh.uvs, mesh.openness)
            rows = np.column_stack(columns).astype(np.float32)
            names = ("in_position", "in_normal", "in_uv", "in_openness")
            content = [(self._ctx.buffer(rows), "3f 3f 2f 1f", *names)]
            index = self._ctx.buffer(mesh.triangles)
            self._arrays[name] = self._ctx.vertex_array(self._lit, content, index)
        return self._arrays[name]


def _cloth(ctx: moderngl.Context, image: np.ndarray) -> moderngl.Texture:
    """The image with its mirror images beside and above it: it repeats without seams."""
    small = cv2.resize(image, (_CLOTH, _CLOTH), interpolation=cv2.INTER_AREA)
    row = np.hstack([small, small[:, ::-1]])
    texture = smooth(ctx, np.vstack([row[::-1], row]), 3)  # cloth coordinates go up
    texture.repeat_x = texture.repeat_y = True
    return texture


def _floor_grid() -> np.ndarray:
    """Triangles of the patch under a piece: each vertex is a corner of the base (-1, 0 or 1 each
    way) and how far beyond it, in shares of the shadow's reach. Dense where the shadow fades."""
    spread = np.array([-0.25, 0.0, 0.2, 0.5, 1.0])
    side = np.concatenate([-np.ones(5), [0], np.ones(5)])
    reach = np.concatenate([-spread[::-1], [0], spread])
    lines = np.stack([side, reach], axis=1)
    n = len(lines)
    i, j = (index.ravel() for index in np.mgrid[0 : n - 1, 0 : n - 1])
    cells = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j), (i + 1, j + 1), (i, j + 1)]
    vertices = [
        np.stack([lines[a, 0], lines[b, 0], lines[a, 1], lines[b, 1]], axis=1) for a, b in cells
    ]
    return np.stack(vertices, axis=1).reshape(-1, 4).astype(np.float32)


def _floor_clip(where: Pose) -> tuple[float, ...]:
    """The clip matrix of the supporting plane: the piece's own, lowered by its lift."""
    lower = np.eye(4)
    lower[1, 3] = -where.lift
    return _columns(where.clip @ lower)


def _columns(matrix: np.ndarray) -> tuple[float, ...]:
    return tuple(matrix.T.ravel())  # GL counts by columns


def _extent(mesh: Mesh, where: Pose, box: Letterbox) -> np.ndarray:
    """The screen positions of the corners of mesh and shadow."""
    reach = np.array(mesh.half_size) + _SHADOW_MARGIN + where.lift
    corners = np.array(
        [
            (x * reach[0], y, z * reach[1], 1)
            for x in (-1, 1)
            for y in (-where.lift, mesh.height)
            for z in (-1, 1)
        ]
    )
    clip = corners @ where.clip.T
    if (clip[:, 3] <= _NEAR).any():  # reaches behind the camera: may be anywhere
        return np.array([[0, 0], box.surface], np.float32)
    place = clip[:, :2] / clip[:, 3:]
    return (place * (1, -1) + 1) / 2 * box.surface
