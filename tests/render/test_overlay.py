"""The overlay's pixels, and when it lays out its text again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from heimdall.render import DnnStatus, Overlay, Scene, Status
from heimdall.render.card import HelpCard, Toast
from heimdall.render.glyphs import Glyphs
from heimdall.render.panel import COLORS, Panel
from heimdall.render.shapes import rgba
from heimdall.render.timeline import Span, Strip

DETECT = DnnStatus("detect", 412.0, 1000.0, "gpu", 2.1, 300.0, 0, True)
STATUS = Status(
    app="shopping",
    fps=29.9,
    fps_target=30,
    frame_ms=[33.3] * 60,
    late_frames=0,
    scheduler="max-total",
    mode="elastic",
    device="software GPU",
    dnns=(DETECT,),
    gap_utilization=0.93,
    reason="detect: lowest utility",
)


EVERY_VIEW = ("panel", "timeline", "small", "off")  # "world": test_landmarks
NOW_NS = 5_000_000_000


def drawn(surface, status=STATUS, grey=128, overlay=None):
    """The picture as numbers, after one frame."""
    scene = Scene(surface)
    scene.begin(np.full((*surface.size[::-1], 3), grey, np.uint8), 0)
    scene.render()
    overlay = overlay or Overlay(surface)
    if overlay.outdated(status):
        overlay.lay_out(status)
        overlay.print()
    overlay.paint(status.now_ns)
    overlay.show(status)
    return surface.read().astype(int)


@pytest.mark.parametrize("grey", [0, 128, 255])
def test_text_is_readable_on_any_picture(surface, grey):
    picture = drawn(surface, grey=grey)
    panel = picture[10:90, 12:150]
    assert panel.mean() < 110  # dark ground
    assert (panel.min(axis=-1) > 190).sum() > 20  # light letters
    assert (picture[:, 270:] == grey).all()  # a corner, not the screen


def test_the_frame_rate_is_green_on_target_and_red_below(headless):
    def hue(fps):
        picture = drawn(headless, replace(STATUS, fps=fps))[8:28, 10:60]
        letters = picture[picture.max(axis=-1) > 150]
        return letters.mean(axis=0).argmax()

    assert hue(29.9) == 1
    assert hue(15.0) == 0


def test_a_missed_frame_stands_out_in_the_graph(headless):
    def red(frames):
        picture = drawn(headless, replace(STATUS, frame_ms=frames, dnns=()))
        return ((picture[..., 0] > 180) & (picture[..., 1] < 140)).sum()

    assert red([33.3] * 60) == 0
    assert red([33.3] * 50 + [80.0] * 10) > 20


def test_the_processor_shows_by_its_colour(headless):
    on_gpu = drawn(headless)
    on_cpu = drawn(headless, replace(STATUS, dnns=(replace(DETECT, processor="cpu"),)))
    assert (on_gpu != on_cpu).any()


def test_the_exit_that_made_a_result_stands_behind_its_age(headless):
    plain = drawn(headless)
    early = drawn(headless, replace(STATUS, dnns=(replace(DETECT, exit="exit2"),)))
    changed = np.argwhere((plain != early).any(axis=2))
    assert len(changed) > 20  # letters
    assert np.ptp(changed[:, 0]) < 14  # of one line
    assert changed[:, 1].min() > 90  # behind "on GPU, 2.1 results/s"


def test_before_the_first_result_and_frame_the_panel_has_its_bars_still_empty(headless):
    def filled(picture):
        """Lines of the picture with a long green stretch: the graph, and the latency's bar."""
        return ((picture[..., 1] > 150) & (picture[..., 0] < 100)).sum(axis=1) > 60

    waiting = replace(DETECT, latency_ms=None, age_ms=None, active=False)
    begun = replace(STATUS, frame_ms=[], dnns=(waiting,), gap_utilization=None)
    before, after = drawn(headless, begun), drawn(headless, STATUS)
    assert not filled(before).any()
    assert filled(after).sum() > 5
    assert ((before != 128).any(axis=-1) == (after != 128).any(axis=-1)).all()  # one size


def test_no_letter_is_smaller_than_12_pixels_at_720_lines(headless):
    glyphs = Glyphs(headless.ctx)
    sizes: set[int] = set()

    class Sized:
        """Notes the sizes that are asked for."""

        def __getattr__(self, name):
            method = getattr(glyphs, name)

            def noted(*args):
                sizes.update(each for each in args if type(each) is int)
                return method(*args)

            return noted

    late = replace(DETECT, misses=3, exit="exit2")
    full = replace(STATUS, dnns=(late,), message="oops", picture_age_ms=20.0)
    sized: Any = Sized()
    Panel(1.0, sized, full, small=False)
    Strip(1.0, sized, (1280, 720))
    HelpCard(1.0, sized, (1280, 720), "app", [("a", "does it")])
    Toast(1.0, sized, (1280, 720), "saved", 0)
    assert min(sizes) >= 12


def test_the_panel_keeps_its_size_whatever_it_says(headless):
    def size(**changes):
        return Panel(1.0, Glyphs(headless.ctx), replace(STATUS, **changes), small=False).place

    assert size(reason="") == size(reason="because of this and that " * 9)
    assert size() == size(dnns=(replace(DETECT, misses=1234, exit="exit12", age_ms=1e5),))


def test_an_error_message_shows_at_once_in_red(headless):
    overlay = Overlay(headless, clock=lambda: 0.0)
    calm = drawn(headless, overlay=overlay)
    upset = drawn(headless, replace(STATUS, message="draw failed: oops"), overlay=overlay)
    red = (upset[..., 0] > 200) & (upset[..., 1] < 150)
    assert not ((calm[..., 0] > 200) & (calm[..., 1] < 150)).any()
    assert red.sum() > 10


def test_text_is_laid_out_again_only_a_few_times_a_second(headless):
    now = [100.0]
    overlay = Overlay(headless, clock=lambda: now[0])
    first = drawn(headless, overlay=overlay)
    other = replace(STATUS, fps=11.1)
    now[0] += 0.1
    assert (drawn(headless, other, overlay=overlay) == first).all()
    now[0] += 0.2
    assert (drawn(headless, other, overlay=overlay) != first).any()


def test_long_texts_are_cut_to_the_panel(headless):
    long = replace(STATUS, reason="because " * 40, device="x" * 200, message="word " * 60)
    assert (drawn(headless, long)[:, 300:] == 128).all()


# --- views, timeline, cards -------------------------------------------------------------------


@pytest.mark.parametrize("view", EVERY_VIEW)
def test_every_view_draws_something_of_its_own(headless, view):
    others = [drawn(headless, replace(STATUS, view=other)) for other in EVERY_VIEW if other != view]
    picture = drawn(headless, replace(STATUS, view=view))
    assert all((picture != other).any() for other in others)
    assert (picture != 128).any() == (view != "off")


def test_words_that_are_laid_out_show_once_they_are_printed(headless):
    overlay = Overlay(headless, clock=lambda: 0.0)
    before = drawn(headless, STATUS, overlay=overlay)
    words = replace(STATUS, app="another")
    overlay.lay_out(words)
    assert (drawn(headless, words, overlay=overlay) == before).all()
    assert overlay.print()
    assert not overlay.print()
    assert (drawn(headless, words, overlay=overlay) != before).any()


def test_the_timeline_shows_each_dnn_in_its_lane_and_colour(headless):
    overlay = Overlay(headless)
    status = replace(STATUS, view="timeline", now_ns=NOW_NS)
    at_ns = NOW_NS - 500_000_000
    overlay.add([Span(1, "detect", at_ns, at_ns + 200_000_000)], status)
    picture = drawn(headless, status, overlay=overlay)
    tint = (np.array(rgba(COLORS[0])[:3]) * 255).round()
    found = np.argwhere((np.abs(picture - tint) < 3).all(axis=-1) & (np.arange(360) > 300)[:, None])
    (top, left), (bottom, right) = found.min(axis=0), found.max(axis=0)
    strip = Strip(0.75, Glyphs(headless.ctx), headless.size)
    assert (top, bottom) == (strip.tops[1], strip.tops[1] + strip.thick - 1)
    width = strip.right - strip.left
    assert (left - strip.left) / width == pytest.approx(0.5, abs=0.01)
    assert (right - left) / width == pytest.approx(0.2, abs=0.01)


def test_the_help_card_lists_every_row_in_the_middle(headless):
    rows = [(letter, f"does {letter}") for letter in "abcdefghijklmno"]
    picture = drawn(headless, replace(STATUS, help=rows))
    card = (picture < 60).all(axis=-1)
    columns, lines = np.flatnonzero(card.any(axis=0)), np.flatnonzero(card.any(axis=1))
    assert abs(columns.min() + columns.max() - 640) < 8
    assert abs(lines.min() + lines.max() - 360) < 16
    assert lines.max() - lines.min() > 200
    assert (picture[:40, :100] == 128).all()  # nothing else shows meanwhile


@pytest.mark.parametrize("size", [(1, 1), (40, 30), (200, 2000), (2000, 60)])
@pytest.mark.parametrize("view", EVERY_VIEW)
def test_something_shows_at_any_size(size, view):
    from heimdall.render import open_surface

    with open_surface(size, headless=True) as opened:
        rows = [("a", "does it")] * 20
        card = drawn(opened, replace(STATUS, view=view, notice="saved", help=rows))
        words = drawn(opened, replace(STATUS, view=view, notice="saved"))
        bare = drawn(opened, replace(STATUS, view="off"))
    assert (card != 128).any()
    assert (words != 128).any() == (size != (1, 1))  # one pixel is within every margin
    assert (bare == 128).all()


def test_a_notice_shows_at_once_and_goes(headless):
    overlay = Overlay(headless, clock=lambda: 0.0)
    before = drawn(headless, overlay=overlay)
    told = drawn(headless, replace(STATUS, notice="saved a.png"), overlay=overlay)
    assert (told[320:, 240:400] < 60).any()
    assert (drawn(headless, overlay=overlay) == before).all()


def test_progress_fills_its_bar(headless):
    def bright(share):
        headless.framebuffer.clear(0.5, 0.5, 0.5)
        overlay.progress("app", "compiling networks", share)
        picture = headless.read().astype(int)
        return ((picture[..., 1] > 200) & (picture[..., 0] < 120)).sum()

    overlay = Overlay(headless)
    assert bright(0.0) < bright(0.4) < bright(1.0)


def test_a_dense_display_gets_larger_letters(headless):
    def panel_width():
        return np.flatnonzero((drawn(headless) != 128).any(axis=(0, 2))).max()

    normal = panel_width()
    headless.scale = 2.0
    assert panel_width() > 1.4 * normal


def test_a_text_without_a_place_is_beside_panel_and_timeline(headless):
    overlay, scene = Overlay(headless, clock=lambda: 0.0), Scene(headless)
    status = replace(STATUS, view="timeline")

    def picture(*texts):
        scene.begin(np.full((360, 640, 3), 128, np.uint8), 0)
        scene.covered = overlay.covered
        for text in texts:
            scene.text(text, color="#ff0000", background=None)
        scene.render()
        overlay.show(status)
        return headless.read().astype(int)

    overlay.lay_out(status)
    overlay.print()
    red = [
        np.argwhere((found[..., 0] > 200) & (found[..., 1:] < 60).all(axis=-1))
        for found in (picture("mine"), picture("mine", "mine"))
    ]
    assert len(red[1]) == 2 * len(red[0]) > 40  # one below the other, and all of both is seen
    for left, top, right, bottom in overlay.covered:
        rows, columns = red[1].T
        assert not ((rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)).any()


def test_on_an_upright_phone_the_panel_leaves_room_beside_it():
    from heimdall.render import open_surface

    for size in ((480, 640), (720, 1280)):
        with open_surface(size, headless=True) as opened:
            overlay = Overlay(opened, clock=lambda: 0.0)
            overlay.lay_out(STATUS)
            overlay.print()
            assert max(right for _, _, right, _ in overlay.covered) < 0.75 * size[0]
