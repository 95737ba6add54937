"""Draws models, the shadows on the planes they stand on, and planes that hide them.

Main thread only. What a frame costs is held down in three ways: coarser levels of detail for what
is small, and, when the frames of a run would be late, coarser ones for all and fewer pixels
(`quality`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import moderngl
import numpy as np

from heimdall.render.blending import PREMULTIPLYING
from heimdall.render.content import images
from heimdall.render.content.figure import (
    CORNERS,
    OUTLINE,
    Figure,
    Hider,
    Shadow,
    Solid,
    extent,
    hider,
    key_of,
    shadow_of,
)
from heimdall.render.content.light import Light
from heimdall.render.content.model import TRIANGLES
from heimdall.render.content.placing import NEAR, in_picture, projection, stand
from heimdall.render.content.posing import joint_matrices, shaped
from heimdall.render.content.quality import Quality
from heimdall.render.content.sending import Picture, Sent, SentPart, rows_of
from heimdall.render.layout import Letterbox
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface
from heimdall.render.textures import TextureCache

_DARK = np.array([0.45, 0.33, 0.22])  # of the shadow of a model's low, middle and high parts
_CLOTH = 256  # texels of a texture that an app gives
_STEP = 0.25  # surface pixels; what moves by less stands still
_STILL = np.eye(4)
_SAMPLERS = ["u_picture", "u_room", "u_joints", "u_surface", "u_bumps", "u_shade", "u_glowing"]
_UNITS = {name: unit for unit, name in enumerate(_SAMPLERS)}
_PICTURE, _ROOM, _JOINTS = range(3)


class Figures:
    """Draws figures and hiders, and knows which part of the screen they cover."""

    def __init__(self, surface: Surface, programs: Programs):
        ctx = surface.ctx
        self._surface, self._ctx, self._programs = surface, ctx, programs
        self.quality = Quality(software=surface.software)
        self._white = ctx.texture((1, 1), 4, b"\xff\xff\xff\xff")
        self._cloths: dict[tuple[bool, bool], TextureCache[Picture]] = {}
        self._joints: list[moderngl.Texture] = []
        self._used = 0  # of those, in this frame
        self._painted: dict[int, SentPart] = {}  # by program: the part whose material was set last
        self._outline = ctx.buffer(reserve=OUTLINE * 8, dynamic=True)
        self._corner_rows = ctx.buffer(reserve=CORNERS * 12, dynamic=True)
        self.light: tuple[Light, Picture] | None = None  # there is one once a model is loaded

    @cached_property
    def _ground(self) -> moderngl.VertexArray:
        return self._ctx.vertex_array(self._programs["ground"], [(self._outline, "2f", "in_place")])

    @cached_property
    def _blind(self) -> moderngl.VertexArray:
        return self._ctx.vertex_array(
            self._programs["hide"], [(self._corner_rows, "3f", "in_position")]
        )

    def begin(self) -> None:
        """A new frame."""
        self._used = 0
        self.quality.begin()

    def corners(self, solids: Sequence[Solid], box: Letterbox) -> np.ndarray:
        """The corners of what they and their shadows cover of the surface, (n, 2) pixels."""
        found = [np.zeros((0, 2), np.float32)]
        for solid in solids:
            if isinstance(solid, Figure) and self.light is not None:
                found.append(extent(solid, box, shadow_of(solid, self.light[0])))
        return np.concatenate(found)

    def key(self, solids: Sequence[Solid], box: Letterbox) -> tuple[object, ...]:
        """Equal for what looks the same."""
        key: list[object] = [box, self.quality.scale]
        if self.light is not None:
            key.append(id(self.light[0].room))
            if (seen := self.light[0].estimated) is not None:
                numbers = (*seen.colour, seen.strength, *seen.towards)
                key += [round(24 * number) for number in numbers]
        for solid in solids:
            key += key_of(solid, _STEP / box.zoom)
            if isinstance(solid, Figure):
                caches, cloths = self._cloths.values(), solid.cloths.values()
                key += [sum(cache.version(cloth) for cache in caches) for cloth in cloths]
        return tuple(key)

    def draw(self, figure: Solid, box: Letterbox, target: moderngl.Framebuffer) -> None:
        """Draw a figure: what is opaque, from near to far, then its shadow where that does not hide
        it, then what is seen through, from far to near. Or a hider's depth. Blending is on."""
        if isinstance(figure, Hider):
            self._draw_hider(figure, box, target)
            return
        light = self.light
        assert light is not None
        clip = figure.placing.clip(box)
        level = self._detail(figure, box)
        programs = {id(each.program): each.program for each in figure.sent.parts}
        for program in programs.values():
            self._tell(program, figure, clip, light[0])
        light[1].use(_ROOM)
        through = [part for part in figure.sent.parts if part.material.alpha == "BLEND"]
        solid = [part for part in figure.sent.parts if part.material.alpha != "BLEND"]
        ctx = self._ctx
        ctx.enable(moderngl.DEPTH_TEST)
        for part in sorted(solid, key=lambda each: self._depth(each, figure)):
            self._draw_part(part, figure, level, box)
        ctx.enable(moderngl.BLEND)
        target.depth_mask = False
        shadow = shadow_of(figure, light[0])
        if shadow is not None:
            self._draw_ground(figure, clip, shadow)
        for part in sorted(through, key=lambda each: -self._depth(each, figure)):
            self._draw_part(part, figure, level, box)
        target.depth_mask = True
        ctx.disable(moderngl.DEPTH_TEST)
        ctx.disable(moderngl.CULL_FACE)

    def rehearse(self, sent: Sent) -> Iterator[None]:
        """Draw each part once out of sight, in steps: it is then that drivers compile
        shaders, for each way of blending and kind of target (llvmpipe: 50 to 150 ms each). As it
        is drawn into frames, and into a picture of its own (`heimdall.render.kept`)."""
        surface, ctx = self._surface, self._ctx
        colour, depth = surface.pixels.texture((1, 1)), ctx.depth_renderbuffer((1, 1))
        target = ctx.framebuffer([colour], depth)
        box = Letterbox.fit((1, 1), (1, 1))
        camera, place, scale = in_picture(sent.model, (0.5, 0.5), 0.5, (1, 1))
        where = stand(sent.model, place, camera, scale=scale, yaw=0.0, lift=0.0, ground=True)
        stance = sent.model.skeleton.stance()
        # First what all models share, a plane that hides and a shadow, then each part.
        shares = [replace(sent, parts=parts) for parts in ((), *((each,) for each in sent.parts))]
        solids = (
            hider(None, place, camera),
            *(Figure(share, where, stance, 1.0) for share in shares),
        )
        ways = ((surface.mix, 1.0), (surface.mix, 0.5), (PREMULTIPLYING, 0.5))  # with their opacity
        for (blending, fade), solid in product(ways, solids):
            target.use()
            target.viewport = (0, 0, 1, 1)
            ctx.enable_only(moderngl.BLEND)
            ctx.blend_func = blending
            self.begin()
            shown = replace(solid, fade=fade) if isinstance(solid, Figure) else solid
            self.draw(shown, box, target)
            ctx.finish()
            surface.target.use()
            yield None
        for each in (target, depth, colour):
            each.release()

    def trim(self) -> None:
        """Forget textures of apps that have not been used lately."""
        for cache in self._cloths.values():
            cache.trim()

    def _tell(
        self, program: moderngl.Program, figure: Figure, clip: np.ndarray, light: Light
    ) -> None:
        """What is the same for all parts that a program draws."""
        placing, camera = figure.placing, figure.placing.camera
        assert camera.pose is not None
        tint = light.tint
        _write(
            program,
            u_clip=clip.T,
            u_turn=placing.turn.T,
            u_eye=placing.eye,
            u_scale=placing.scale,
            u_sky=light.room.sky * tint,
            u_key=light.key(placing.upright, camera.pose),
            u_key_colour=light.room.key_colour * tint,
            u_sheen=tint,
            u_fade=figure.fade,
        )

    def _draw_part(self, part: SentPart, figure: Figure, level: int, box: Letterbox) -> None:
        program = part.program
        node = part.part.node
        place = _STILL if node is None else figure.stance.matrices[node]
        _write(program, u_place=place.T)
        if self._painted.get(id(program)) is not part:
            self._paint(part)
        self._bind(part, figure, box)
        if part.part.skin is not None:
            self._write_joints(figure, part.part.skin)
        if part.rows is not None:
            self._write_shapes(part, figure)
        if part.one_sided:
            self._ctx.enable(moderngl.CULL_FACE)
        else:
            self._ctx.disable(moderngl.CULL_FACE)
        if part.material.alpha == "BLEND" or figure.fade < 1:
            self._ctx.enable(moderngl.BLEND)
        else:  # a tenth less for software GL
            self._ctx.disable(moderngl.BLEND)
        mirrored = node is not None and np.linalg.det(place[:3, :3]) < 0
        self._ctx.front_face = "cw" if mirrored else "ccw"
        array = part.arrays[min(level, len(part.arrays) - 1)]
        array.render(part.mode)
        self._ctx.front_face = "ccw"
        self.quality.drew(array.vertices // 3)

    def _paint(self, part: SentPart) -> None:
        """Tell a program of a part's material, and in which units its textures are."""
        material, program = part.material, part.program
        _write(
            program,
            u_base=material.base,
            u_metal=material.metallic,
            u_rough=material.roughness,
            u_lit=0.0 if material.unlit or part.part.mode != TRIANGLES else 1.0,
            u_glow=material.emissive,
            u_cutoff=material.cutoff,
            u_bump=material.bumps,
            u_occlusion=material.occlusion,
        )
        for name, unit in _UNITS.items():
            if name in program:
                program[name] = unit
        self._painted[id(program)] = part

    def _bind(self, part: SentPart, figure: Figure, box: Letterbox) -> None:
        material, pictures = part.material, figure.sent.pictures
        near = self._texels(part, figure, box)
        cloth = figure.cloths.get(material.name)
        if cloth is None and material.name == figure.sent.model.materials[0].name:
            cloth = figure.cloths.get("")
        if "u_picture" not in part.program:
            pass
        elif cloth is not None:
            self._cloth(cloth, part, figure).use(_PICTURE)
        elif material.base_map is not None:
            _use(pictures[material.base_map], _PICTURE, near)
        else:
            self._white.use(_PICTURE)
        for name, number in (
            ("u_surface", material.surface_map),
            ("u_bumps", material.normal_map),
            ("u_shade", material.occlusion_map),
            ("u_glowing", material.emissive_map),
        ):
            if number is not None and name in part.program:
                _use(pictures[number], _UNITS[name], near)

    def _cloth(self, image: np.ndarray, part: SentPart, figure: Figure) -> Picture:
        """An app's picture as a texture that lies as the one that it replaces."""
        number = part.material.base_map
        doubled = (False, False) if number is None else figure.sent.model.textures[number].doubled
        if doubled not in self._cloths:
            self._cloths[doubled] = TextureCache(lambda pixels: self._new_cloth(pixels, doubled))
        return self._cloths[doubled].get(image)

    def _new_cloth(self, image: np.ndarray, doubled: tuple[bool, bool]) -> Picture:
        wrap = [33648 if each else 10497 for each in doubled]
        pixels = images.textured(images.fit(image, _CLOTH), (wrap[0], wrap[1])).levels[0]
        texture = self._ctx.texture(pixels.shape[1::-1], 4, pixels)
        return Picture([texture], texture.size)

    def _texels(self, part: SentPart, figure: Figure, box: Letterbox) -> float:
        """How many pixels of the surface a texture of one texel a side would take a texel."""
        placing, model = figure.placing, figure.sent.model
        metre = placing.camera.fx * box.zoom * placing.scale / max(placing.distance(model), NEAR)
        return part.texels / metre

    def _write_joints(self, figure: Figure, number: int) -> None:
        """Joints for the next draw: each has a texture of its own in a frame, for software GL would
        draw all there is before it changed one."""
        matrices = joint_matrices(figure.sent.model.skins[number], figure.stance)
        rows = np.ascontiguousarray(matrices[:, :3].reshape(1, -1, 4), np.float32)
        if self._used == len(self._joints):
            self._joints.append(self._ctx.texture((1, 1), 4, dtype="f4"))
        texture = self._joints[self._used]
        if texture.width != rows.shape[1]:
            texture.release()
            texture = self._ctx.texture((rows.shape[1], 1), 4, dtype="f4")
            texture.filter = (moderngl.NEAREST, moderngl.NEAREST)
            self._joints[self._used] = texture
        texture.write(rows)
        texture.use(_JOINTS)
        self._used += 1

    def _write_shapes(self, part: SentPart, figure: Figure) -> None:
        own = part.part
        assert part.rows is not None
        weights = figure.stance.weights.get(own.shaped_by or 0, np.zeros(0))
        part.rows.orphan()
        part.rows.write(rows_of(own, *shaped(own, weights), part.program))

    def _draw_ground(self, figure: Figure, clip: np.ndarray, shadow: Shadow) -> None:
        ground = figure.sent.model.ground
        assert ground is not None
        assert figure.sent.ground is not None
        _write(
            self._programs["ground"],
            u_clip=clip.T,
            u_extent=ground.extent,
            u_height=figure.placing.plane,
            u_away=shadow.away,
            u_dark=_DARK * figure.fade * shadow.strength,
        )
        figure.sent.ground.use(0)
        self._outline.orphan()
        self._outline.write(shadow.outline.astype(np.float32))
        self._ctx.disable(moderngl.CULL_FACE)
        self._ground.render(moderngl.TRIANGLE_FAN, vertices=len(shadow.outline))

    def _draw_hider(self, hider: Hider, box: Letterbox, target: moderngl.Framebuffer) -> None:
        assert hider.camera.pose is not None
        before = hider.camera.pose.to_camera(hider.corners)
        self._corner_rows.write(before.astype(np.float32).tobytes())
        _write(self._blind.program, u_clip=projection(hider.camera, box).T)
        target.color_mask = False, False, False, False
        self._ctx.enable(moderngl.DEPTH_TEST)
        self._blind.render(moderngl.TRIANGLE_FAN, vertices=len(before))
        self._ctx.disable(moderngl.DEPTH_TEST)
        target.color_mask = True, True, True, True

    def _detail(self, figure: Figure, box: Letterbox) -> int:
        """Which level of detail: as many triangles as pixels can show."""
        places = extent(figure, box, None)
        low = np.clip(places.min(axis=0), 0, box.surface)
        high = np.clip(places.max(axis=0), 0, box.surface)
        pixels = float(np.prod(high - low))
        self.quality.covers(pixels)
        return self.quality.level(figure.sent.model.triangles, pixels)

    def _depth(self, part: SentPart, figure: Figure) -> float:
        """From the camera to the middle of a part."""
        middle = np.append(part.middle, 1.0)
        if part.part.node is not None:
            middle = figure.stance.matrices[part.part.node] @ middle
        return float((figure.placing.to_camera @ middle)[2])


def _use(picture: Picture, unit: int, texel: float) -> None:
    """Bind a picture, the level of which a texel is about a pixel."""
    side = max(picture.size)
    picture.use(unit, int(np.floor(np.log2(max(texel * side, 1.0)) + 0.25)))


def _write(program: moderngl.Program, **values: Any) -> None:
    """Set those uniforms that the program has."""
    for name, value in values.items():
        if name in program:
            program[name].write(np.ascontiguousarray(value, np.float32))  # type: ignore[union-attr]
