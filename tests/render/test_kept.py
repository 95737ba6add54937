"""Meshes that stand still are copied from a picture of their own, and look the same."""

import numpy as np
import pytest

from heimdall.models.results import Mask
from heimdall.render import Scene

GREEN = np.full((32, 32, 3), (0, 255, 0), np.uint8)
RED = np.full((32, 32, 3), (255, 0, 0), np.uint8)
RIGHT_HALF = Mask(np.repeat([[0.0, 1.0]], 2, axis=0).astype(np.float32))


class Run:
    """Frames of one scene, each followed by what a run has the GPU do after it."""

    def __init__(self, surface):
        self.surface, self.scene, self.number = surface, Scene(surface), 0

    def frame(self, *layers, grey=128):
        """The picture, and whether meshes were put into a picture of their own after it."""
        self.number += 1
        self.scene.begin(np.full((360, 640, 3), grey, np.uint8), self.number)
        for layer in layers:
            layer(self.scene)
        self.scene.render()
        self.surface.finish()
        return self.surface.read().astype(int), self.scene.print()


def couch(**options):
    placed = {"at": (320, 260), "width": 260, "texture": GREEN} | options
    return lambda scene: scene.mesh("couch", **placed)


@pytest.fixture
def run(headless):
    if not headless.software:
        pytest.skip("only software GL keeps pictures of meshes")
    return Run(headless)


def test_a_couch_that_stands_still_is_drawn_once_and_looks_the_same(run):
    frames = [run.frame(couch()) for _ in range(5)]
    assert [printed for _, printed in frames] == [False, True, False, False, False]
    for picture, _ in frames[1:]:
        assert np.abs(picture - frames[0][0]).max() <= 3


def test_it_stands_before_another_camera_picture(run):
    for _ in range(3):
        run.frame(couch())
    before, _ = run.frame(couch(), grey=40)
    assert (before[5, 5] == 40).all()
    assert np.abs(before - Run(run.surface).frame(couch(), grey=40)[0]).max() <= 3


@pytest.mark.parametrize("change", [{"at": (300, 260)}, {"yaw": 40.0}, {"texture": RED}])
def test_what_changes_is_seen_at_once(run, change):
    for _ in range(3):
        run.frame(couch())
    moved, printed = run.frame(couch(**change))
    assert not printed
    assert np.abs(moved - Run(run.surface).frame(couch(**change))[0]).max() <= 3


def test_one_that_moves_all_the_time_is_never_kept(run):
    assert not any(run.frame(couch(at=(300 + step, 260)))[1] for step in range(5))


def test_people_stand_in_front_of_a_kept_couch(run):
    def person(scene):
        scene.occlude(RIGHT_HALF)

    first, _ = run.frame(couch(), person)
    run.frame(couch(), person)
    kept, _ = run.frame(couch(), person)
    assert np.abs(kept - first).max() <= 3
    assert (kept[:, 480:] == 128).all()
    assert (kept[:, :300] != 128).any()


def test_meshes_with_something_between_them_keep_their_order(run):
    def label(scene):
        scene.text("between", (300, 250), size=40, color="#ff0000", background=None)

    layers = (couch(), label, couch(at=(330, 280), texture=RED))
    first, _ = run.frame(*layers)
    assert not any(run.frame(*layers)[1] for _ in range(3))
    assert np.abs(run.frame(*layers)[0] - first).max() <= 3


def test_another_picture_size_is_noticed(run):
    for _ in range(3):
        run.frame(couch())
    run.number += 1
    run.scene.begin(np.full((360, 360, 3), 128, np.uint8), run.number)
    couch(at=(180, 260))(run.scene)
    run.scene.render()
    other = run.surface.read().astype(int)
    fresh = Run(run.surface)
    fresh.scene.begin(np.full((360, 360, 3), 128, np.uint8), 1)
    couch(at=(180, 260))(fresh.scene)
    fresh.scene.render()
    assert np.abs(other - run.surface.read().astype(int)).max() <= 3
