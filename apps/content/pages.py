"""Pages and cards as pictures: rendered once by Pillow, then shown by ``Scene.picture``.

``page`` sets a Markdown text (headings, paragraphs, lists, code, pictures) on a sheet of paper;
``card`` makes a small dark label of a few lines, such as a name and a price.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from heimdall.system.paths import ASSETS

if TYPE_CHECKING:
    from markdown_it.token import Token

PAPER, INK, FAINT, ACCENT = "#fbfaf6", "#23262b", "#6b7078", "#0f766e"
_CORNER = 0.03  # corner radius over the page's width


@cache
def font(size: int, bold: bool = False) -> ImageFont.FreeTypeFont:
    """The bundled typeface at ``size`` pixels an em."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(ASSETS / "fonts" / name), size)


@dataclass(frozen=True)
class _Style:
    """How a block is set: sizes in pixels."""

    size: int
    bold: bool = False
    color: str = INK
    indent: int = 0
    bullet: str = ""
    below: int = 8


class _Sheet:
    """Puts blocks under one another until the page is full; what does not fit is left out."""

    def __init__(self, width: int, height: int):
        self.image = Image.new("RGB", (width, height), PAPER)
        self._draw = ImageDraw.Draw(self.image)
        self._margin = width // 13
        self._y = float(self._margin)

    @property
    def _full(self) -> bool:
        return self._y > self.image.height - self._margin

    def paragraph(self, words: Sequence[tuple[str, bool]], style: _Style) -> None:
        """Words with the space before them, each with whether it is bold, broken into lines."""
        left = self._margin + style.indent
        x, line = float(left), round(style.size * 1.38)
        if style.bullet and not self._full:
            face = font(style.size, True)
            mark = (left - face.getlength(style.bullet) - style.size * 0.35, self._y)
            self._draw.text(mark, style.bullet, ACCENT, face)
        for spaced, bold in words:
            face = font(style.size, bold or style.bold)
            word = spaced.lstrip()
            x += face.getlength(" ") if spaced != word and x > left else 0
            wide = face.getlength(word)
            if x > left and x + wide > self.image.width - self._margin:
                x, self._y = float(left), self._y + line
            if self._y + line > self.image.height - self._margin:
                return
            self._draw.text((x, self._y), word, style.color, face)
            x += wide
        self._y += line + style.below

    def rule(self) -> None:
        """A thin line across, under a title."""
        y = self._y - 4
        self._draw.line([(self._margin, y), (self.image.width - self._margin, y)], ACCENT, 2)
        self._y += 8

    def picture(self, picture: Image.Image) -> None:
        """A picture as wide as the text."""
        wide = self.image.width - 2 * self._margin
        small = picture.convert("RGB").resize((wide, round(picture.height * wide / picture.width)))
        if self._y + small.height < self.image.height - self._margin:
            self.image.paste(small, (self._margin, round(self._y)))
            self._y += small.height + 10


def page(
    markdown: str, width: int = 400, height: int = 540, folder: Path | None = None
) -> np.ndarray:
    """The beginning of a Markdown text as a sheet with round corners.

    Returns RGBA uint8 (height, width, 4). Pictures are looked for in ``folder``; a missing one
    is left out.
    """
    sheet, unit = _Sheet(width, height), width / 400
    body = _Style(round(15 * unit), below=round(7 * unit))
    style, depth = body, 0
    for token in _parsed(markdown):
        if token.type == "heading_open":
            first = token.tag == "h1"
            style = _Style(round((25 if first else 18) * unit), True, INK, below=round(8 * unit))
        elif token.type == "heading_close":
            if token.tag == "h1":
                sheet.rule()
            style = body
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
        elif token.type == "list_item_open":
            mark = f"{token.info}{token.markup}" if token.info else "•"
            style = replace(body, indent=round(22 * unit * depth), bullet=mark)
        elif token.type == "list_item_close":
            style = body
        elif token.type in ("fence", "code_block"):
            for line in token.content.splitlines():
                small = replace(body, size=round(13 * unit), color=ACCENT, indent=12, below=0)
                sheet.paragraph([(line, False)], small)
        elif token.type == "inline":
            _inline(token, sheet, style, folder)
    return _cut(sheet.image)


def pictures(markdown: str) -> list[str]:
    """The file names of the pictures in a Markdown text."""
    parts = [part for token in _parsed(markdown) for part in token.children or ()]
    return [str(part.attrs["src"]) for part in parts if part.type == "image"]


def _parsed(markdown: str) -> list[Token]:
    from markdown_it import MarkdownIt  # 62 modules, and most apps have cards only

    return MarkdownIt().parse(markdown)


def _inline(token: Token, sheet: _Sheet, style: _Style, folder: Path | None) -> None:
    words: list[tuple[str, bool]] = []
    bold, gap = False, ""
    for part in token.children or ():
        if part.type in ("strong_open", "strong_close"):
            bold = part.type == "strong_open"
        elif part.type in ("text", "code_inline"):
            strong = bold or part.type == "code_inline"
            words += [(word, strong) for word in re.findall(r"\s*\S+", gap + part.content)]
            gap = part.content[len(part.content.rstrip()) :]
        elif part.type in ("softbreak", "hardbreak"):
            gap = " "
        elif part.type == "image" and folder is not None:
            file = folder / str(part.attrs["src"])
            if file.is_file():
                sheet.picture(Image.open(file))
    if words:
        sheet.paragraph(words, style)


def card(title: str, lines: Sequence[str] = (), price: str = "", width: int = 260) -> np.ndarray:
    """A dark, slightly transparent label, RGBA uint8 (h, width, 4): a bold title, fainter lines,
    and a price in its own colour."""
    unit = width / 260
    rows = [(title, font(round(19 * unit), True), "#ffffff")]
    rows += [(line, font(round(14 * unit)), "#c9d1d9") for line in lines]
    if price:
        rows.append((price, font(round(21 * unit), True), "#5eead4"))
    pad = round(13 * unit)
    heights = [round(face.size * 1.4) for _, face, _ in rows]
    image = Image.new("RGB", (width, sum(heights) + 2 * pad), "#14181d")
    draw, y = ImageDraw.Draw(image), pad
    for (text, face, color), height in zip(rows, heights, strict=True):
        draw.text((pad * 1.4, y), text, color, face)
        y += height
    draw.rectangle([0, 0, round(4 * unit), image.height], "#2dd4bf")
    return _cut(image, opacity=225)


def _cut(image: Image.Image, opacity: int = 255) -> np.ndarray:
    """The picture with round corners, as an array with alpha."""
    width, height = image.size
    radius, smooth = round(_CORNER * width), 4
    shape = Image.new("L", (width * smooth, height * smooth))
    ImageDraw.Draw(shape).rounded_rectangle(
        [0, 0, width * smooth - 1, height * smooth - 1], radius * smooth, fill=opacity
    )
    alpha = shape.resize(image.size, Image.Resampling.BOX)
    return np.dstack([np.asarray(image), np.asarray(alpha)])
