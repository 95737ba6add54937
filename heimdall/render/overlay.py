"""What a run shows of itself over the picture: panel, timeline, cards and notices.

Words are laid out five times a second and kept as pictures on the GPU. A frame copies those, the
timeline's with its spans painted in, and draws the columns of the graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import moderngl

from heimdall.render.blending import OVER
from heimdall.render.card import HelpCard, ProgressCard, Toast
from heimdall.render.glyphs import Glyphs
from heimdall.render.panel import Panel, Status
from heimdall.render.plate import Plate, Printer
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface
from heimdall.render.timeline import Span, Strip, Timeline
from heimdall.vocabulary.enums import OverlayView

_REFRESH_S = 0.25


class _Sheets(NamedTuple):
    """What is shown at a time."""

    panel: Panel | None = None
    strip: Strip | None = None
    toast: Toast | None = None
    card: HelpCard | None = None


class Overlay:
    """Draws the status over the picture. Main thread only."""

    def __init__(self, surface: Surface, clock: Callable[[], float] = time.monotonic):
        self._surface, self._clock = surface, clock
        self._programs = Programs(surface.ctx)
        self._glyphs = Glyphs(surface.ctx)
        self._printer = Printer(surface, self._programs, self._glyphs)
        self._plates = {name: Plate(self._printer) for name in _Sheets._fields}
        self._timeline = Timeline()
        self._shown = _Sheets()
        self._unprinted: _Sheets | None = None
        self._laid_out_s = float("-inf")
        self._key: tuple[object, ...] = ()

    def add(self, spans: Sequence[Span], status: Status) -> None:
        """Take new spans of work into the timeline."""
        self._timeline.add(spans, [dnn.name for dnn in status.dnns])

    def lay_out(self, status: Status) -> None:
        """Lay out new words, to be shown once they are printed. That takes longer than to copy
        them (1 ms beside busy threads), so call it a few times a second between frames."""
        self._laid_out_s, self._key = self._clock(), self._looks(status)
        unit, size, glyphs = self._unit(), self._surface.size, self._glyphs
        panel = strip = toast = card = None
        if status.help:
            card = HelpCard(unit, glyphs, size, status.app, status.help)
        elif status.view != OverlayView.OFF:
            panel = Panel(unit, glyphs, status, small=status.view == OverlayView.SMALL)
        if status.view == OverlayView.TIMELINE and not status.help:
            strip = Strip(unit, glyphs, size, status.others)
        if status.notice:
            lift = strip.height if strip else 0
            toast = Toast(unit, glyphs, size, status.notice, lift)
        self._unprinted = _Sheets(panel, strip, toast, card)

    @property
    def covered(self) -> list[tuple[int, int, int, int]]:
        """The places of the surface that panel and timeline take: left, top, right, bottom."""
        sheets = self._unprinted or self._shown
        return [sheet.place for sheet in (sheets.panel, sheets.strip) if sheet is not None]

    def print(self) -> bool:
        """Have the GPU draw what was laid out, and wait for it; False: there was nothing. Call
        it when the GPU has done everything else. It draws one plate at a time: llvmpipe lists what
        draws where, two at once make the list longer, and what is left at its end would have
        every later frame that shows that plate drawn, and waited for, up to there."""
        if self._unprinted is None:
            return False
        self._shown, self._unprinted = self._unprinted, None
        for plate, sheet in zip(self._plates.values(), self._shown, strict=True):
            plate.set(sheet)
            if sheet is not None:
                self._surface.wait()
        self._programs["rects"]["u_surface"] = self._surface.size
        self._glyphs.trim()
        return True

    def outdated(self, status: Status) -> bool:
        """True if other words should be laid out by now."""
        return self._clock() - self._laid_out_s >= _REFRESH_S or self._key != self._looks(status)

    def paint(self, now_ns: int) -> None:
        """Paint the timeline as it is now into its strip. Call it before ``Scene.render``: to write
        to a texture, llvmpipe waits for what has been drawn of a frame."""
        if strip := self._shown.strip:
            lanes = self._timeline.pixels(strip, now_ns)
            self._plates["strip"].write(lanes, strip.left, strip.tops[0])

    def show(self, status: Status) -> None:
        """Draw over what is on the framebuffer, with what has been printed and painted; call after
        ``Scene.render``."""
        self._begin()
        for name in ("panel", "strip"):
            self._plates[name].draw()
        if self._shown.panel:
            self._printer.rects.draw(self._shown.panel.columns(status))
        for name in ("toast", "card"):
            self._plates[name].draw()

    def progress(self, title: str, what: str, share: float) -> None:
        """Draw what is being loaded, and how much of it (0..1) is done."""
        size = self._surface.size
        card = ProgressCard(self._unit(), self._glyphs, size, title, what, share)
        self._key = ()  # what is drawn next is laid out anew
        plate = self._plates["card"]
        plate.set(card)
        self._begin()
        plate.draw()
        plate.set(None)  # the app's first frame is not under it

    def _unit(self) -> float:
        """720 lines are the design size; denser displays and larger windows get larger letters, and
        upright ones, as of phones, not so large that the panel fills their width."""
        width, height = self._surface.size
        return max(min(height / 720, width / 540), 0.75 * self._surface.scale)

    def _looks(self, status: Status) -> tuple[object, ...]:
        """What cannot wait for the next layout."""
        shown = (status.message, status.notice, status.view, bool(status.help))
        return (*shown, self._surface.size, self._surface.scale)

    def _begin(self) -> None:
        ctx, target = self._surface.ctx, self._surface.target
        target.use()
        target.scissor = target.viewport = (0, 0, *self._surface.size)
        ctx.enable_only(moderngl.BLEND)
        ctx.blend_func = OVER
