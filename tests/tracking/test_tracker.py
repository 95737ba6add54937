"""Frames and results of three threads come together."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from heimdall import DNN, App, AppError
from heimdall.models.results import Detection, Mask, Picture
from heimdall.tracking import Tracker
from heimdall.tracking import tracker as module

BOX = (200.0, 150.0, 400.0, 350.0)


def cup(left: float = 200.0) -> list[Detection]:
    return [Detection("cup", 0.9, (left, 150.0, left + 200, 350.0))]


def see(tracker: Tracker, frame) -> None:
    tracker.advance(frame)
    tracker.show(frame)


def test_a_late_result_arrives_where_the_picture_has_gone(tracker, shot):
    frames = [shot(n, 4 * n) for n in range(10)]
    for frame in frames[:8]:
        see(tracker, frame)
    assert tracker.carried("detect") is None
    tracker.renew("detect", cup(), frames[2])
    assert tracker.carried("detect")[0].box[0] == pytest.approx(220, abs=0.7)
    for frame in frames[8:]:
        see(tracker, frame)
    assert tracker.carried("detect")[0].box[0] == pytest.approx(228, abs=0.7)


def test_answers_are_about_the_frame_being_drawn_not_the_newest(tracker, shot):
    frames = [shot(n, 10 * n) for n in range(4)]
    for frame in frames[:2]:
        see(tracker, frame)
    tracker.renew("detect", cup(), frames[1])
    tracker.advance(frames[2])
    assert tracker.carried("detect")[0].box[0] == pytest.approx(200, abs=0.1)
    tracker.show(frames[2])
    assert tracker.carried("detect")[0].box[0] == pytest.approx(210, abs=0.7)


def test_unasked_it_follows_nothing_and_gives_the_latest_result(shot):
    tracker = Tracker()
    tracker.advance(shot(0))
    tracker.renew("detect", cup(), shot(0))
    see(tracker, shot(1, 9))
    assert tracker.carried("detect") == cup()


def test_after_a_cut_results_stay_as_they_came(tracker, shot):
    frame = shot(0)
    see(tracker, frame)
    tracker.renew("detect", cup(), frame)
    other = SimpleNamespace(
        image=np.ascontiguousarray(255 - frame.image[::-1, ::-1]), sequence=1, captured_ns=1
    )
    see(tracker, other)
    assert tracker.carried("detect") == cup()
    tracker.renew("detect", cup(220), frame)  # was computed before the cut
    assert tracker.carried("detect") == cup(220)


def test_a_result_that_comes_leaves_the_others_as_they_were(tracker, shot):
    values = np.zeros((48, 64), np.float32)
    see(tracker, shot(0))
    tracker.renew("segment", Mask(values), shot(0))
    see(tracker, shot(1, 4))
    before = tracker.carried("segment")
    tracker.renew("detect", cup(), shot(1, 4))
    assert tracker.carried("segment") is before
    assert tracker.carried("detect")[0].box[0] == pytest.approx(200)


def test_pictures_and_own_types_come_as_they_are(tracker, shot):
    see(tracker, shot(0))
    for value in (Picture(np.zeros((2, 2, 3), np.uint8)), {"own": 1}):
        tracker.renew("detect", value, shot(0))
        assert tracker.carried("detect") is value


def test_masks_are_followed_from_the_second_frame_after_the_first_one(tracker, shot):
    values = np.zeros((48, 64), np.float32)
    values[15:35, 20:40] = 1
    see(tracker, shot(0))
    tracker.renew("detect", Mask(values), shot(0))
    for n in range(1, 6):
        see(tracker, shot(n, 10 * n))
    columns = np.flatnonzero((tracker.carried("detect").values > 0.5).any(axis=0))
    assert (columns[0], columns[-1]) == pytest.approx((25, 44), abs=1)


def test_an_anchor_stays_on_its_place_in_the_world(tracker, shot):
    see(tracker, shot(0))
    anchor = tracker.anchor((320, 240))
    assert anchor.at == (320, 240)
    for n in range(1, 12):
        see(tracker, shot(n, 4 * n, -2 * n))
    assert anchor.at == pytest.approx((364, 218), abs=0.7)
    assert anchor.scale == pytest.approx(1, abs=0.01)


def test_an_anchor_holds_still_in_the_noise_of_a_camera(tracker, shot):
    draw, anchor, seen = np.random.default_rng(1), None, []
    for n in range(20):
        frame = shot(n)
        noisy = frame.image + draw.normal(0, 4, frame.image.shape)
        see(tracker, replace(frame, image=noisy.clip(0, 255).astype(np.uint8)))
        anchor = anchor or tracker.anchor((320, 240))
        seen.append(anchor.at)
    assert np.abs(np.array(seen) - (320, 240)).max() < 0.5


def test_an_anchor_comes_home_with_the_camera(tracker, shot):
    see(tracker, shot(0))
    anchor = tracker.anchor((320, 240))
    path = [*range(1, 30), *range(30, -1, -1)]
    for sequence, n in enumerate(path, start=1):
        see(tracker, shot(sequence, 4 * n, n))
    assert anchor.at == pytest.approx((320, 240), abs=1.0)


def test_an_anchor_that_is_not_kept_is_forgotten(tracker, shot):
    see(tracker, shot(0))
    gone = weakref.ref(tracker.anchor((320, 240)))
    see(tracker, shot(1))
    gc.collect()
    assert gone() is None
    see(tracker, shot(2))


def test_a_frame_that_fails_is_logged_once_and_following_goes_on(tracker, shot, caplog):
    see(tracker, shot(0))
    broken = SimpleNamespace(image=np.zeros((0, 0, 3), np.uint8), sequence=1, captured_ns=1)
    see(tracker, broken)
    see(tracker, broken)
    see(tracker, shot(2))
    tracker.renew("detect", cup(), shot(2))
    assert tracker.carried("detect")[0].box == pytest.approx(BOX)
    assert caplog.text.count("following the picture failed") == 1
    see(tracker, shot(3, 9))
    assert tracker.carried("detect")[0].box[0] == pytest.approx(209, abs=0.7)


@pytest.mark.parametrize("method", ["follow", "value"])
def test_one_dnn_that_cannot_be_carried_costs_the_others_nothing(
    tracker, shot, caplog, monkeypatch, method
):
    see(tracker, shot(0))
    tracker.renew("segment", cup(100), shot(0))
    tracker.renew("detect", cup(), shot(0))

    def fail(*_):
        raise ArithmeticError("a bad number")

    monkeypatch.setattr(tracker._carriers["segment"], method, fail)
    see(tracker, shot(1, 9))
    assert tracker.carried("segment") == cup(100)
    assert tracker.carried("detect")[0].box[0] == pytest.approx(209, abs=0.7)
    assert "segment: carrying its result failed: ArithmeticError: a bad number" in caplog.text
    tracker.renew("segment", cup(100), shot(1))
    see(tracker, shot(2, 18))
    assert tracker.carried("segment")[0].box[0] == pytest.approx(109, abs=0.7)


def test_a_first_result_that_comes_while_the_picture_cuts_is_kept(tracker, shot, monkeypatch):
    """The capture thread replaces all results as a scene is gone; a pool thread adds one then."""
    see(tracker, shot(0))
    tracker.renew("detect", cup(), shot(0))
    renewing: list[threading.Thread] = []
    without = module._without_things

    def slowly(result):
        if not renewing:
            late = threading.Thread(target=tracker.renew, args=("read", "text", shot(1)))
            renewing.append(late)
            late.start()
            late.join(0.2)  # without a lock it has ended by then
        return without(result)

    monkeypatch.setattr(module, "_without_things", slowly)
    other = np.zeros_like(shot(0).image)
    other[:, 320:] = 255
    see(tracker, replace(shot(1), image=other))
    renewing[0].join()
    assert tracker.carried("read") == "text"
    assert tracker.carried("detect") == []


def test_apps_ask_by_the_name_of_a_declared_dnn():
    class One(App):
        dnns = (DNN("detect", model="nanodet"),)

    app = One()
    assert app.tracked("detect") is None
    with pytest.raises(AppError, match="unknown DNN 'eye'; choose one of: detect"):
        app.tracked("eye")
    with pytest.raises(AppError, match="needs a run"):
        app.anchor((1, 2))
