"""Markdown pages and cards as pictures."""

import numpy as np
import pytest
from PIL import Image

from apps.content.pages import card, page, pictures


def ink(sheet, rows=slice(None)):
    """How much of a page is dark."""
    return float((sheet[rows, :, :3].max(axis=2) < 120).mean())


def test_a_page_has_its_size_and_round_corners():
    sheet = page("# Title\n\nText.", 400, 540)
    assert (sheet.shape, sheet.dtype) == ((540, 400, 4), np.uint8)
    assert sheet[0, 0, 3] == 0
    assert (sheet[20:-20, 20:-20, 3] == 255).all()


def test_a_title_is_larger_than_a_paragraph():
    def height(sheet):
        rows = np.flatnonzero((sheet[:100, :, :3].max(axis=2) < 120).any(axis=1))
        return rows[-1] - rows[0]

    assert height(page("# Hg")) > 1.4 * height(page("Hg"))


def test_long_text_is_broken_into_lines_and_cut_at_the_end():
    sheet = page("word " * 2000)
    assert ink(sheet, slice(-25, None)) == 0  # the margin
    assert ink(sheet, slice(-60, -30)) > 0.02
    assert ink(sheet[:, :25]) == ink(sheet[:, -25:]) == 0


@pytest.mark.parametrize("markdown", ["- one\n- two", "1. one\n2. two", "```\ncode\n```", "**b**"])
def test_every_kind_of_block_leaves_ink(markdown):
    assert (page(markdown)[..., :3].min(axis=2) < 150).any()


def test_a_word_is_not_torn_from_the_comma_after_it():
    together = page("**Pyrenees**, where")
    apart = page("**Pyrenees** , where")
    rightmost = [np.flatnonzero((p[..., 0] < 120).any(axis=0))[-1] for p in (together, apart)]
    assert rightmost[0] < rightmost[1]


def test_a_picture_is_shown_and_a_missing_one_left_out(tmp_path):
    Image.new("RGB", (50, 20), "#ff0000").save(tmp_path / "red.png")
    sheet = page("![a](red.png)\n\n![b](none.png)\n\nText", folder=tmp_path)
    red = (sheet[..., 0] > 240) & (sheet[..., 1] < 20)
    assert red.sum() == pytest.approx(340 * 136, rel=0.02)
    assert pictures("![a](red.png) and ![b](none.png)") == ["red.png", "none.png"]


def test_an_empty_text_is_an_empty_page():
    assert ink(page("")) == 0


def test_a_card_grows_with_its_lines_and_is_dark():
    small, large = card("Sofa"), card("Sofa", ("3 seats", "210 cm"), "€ 899")
    assert large.shape[0] > 2 * small.shape[0]
    assert np.median(large[..., :3]) < 40
    assert (large[..., :3].max(axis=2) > 200).any()
    assert 200 < large[..., 3].max() < 255
