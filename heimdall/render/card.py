"""Cards in the middle of the picture: which key does what, and how far loading has come."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.render.glyphs import Glyphs
from heimdall.render.sheet import DIM, GOOD, INK, TRACK, Sheet

_GROUND = "#0b0e13e6"


class HelpCard(Sheet):
    """Keys and gestures, and what they do, in two columns; a blank row is a gap."""

    def __init__(
        self,
        unit: float,
        glyphs: Glyphs,
        surface: tuple[int, int],
        title: str,
        rows: Sequence[tuple[str, str]],
    ):
        # As large as the surface allows: a card that is cut off is of no use.
        tall = 58 + 19 * len(rows)
        super().__init__(min(unit, surface[1] / (tall + 16), surface[0] / 400), glyphs)
        keys = max((self.width(key, 12, bold=True) for key, _ in rows), default=0)
        says = max((self.width(text, 12) for _, text in rows), default=0)
        width = max(keys + says + self.px(58), self.width(title, 16, bold=True) + self.px(40))
        left, top = (surface[0] - width) // 2, (surface[1] - self.px(tall)) // 2
        self.put(title, left + self.px(20), top + self.px(14), 16, INK, bold=True)
        y = top + self.px(44)
        for key, text in rows:
            self.put(key, left + self.px(20), y, 12, GOOD, bold=True)
            self.put(text, left + self.px(38) + keys, y, 12, INK)
            y += self.px(19)
        self.ground(left, top, left + width, y + self.px(14), _GROUND)


class ProgressCard(Sheet):
    """What is being done before the first frame, and a bar: ``share`` of it is done, 0..1."""

    def __init__(
        self,
        unit: float,
        glyphs: Glyphs,
        surface: tuple[int, int],
        title: str,
        what: str,
        share: float,
    ):
        super().__init__(min(unit, surface[0] / 400), glyphs)
        width, height = self.px(340), self.px(88)
        left, top = (surface[0] - width) // 2, (surface[1] - height) // 2
        start, end = left + self.px(20), left + width - self.px(20)
        room = end - start
        self.put(self.fitted(title, 16, room), start, top + self.px(14), 16, INK, bold=True)
        self.put(self.fitted(what, 12, room), start, top + self.px(42), 12, DIM)
        bar, done = top + self.px(66), start + round(room * min(max(share, 0.0), 1.0))
        self.box(start, bar, done, bar + self.px(5), GOOD)
        self.box(done, bar, end, bar + self.px(5), TRACK)
        self.ground(left, top, left + width, top + height, _GROUND)


class Toast(Sheet):
    """One line at the bottom, for a few seconds."""

    def __init__(
        self, unit: float, glyphs: Glyphs, surface: tuple[int, int], text: str, above: int
    ):
        super().__init__(unit, glyphs)
        text = self.fitted(text, 13, surface[0] - self.px(64))
        width, height = self.width(text, 13) + self.px(28), self.px(27)
        left, top = (surface[0] - width) // 2, surface[1] - above - self.px(14) - height
        self.put(text, left + self.px(14), top + self.px(5), 13, INK)
        self.ground(left, top, left + width, top + height, _GROUND)
