"""Models that stand still are copied from a picture of their own, and look the same."""

import numpy as np
import pytest

from heimdall.models.results import Mask
from heimdall.render import Scene
from heimdall.render.content.figures import Figures

GREEN = np.full((32, 32, 3), (0, 255, 0), np.uint8)
RED = np.full((32, 32, 3), (255, 0, 0), np.uint8)
RIGHT_HALF = Mask(np.repeat([[0.0, 1.0]], 2, axis=0).astype(np.float32))


class Run:
    """Frames of one scene, each followed by what a run has the GPU do after it."""

    def __init__(self, surface):
        self.surface, self.scene, self.number = surface, Scene(surface), 0
        self.scene.estimates_light = False
        self.scene.begin(np.full((360, 640, 3), 128, np.uint8), 0)
        couch()(self.scene)
        self.scene.settle()

    def frame(self, *layers, grey=128):
        """The picture."""
        self.number += 1
        self.scene.begin(np.full((360, 640, 3), grey, np.uint8), self.number)
        for layer in layers:
            layer(self.scene)
        self.scene.render()
        self.surface.finish()
        return self.surface.read().astype(int)


def couch(**options):
    placed = {"at": (320, 260), "width": 260, "texture": GREEN} | options
    return lambda scene: scene.model("couch.glb", **placed)


@pytest.fixture
def run(headless):
    return Run(headless)


@pytest.fixture
def drawings(monkeypatch):
    """How often a model was drawn rather than copied; ``run`` has loaded it before."""
    drawn, draw = [], Figures.draw

    def counted(*arguments):
        drawn.append(1)
        draw(*arguments)

    monkeypatch.setattr(Figures, "draw", counted)
    return drawn


def directly_drawn(surface, *layers, grey=128):
    """The same frame by a scene that takes the surface for a real GPU's."""
    surface.software, software = False, surface.software
    picture = Run(surface).frame(*layers, grey=grey)
    surface.software = software
    return picture


def test_a_couch_that_stands_still_is_kept_and_looks_as_drawn(run, drawings):
    if not run.surface.software:
        pytest.skip("only software GL keeps pictures of models")
    frames = [run.frame(couch()) for _ in range(5)]
    assert len(drawings) == 2  # before it was known to stand still, and to be kept
    expected = directly_drawn(run.surface, couch())
    for picture in frames:
        assert np.abs(picture - expected).max() <= 3


def test_it_stands_before_another_camera_picture(run):
    for _ in range(2):
        run.frame(couch())
    before = run.frame(couch(), grey=40)
    assert (before[5, 5] == 40).all()
    assert np.abs(before - directly_drawn(run.surface, couch(), grey=40)).max() <= 3


@pytest.mark.parametrize("change", [{"at": (300, 260)}, {"yaw": 40.0}, {"texture": RED}])
def test_what_changes_is_seen_at_once(run, change):
    for _ in range(2):
        run.frame(couch())
    moved = run.frame(couch(**change))
    assert np.abs(moved - directly_drawn(run.surface, couch(**change))).max() <= 3


def test_a_new_cloth_at_the_address_of_an_old_one_is_seen(run):
    for level in (60, 120, 180, 240):
        cloth = np.full((32, 32, 3), (0, level, 0), np.uint8)
        for _ in range(2):
            picture = run.frame(couch(texture=cloth))
        expected = directly_drawn(run.surface, couch(texture=cloth))
        assert np.abs(picture - expected).max() <= 3
        del cloth


def test_one_that_moves_is_drawn_once_a_frame(run, drawings):
    for step in range(4):
        run.frame(couch(at=(300 + step, 260)))
    assert len(drawings) == 4


def test_people_stand_in_front_of_a_couch(run):
    def person(scene):
        scene.occlude(RIGHT_HALF)

    for _ in range(3):
        picture = run.frame(couch(), person)
    assert (picture[:, 480:] == 128).all()
    assert (picture[:, :300] != 128).any()
    assert np.abs(picture - directly_drawn(run.surface, couch(), person)).max() <= 6


def test_models_with_something_between_them_are_drawn_in_their_order(run):
    def label(scene):
        scene.text("between", (300, 250), size=40, color="#ff0000", background=None)

    layers = (couch(), label, couch(at=(330, 280), texture=RED))
    for _ in range(2):
        picture = run.frame(*layers)
    assert np.abs(picture - directly_drawn(run.surface, *layers)).max() <= 3


def test_another_picture_size_is_noticed(run):
    def square(run):
        run.scene.begin(np.full((360, 360, 3), 128, np.uint8), 100)
        couch(at=(180, 260))(run.scene)
        run.scene.render()
        return run.surface.read().astype(int)

    for _ in range(2):
        run.frame(couch())
    assert np.abs(square(run) - square(Run(run.surface))).max() <= 3


def test_a_cloth_that_an_app_draws_into_is_shown_as_it_is(run):
    cloth = GREEN.copy()
    green = [run.frame(couch(texture=cloth)) for _ in range(3)][-1]
    cloth[:] = (200, 0, 0)
    red = run.frame(couch(texture=cloth))
    assert np.abs(red - green).max() > 60
    assert np.abs(red - run.frame(couch(texture=cloth.copy()))).max() <= 3
