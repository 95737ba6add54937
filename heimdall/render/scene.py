"""One frame: the camera picture and the layers an app draws over it.

An app's calls record layers in order; ``render`` turns them into GL draws. All coordinates are
pixels of the camera picture (x right, y down); line widths and default text sizes follow the
surface, so that a small camera picture on a large screen still gets fine lines.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import moderngl
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import AppError, ConfigError, unknown
from heimdall.models.body import BONES as BONES_33
from heimdall.models.face_mesh import CONTOURS
from heimdall.models.pose import BONES as BONES_17
from heimdall.models.results import Body, Body3D, Detection, FaceMesh, Hand, Mask
from heimdall.render import given, landmarks, planes, shapes
from heimdall.render.backdrop import Behind, backdrop_for
from heimdall.render.content import placing
from heimdall.render.content.figure import Figure, Hider, Solid, animation_of, hider
from heimdall.render.content.figures import Figures
from heimdall.render.content.floor import floor_of
from heimdall.render.content.model import Model
from heimdall.render.content.stock import Stock
from heimdall.render.glyphs import Glyphs
from heimdall.render.kept import Kept
from heimdall.render.layers import (
    Bars,
    Image,
    Layer,
    Occlusion,
    Text,
    Tint,
    in_order,
    merged,
    together,
)
from heimdall.render.layout import Box, Letterbox
from heimdall.render.programs import Programs
from heimdall.render.shapes import Color, Quads
from heimdall.render.surface import Surface
from heimdall.render.textures import TextureCache, mask_textures
from heimdall.tracking import Hit, Plane, World

HAND_BONES = tuple(
    bone
    for finger in range(5)
    for bone in ((0, 4 * finger + 1), *((4 * finger + k, 4 * finger + k + 1) for k in (1, 2, 3)))
)
Points = np.ndarray | Sequence[Sequence[float] | np.ndarray]  # (n, 2) or (n, 3)
_PALETTE = ("#2dd4bf", "#f59e0b", "#60a5fa", "#f472b6", "#a3e635", "#c084fc", "#fb7185", "#facc15")
_PINCHED = 0.35
_SEEN, _VISIBLE = 0.3, 0.5  # score of a joint that is drawn, of 17 and of 33
_TURN = np.linspace(0, 2 * np.pi, 12, endpoint=False)
_CIRCLE = np.stack([np.cos(_TURN), np.sin(_TURN)], axis=1)


class Scene:
    """Layers over the camera picture, drawn to a surface. Main thread only.

    ``camera``: the one that took the picture; while its pose is None, nothing that stands in the
    world is drawn. ``estimates_light``: whether the picture, or a device that says more of it,
    tints and turns the light that models stand in. ``time_s``: seconds of the run at which this
    frame is due, by its frames: the same in each run.
    """

    def __init__(self, surface: Surface):
        self._surface = surface
        ctx = self._ctx = surface.ctx
        self._programs = Programs(ctx)
        self._bars, self._text = (Quads(ctx, self._programs, kind) for kind in ("bars", "glyphs"))
        self._glyphs = Glyphs(ctx)
        self._figures = Figures(surface, self._programs)
        self._stock = Stock(surface, self._programs, self._figures)
        self._kept = Kept(surface, self._programs, self._figures)
        self._masks = mask_textures(ctx)
        self._images = _images(surface)
        self._quads = {
            name: ctx.vertex_array(self._programs[name], []) for name in ("mask", "quad")
        }
        self._backdrop = backdrop_for(surface, self._programs)
        self._sequence: int | None = None
        self.time_s = 0.0  # of the run, when this frame is due
        self.estimates_light = True
        self._told_light = False  # by the device
        # What took the picture, with its pose in the world where that is known.
        self.camera: Camera | None = None
        self.world: World | None = None  # of the app that draws
        self.covered: Sequence[Box] = ()  # places of the surface that words are drawn over
        self._layers: list[Layer] = []
        self._written = 0.0  # how far down texts without a place of their own reach, surface pixels
        self._behind: Behind | None = None
        self._box = Letterbox.fit((1, 1), surface.size)

    def begin(
        self,
        image: np.ndarray,
        sequence: int,
        camera: Camera | None = None,
        time_s: float = 0.0,
    ) -> None:
        """Start a frame over ``image``, BGR uint8 (h, w, 3), that ``camera`` took, at ``time_s`` of
        the run."""
        self.time_s = time_s
        self._layers, self._behind, self.camera, self._written = [], None, camera, 0.0
        self.load(image, sequence)
        device = camera.device if camera is not None and self.estimates_light else None
        self._told_light = device is not None and self._stock.told(device)

    def load(self, image: np.ndarray, sequence: int) -> None:
        """Send a picture to the GPU, unless ``sequence`` is that of the last one or the surface
        has changed. Called before ``begin``, it takes that work out of the frame's time."""
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or not image.size:
            raise ConfigError(
                f"camera picture of shape {image.shape}, {image.dtype}: "
                "the scene draws BGR uint8 of shape (height, width, 3)"
            )
        box = Letterbox.fit((image.shape[1], image.shape[0]), self._surface.size)
        if sequence != self._sequence or box != self._box:
            self._box, self._sequence = box, sequence
            self._backdrop.load(image, box)
            self._stock.see(image, estimate=self.estimates_light and not self._told_light)

    def to_picture(self, x: float, y: float) -> tuple[float, float]:
        """Picture coordinates of a point on the surface, such as the mouse."""
        return self._box.to_picture(x, y)

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the camera picture in pixels."""
        return self._box.picture

    @property
    def free(self) -> Box:
        """The part of the picture, (left, top, right, bottom) in its pixels, that the panel and
        the timeline leave free: what is written there is not covered by them."""
        return self._box.free(self.covered, self._surface.size[1] / 60)

    def hit(self, x: float, y: float) -> Hit | None:
        """What the ray through a pixel of the picture meets first in the app's world: its targets,
        planes and the ground around them. None where it meets nothing, or the camera's pose is
        unknown. ``scene.model(..., at=hit)`` stands there, its front to the camera;
        ``self.world.anchor(hit)`` keeps the place."""
        return self.world.hit(x, y) if self.world is not None else None

    # Layers, in the order in which they are drawn.

    def background(self, image: np.ndarray, mask: Mask) -> None:
        """Show ``image``, RGB uint8 (h, w, 3), stretched over the picture, instead of the camera's
        wherever the mask is unlikely. It lies behind every layer, whenever it is called."""
        given.image(image, "background")
        self._behind = Behind(image, given.mask_values(mask, "background"))

    def boxes(self, detections: Sequence[Detection], color: Color | None = None) -> None:
        """A rounded frame around each detection, with its label and score."""
        pen, size = self._pen, self._text_size(None)
        frames, labels = [], []
        for found in given.several(detections, (Detection,), "boxes"):
            tint = color or _PALETTE[zlib.crc32(found.label.encode()) % len(_PALETTE)]
            left, top, right, bottom = self._box.to_screen(np.reshape(found.box, (2, 2))).ravel()
            corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
            frames.append(shapes.outline(corners, pen, tint))
            caption = f"{found.label} {found.score:.0%}" if found.label else f"{found.score:.0%}"
            line = self._glyphs.line_height(size, bold=True)
            above = top - line - pen if top - line > self._box.top else top + pen
            frames.append(self._plate(caption, left, above, size, tint, bold=True))
            rgb = shapes.rgba(tint)[:3]
            ink = "#101418" if sum(rgb) > 1.2 else "#ffffff"
            labels.append(self._glyphs.rows(caption, left + pen, above, size, ink, bold=True))
        if frames:
            self._layers += [Bars(np.concatenate(frames)), Text(np.concatenate(labels))]

    def mask(self, mask: Mask, color: Color, opacity: float = 0.5) -> None:
        """Tint the picture where the mask is likely."""
        r, g, b, a = shapes.rgba(color)
        self._layers.append(Tint(given.mask_values(mask, "mask"), (r, g, b, a * opacity)))

    def skeleton(
        self, points: Points, bones: Sequence[tuple[int, int]], color: Color = "#2dd4bf"
    ) -> None:
        """Points (n, 2 or more; x and y first) joined by bones, pairs of point numbers."""
        places = self._screen_points(points, "skeleton")
        if not len(places):
            return
        pen = self._pen
        rows = [shapes.discs(places, 1.5 * pen, color)]
        if len(bones):
            pairs = np.asarray(bones)
            rows.insert(0, shapes.lines(places[pairs[:, 0]], places[pairs[:, 1]], pen, color))
        self._layers.append(Bars(np.concatenate(rows)))

    def hands(self, hands: Sequence[Hand]) -> None:
        """Each hand's skeleton; a pinch shows as a bright ring between thumb and index."""
        for hand in given.several(hands, (Hand,), "hands"):
            tint = "#f59e0b" if hand.side == "left" else "#60a5fa"
            self.skeleton(hand.points, HAND_BONES, tint)
            if hand.pinch < _PINCHED:
                tips = self._screen_points(hand.points, "hands")[[4, 8]].mean(axis=0)
                ring = [
                    shapes.discs(tips, 4.5 * self._pen, "#ffffff"),
                    shapes.discs(tips, 3.2 * self._pen, tint),
                ]
                self._layers.append(Bars(np.concatenate(ring)))

    def bodies(self, bodies: Sequence[Body | Body3D], color: Color = "#a3e635") -> None:
        """Each body's skeleton, of the joints that are in sight."""
        for body in given.several(bodies, (Body, Body3D), "bodies"):
            if isinstance(body, Body3D):
                every, seen = BONES_33, body.joints[:, 3] > _VISIBLE
            else:
                every, seen = BONES_17, body.joints[:, 2] > _SEEN
            place = np.cumsum(seen) - 1  # of each joint among those seen
            bones = [(place[a], place[b]) for a, b in every if seen[a] and seen[b]]
            self.skeleton(body.joints[seen], bones, color)

    def faces(self, faces: Sequence[FaceMesh], color: Color = "#e0f2fe") -> None:
        """The lines of each face: its outline, eyes, brows, lips, and both irises."""
        thin, pairs = 0.6 * self._pen, np.array(CONTOURS)
        for face in given.several(faces, (FaceMesh,), "faces"):
            places = self._screen_points(face.points, "faces")
            rows = [shapes.lines(places[pairs[:, 0]], places[pairs[:, 1]], thin, color)]
            for middle, *rim in face.irises[..., :2]:
                radius = np.linalg.norm(rim - middle, axis=1).mean()
                ring = self._screen_points(middle + radius * _CIRCLE, "faces")
                rows.append(shapes.outline(ring, thin, color))
            self._layers.append(Bars(np.concatenate(rows)))

    def polygons(self, polygons: Sequence[Points], color: Color = "#facc15") -> None:
        """Closed outlines through the corners (n, 2) of each polygon."""
        shown = given.listed(polygons, "a list of corners, (n, 2) each,", "polygons")
        places = [self._screen_points(each, "polygons") for each in shown]
        rows = [shapes.outline(each, self._pen, color) for each in places]
        if rows:
            self._layers.append(Bars(np.concatenate(rows)))

    def planes(self, found: Sequence[Plane], color: Color | None = None) -> None:
        """Planes, such as ``self.world.found``, where the camera sees them: the line around what is
        known of each, and a grid that lies on it. Without a ``color`` level ones are green, upright
        ones orange. Nothing is drawn while the camera's pose is unknown."""
        shown = given.several(found, (Plane,), "planes", alike=False)
        if self.camera is not None and self.camera.pose is not None and shown:
            rows = planes.rows(shown, self.camera, self._box, 0.7 * self._pen, color)
            self._layers.append(Bars(rows))

    def landmarks(self) -> None:
        """What the app's world is known by: planes, points of a room's map, the camera's way."""
        world = self.world
        if world is None:
            return
        self.text(landmarks.described(world))
        if self.camera is not None and self.camera.pose is not None:
            self._layers.append(Bars(landmarks.rows(world, self.camera, self._box, self._pen)))

    def text(
        self,
        text: str,
        at: tuple[float, float] | None = None,
        size: float | None = None,
        color: Color = "#ffffff",
        background: Color | None = "#101418b0",
        bold: bool = False,
    ) -> None:
        """Text whose top left corner is ``at``; lines are split at line breaks. Without a place it
        goes to the top left of what panel and timeline leave ``free``, below other such texts.
        ``size`` is the letter height in picture pixels; None reads well on this surface."""
        pixels = self._text_size(size)
        x, y = self._box.to_screen(given.place(self.free[:2] if at is None else at, "text"))
        y += self._written if at is None else 0.0
        for line in given.words(text, "text").split("\n"):
            if background is not None and line:
                self._layers.append(Bars(self._plate(line, x, y, pixels, background, bold)))
            inset = self._pen if background is not None else 0
            self._layers.append(Text(self._glyphs.rows(line, x + inset, y, pixels, color, bold)))
            y += self._glyphs.line_height(pixels, bold)
            self._written += self._glyphs.line_height(pixels, bold) if at is None else 0.0

    def picture(self, image: np.ndarray, corners: Points) -> None:
        """An image, RGB or RGBA uint8 (h, w, 3 or 4), on the quadrilateral ``corners`` (4, 2),
        clockwise from the top left, in perspective. It is sent to the GPU again when the array
        holds something else, as at the end of ``draw``; above a megabyte, some frames later."""
        given.image(image, "picture", channels=(3, 4))
        places = self._screen_points(corners, "picture")
        if places.shape != (4, 2):
            raise AppError(f"picture corners of shape {places.shape}: give four points, (4, 2)")
        clip = (places / self._surface.size * 2 - 1) * (1, -1)
        unit = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
        try:
            homography = cv2.getPerspectiveTransform(unit, clip.astype(np.float32))
        except cv2.error:
            return  # corners on one line: nothing to see
        self._layers.append(Image(image, homography))

    def model(
        self,
        file: str | Path,
        at: object,
        *,
        scale: float = 1.0,
        yaw: float = 0.0,
        lift: float = 0.0,
        width: float | None = None,
        ground: bool = True,
        animation: str | int | None = None,
        time: float | None = None,
        fade: float = 1.0,
        texture: np.ndarray | Mapping[str, np.ndarray] | None = None,
    ) -> Model | None:
        """A 3-D model, .glb, .gltf, .vrm or .obj, or one of the bundled by name, in its true size.

        ``at``: an anchor, or anything else with a `pose`, or a `Pose` from the model's axes (y up)
        to the world; it is drawn where ``camera`` sees that. Or a point of the picture, where no
        pose is known: then ``width`` is how wide it looks, unturned, in picture pixels, and of two
        models that which stands lower in the picture is the nearer one, as on a floor.
        ``scale`` enlarges it, ``yaw`` turns it about its vertical, in degrees, ``lift`` raises it,
        in metres. ``ground``: its lowest point, not its origin, is on the anchor's plane, where its
        shadow falls. ``animation``: which one is played, by name or number, at ``time`` in seconds
        (None: at ``time_s``), over and over. ``fade``: 1 to 0; a model with 0 is loaded and not
        drawn; while the app's world is lost, what stands in it fades by itself. ``texture``: RGB
        uint8 in place of a material's picture, by the material's name, or of the first one's.

        It is loaded beside the frames: None is returned until it is there, then what it has.
        Raises AppError and ModelError for files that cannot be drawn. Docs: docs/do/models3d.md.
        """
        cloths: Mapping[str, np.ndarray] = {}
        if texture is not None:
            cloths = texture if isinstance(texture, Mapping) else {"": texture}
        for image in cloths.values():
            if image is not None:
                given.image(image, "model")
        flat = isinstance(at, tuple | list | np.ndarray)
        if self.world is not None and not flat:
            fade *= self.world.fade
        numbers = (scale, yaw, lift, fade, *([] if width is None else [width]))
        if not np.isfinite(numbers).all() or scale <= 0 or (width is not None and width <= 0):
            raise AppError(
                f"model {file} with scale {scale}, yaw {yaw}, lift {lift}, width {width}, fade "
                f"{fade}: give finite numbers, scale and width above 0"
            )
        point = _point(at, width, file) if flat else None
        sent, lit = self._stock.model(file), self._stock.lit()
        if sent is None or not lit:
            return sent.model if sent else None
        model, camera = sent.model, self.camera
        if point is not None:
            camera, place, size = placing.in_picture(model, *point, self._box.picture)
            scale, lift = scale * size, lift * size
        else:
            place = placing.pose_of(at)
        if camera is None or camera.pose is None or fade <= 0 or getattr(at, "lost", False):
            return model
        played, moment = animation_of(model, animation), ("", 0.0)
        if played is not None:
            when = self.time_s if time is None else time
            moment = (played.name, when % played.seconds if played.seconds > 0 else 0.0)
        names = [material.name for material in model.materials]
        for name in cloths:
            if name and name not in names:
                raise AppError(f"model {file}: {unknown('material', name, names)}")
        floor = None
        if self.world is not None and ground and point is None:
            floor = floor_of(place, self.world.found, scale=scale, yaw=yaw)
        where = placing.stand(model, place, camera, scale=scale, yaw=yaw, lift=lift, ground=ground)
        stance = model.skeleton.stance(played, moment[1])
        self._layers.append(Figure(sent, where, stance, min(fade, 1.0), cloths, moment, floor))
        return model

    @property
    def environment(self) -> str | Path | None:
        """A file with an environment map (.exr, .hdr, .png, .jpg; equirectangular) whose light
        models stand in, tinted by what the camera sees; None: a bright room's."""
        return self._stock.environment

    @environment.setter
    def environment(self, file: str | Path | None) -> None:
        self._stock.environment = file
        if file is not None:
            self._stock.room(file)

    def occlude(self, front: Mask | object) -> None:
        """Show the camera picture in front of this frame's solids: where a mask is likely, or where
        a plane (anything with a `pose`, y up from it, and perhaps a `size` along its x and z in
        metres, or an `outline`) is nearer than they are. Or where one of a list of planes is, such
        as ``self.world.found``: a table's edge hides what lies behind and below it."""
        if isinstance(front, list | tuple) and all(hasattr(each, "pose") for each in front):
            for each in front:
                self.occlude(each)
            return
        if isinstance(front, Mask):
            self._layers.append(Occlusion(given.mask_values(front, "occlude")))
            return
        if not isinstance(front, Pose) and not hasattr(front, "pose"):
            raise given.refused("occlude", "a Mask or a plane", front)
        place = placing.pose_of(front)
        if self.camera is not None and self.camera.pose is not None:
            self._layers.append(hider(front, place, self.camera))

    @property
    def loading(self) -> list[str]:
        """The files of models and environments that were asked for and are not there yet."""
        return self._stock.loading

    def unload(self, file: str | Path) -> None:
        """Forget a model or an environment map: what it takes of memory is free after this frame.
        Without it those that were not drawn for the longest time are forgotten, once there are more
        than 512 MB. A forgotten one is loaded again when it is asked for. Raises AppError for a
        file that is not there, and for the environment."""
        self._stock.unload(file)

    def settle(self) -> bool:
        """Wait until the models that were asked for are loaded; False if they all were."""
        loaded = self._stock.settle()
        if loaded and self._surface.software:
            self._kept.rehearse()
        return loaded

    def end(self) -> None:
        """Load nothing more."""
        self._stock.end()

    def close(self) -> None:
        """``end``, and wait for what is being loaded."""
        self._stock.close()

    def took(self, render_ns: float, interval_ns: float) -> None:
        """What the last frame took of the GPU, and how far frames are apart: where they would be
        late, models are drawn less finely."""
        self._figures.quality.took(render_ns, interval_ns)

    def render(self) -> None:
        """Issue all draws of the frame to the surface's framebuffer."""
        layers = in_order(self._layers)
        pieces = [layer for layer in layers if isinstance(layer, Solid)]
        masks = [layer.values for layer in layers if isinstance(layer, Occlusion)]
        self._figures.begin()
        if pieces and masks:
            corners = self._figures.corners(pieces, self._box)
            self._backdrop.cut(self._box, self._box.extent(corners), masks)
        # Of solids that other layers lie between, the depth must be kept while those are drawn.
        kept = together(layers) and self._keeps(pieces)
        target = self._surface.flat if kept or not pieces else self._surface.framebuffer
        self._surface.target = target
        self._backdrop.draw(target, self._box, self._behind)
        if kept:
            self._kept.show(pieces, self._box)
        elif pieces:
            self._surface.clear_depth()
        target.use()
        target.viewport = (0, 0, *self._surface.size)
        for name in ("bars", "glyphs"):
            self._programs[name]["u_surface"] = self._surface.size
        target.scissor = self._box.gl_box()
        self._ctx.enable_only(moderngl.BLEND)
        self._ctx.blend_func = self._surface.mix
        self._draw_layers(layers, target, kept)
        target.scissor = (0, 0, *self._surface.size)
        for cache in (self._masks, self._images, self._figures, self._glyphs):
            cache.trim()

    def _keeps(self, pieces: Sequence[Solid]) -> bool:
        """True if solids are drawn into a picture of their own: a software GPU's that stand still,
        and those that are drawn with fewer pixels."""
        still = self._surface.software and self._kept.stand_still(pieces, self._box)
        return still or self._figures.quality.scale < 1

    def _draw_layers(
        self, layers: Sequence[Layer], target: moderngl.Framebuffer, kept: bool
    ) -> None:
        cuts = solids = 0
        for layer in merged(layers):
            match layer:
                case Bars(rows):
                    self._bars.draw(rows)
                case Text(rows):
                    self._glyphs.use(0)
                    self._text.draw(rows)
                case Tint(values, color):
                    mask = self._masks.get(values)
                    mask.use(0)
                    target.viewport = self._box.gl_box()
                    target.scissor = self._box.gl_part(mask.extent)
                    self._programs["mask"]["u_color"] = color
                    self._quads["mask"].render(moderngl.TRIANGLE_STRIP, vertices=4)
                    target.viewport = (0, 0, *self._surface.size)
                    target.scissor = self._box.gl_box()
                case Image(pixels, homography):
                    self._images.get(pixels).use(0)
                    self._programs["quad"]["u_homography"] = tuple(homography.T.ravel())
                    self._quads["quad"].render(moderngl.TRIANGLE_FAN, vertices=4)
                case Figure() | Hider() if not kept:
                    solids += 1
                    self._figures.draw(layer, self._box, target)
                case Figure() | Hider() if not solids:  # the first is all of them
                    solids += 1
                    self._kept.draw()
                case Occlusion() if solids:
                    self._backdrop.draw_again(target, cuts)
                    cuts += 1

    # Sizes on the surface.

    @property
    def _pen(self) -> float:
        """Line width in surface pixels."""
        return max(2.0, self._surface.size[1] / 280)

    def _text_size(self, size: float | None) -> int:
        pixels = self._surface.size[1] / 42 if size is None else size * self._box.zoom
        return int(np.clip(round(pixels), 7, 200))

    def _plate(
        self, text: str, x: float, y: float, size: int, color: Color, bold: bool
    ) -> np.ndarray:
        """A panel behind one line of text that starts one pen width right of (x, y)."""
        right = x + self._glyphs.width(text, size, bold) + 2 * self._pen
        line = self._glyphs.line_height(size, bold)
        x, y = round(float(x)), round(float(y))
        return shapes.panel(x, y, right, y + line, 1.2 * self._pen, color)

    def _screen_points(self, points: Points, method: str) -> np.ndarray:
        return self._box.to_screen(given.points(points, method)[:, :2])


def _images(surface: Surface) -> TextureCache[moderngl.Texture]:
    """Textures of (h, w, 3 or 4) uint8, red first, top row first."""
    order = surface.pixels

    def rgba(pixels: np.ndarray) -> np.ndarray:
        with_alpha = pixels.shape[2] == 4
        return order.in_order(pixels if with_alpha else cv2.cvtColor(pixels, cv2.COLOR_RGB2RGBA))

    def rewrite(texture: moderngl.Texture, pixels: np.ndarray) -> bool:
        fits = texture.size == pixels.shape[1::-1]
        if fits:
            order.write(texture, rgba(pixels))
        return fits

    return TextureCache(lambda pixels: order.texture(pixels.shape[1::-1], rgba(pixels)), rewrite)


def _point(at: Any, width: float | None, file: str | Path) -> tuple[tuple[float, float], float]:
    if len(at) != 2 or not np.isfinite(at).all():
        raise AppError(f"model {file} at {at}: give a point of the picture, or a pose")
    if width is None:
        raise AppError(f"model {file} at a point of the picture needs its width, in pixels")
    return (float(at[0]), float(at[1])), width
