"""The same points are found again."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.tracking.flow import CELL, Flow, common


def test_points_move_with_the_picture(shot):
    flow = Flow()
    before = flow.advance(shot(0).image, 0)
    after = flow.advance(shot(1, 6, -4).image, 1)
    mine, theirs = common(before.ids, after.ids)
    assert len(mine) > 60
    moved = after.points[theirs] - before.points[mine]
    assert np.abs(np.median(moved, axis=0) - (6, -4)).max() < 0.2
    assert (np.abs(moved - (6, -4)).max(axis=1) < 1).mean() > 0.95


def test_dense_flow_leads_back_to_the_frame_before_and_costs_nothing_unasked(shot):
    flow = Flow()
    assert flow.advance(shot(0).image, 0, dense=True).back is None  # nothing before it
    back = flow.advance(shot(1, 8, 0).image, 1, dense=True).back
    cell = 640 / back.shape[1]
    assert np.abs(np.median(back, axis=(0, 1)) * cell - (-8, 0)).max() < 0.5
    assert flow.advance(shot(2, 16, 0).image, 2).back is None


def test_points_that_come_together_are_thinned(shot):
    flow = Flow()
    counts = [len(flow.advance(shot(n, actor=(40 * n, 40, 300)).image, n).ids) for n in range(9)]
    assert max(counts[4], counts[8]) <= (320 // CELL) * (240 // CELL)


def test_ids_in_common_are_found_whatever_is_missing():
    nothing, some = np.empty(0, np.int64), np.array([2, 5, 9])
    assert [list(each) for each in common(nothing, some)] == [[], []]
    assert [list(each) for each in common(some, nothing)] == [[], []]
    mine, theirs = common(some, np.array([1, 2, 3, 9]))
    assert (list(mine), list(theirs)) == ([0, 2], [1, 3])
    assert list(common(some, np.array([1]))[0]) == []


def test_another_scene_is_a_cut_and_starts_with_new_points(shot):
    flow = Flow()
    before = flow.advance(shot(0).image, 0)
    assert before.cut  # nothing can be carried to the first frame
    assert not flow.advance(shot(1, 2, 2).image, 1).cut
    other = flow.advance(np.ascontiguousarray(255 - shot(2).image[::-1, ::-1]), 2)
    assert other.cut
    assert not len(common(before.ids, other.ids)[0])
    assert len(other.ids) > 60


def test_another_picture_size_is_a_cut(shot):
    flow = Flow()
    flow.advance(shot(0).image, 0)
    assert flow.advance(shot(1).image[:240, :320], 1).cut


def test_a_picture_without_corners_has_no_points():
    flow = Flow()
    plain = np.full((360, 640, 3), 90, np.uint8)
    for sequence in range(6):
        tracks = flow.advance(plain, sequence, dense=True)
        assert len(tracks.ids) == len(tracks.points) == 0


@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (900, 1), (3, 4000)])
def test_tiny_pictures_are_followed_or_left_alone(shape):
    flow = Flow()
    for sequence in range(3):
        tracks = flow.advance(np.zeros((*shape, 3), np.uint8), sequence, dense=True)
        assert tracks.points.shape == (0, 2)
