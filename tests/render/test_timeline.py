"""What the strip shows of the last second, as the pixels of its lanes."""

import numpy as np
import pytest

from heimdall.render.glyphs import Glyphs
from heimdall.render.panel import COLORS
from heimdall.render.shapes import rgba
from heimdall.render.timeline import LANES, WINDOW_NS, Span, Strip, Timeline

NOW_NS = 5_000_000_000
NAMES = ("detect", "style")


@pytest.fixture
def strip(headless):
    return Strip(0.75, Glyphs(headless.ctx), headless.size)


@pytest.fixture
def shown(strip):
    """``shown(spans, now_ns)``: where each lane shows something else than the strip's ground,
    (lanes, width), after further spans."""
    timeline = Timeline()

    def lanes(spans, now_ns=NOW_NS):
        timeline.add(spans, NAMES)
        pixels = timeline.pixels(strip, now_ns)
        assert pixels.shape[0] == strip.tops[-1] + strip.thick - strip.tops[0]
        rows = [top - strip.tops[0] for top in strip.tops]
        return pixels[rows, :, 3] == 255

    return lanes


def test_the_strip_has_a_lane_each_above_the_other_inside_the_surface(strip):
    assert len(strip.tops) == len(LANES)
    assert all(step > strip.thick for step in np.diff(strip.tops))
    left, top, right, bottom = strip.place
    assert left < strip.left < strip.right < right <= 640
    assert top < strip.tops[0] < strip.tops[-1] + strip.thick < bottom <= 360


def test_spans_leave_the_timeline_at_its_left_edge(shown):
    spans = [Span(0, "frame", NOW_NS - 10**8 * age, NOW_NS) for age in range(1, 9)]
    assert shown(spans)[0].mean() == pytest.approx(0.8, abs=0.01)
    later = shown([], NOW_NS + 5 * 10**8)[0]
    assert later.mean() == pytest.approx(0.5, abs=0.01)
    assert later[0]
    assert not later[-1]
    assert not shown([], NOW_NS + 10 * WINDOW_NS).any()


def test_a_short_span_shows_and_one_that_ended_long_ago_does_not(shown):
    moment, past = NOW_NS - 4 * 10**8, NOW_NS - 5 * 10**9
    shown([])
    spans = [Span(1, "detect", moment, moment + 1), Span(2, "detect", past, past + 10**9)]
    assert (shown(spans).sum(axis=1) > 0).tolist() == [False, True, False]


def test_a_span_longer_than_the_window_fills_its_lane(shown):
    lanes = shown([Span(2, "detect", NOW_NS - 7 * WINDOW_NS, NOW_NS)])
    assert lanes.all(axis=1).tolist() == [False, False, True]


def test_each_dnn_has_its_colour(strip):
    timeline = Timeline()
    half = NOW_NS - WINDOW_NS // 2
    spans = [Span(1, "style", NOW_NS - WINDOW_NS, half), Span(1, "detect", half, NOW_NS)]
    timeline.add(spans, NAMES)
    lane = timeline.pixels(strip, NOW_NS)[strip.tops[1] - strip.tops[0]]
    first, last = ((np.array(rgba(COLORS[i])[:3]) * 255).round() for i in (1, 0))
    assert (np.abs(lane[len(lane) // 4, :3] - first) <= 1).all()
    assert (np.abs(lane[len(lane) * 3 // 4, :3] - last) <= 1).all()


@pytest.mark.parametrize("parts", [2, 3])
def test_jobs_that_run_together_share_a_lane(strip, parts):
    timeline = Timeline()
    names = ["detect", "style", "hand"][:parts]
    timeline.add([Span(1, name, 0, NOW_NS, n, parts) for n, name in enumerate(names)], names)
    top = strip.tops[1] - strip.tops[0]
    column = timeline.pixels(strip, NOW_NS)[top : top + strip.thick, 5, :3].astype(int)
    tints = [(np.array(rgba(color)[:3]) * 255).round() for color in COLORS[:parts]]
    found = np.abs(column[:, None] - np.array(tints)[None]).max(axis=2) <= 1
    assert found.any(axis=1).all()  # no row is anybody else's
    assert (np.diff(found.argmax(axis=1)) >= 0).all()  # from the top, in their order
    assert np.ptp(found.sum(axis=0)) <= 1
    assert found.any(axis=0).all()


def test_further_processors_have_a_lane_each(headless):
    strip = Strip(0.75, Glyphs(headless.ctx), headless.size, ["gpu2"])
    assert len(strip.tops) == len(LANES) + 1
    timeline = Timeline()
    before = timeline.pixels(strip, WINDOW_NS).copy()
    timeline.add([Span(len(LANES), "eye", WINDOW_NS // 2, WINDOW_NS)], ["eye"])
    changed = (timeline.pixels(strip, WINDOW_NS) != before).any(axis=(1, 2))
    own = strip.tops[-1] - strip.tops[0]
    assert changed[own:].any()
    assert not changed[:own].any()
