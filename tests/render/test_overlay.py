"""The overlay's pixels, and when it lays out its text again."""

from dataclasses import replace

import numpy as np
import pytest

from heimdall.render import DnnStatus, Overlay, Scene, Status

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


def drawn(surface, status=STATUS, grey=128, overlay=None):
    scene = Scene(surface)
    scene.begin(np.full((*surface.size[::-1], 3), grey, np.uint8), 0)
    scene.render()
    (overlay or Overlay(surface)).draw(status)
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


def test_a_dnn_without_result_and_no_frames_yet_are_fine(headless):
    waiting = replace(DETECT, latency_ms=None, age_ms=None, active=False)
    drawn(headless, replace(STATUS, frame_ms=[], dnns=(waiting,), gap_utilization=None))


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
