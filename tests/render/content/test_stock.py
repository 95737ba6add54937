"""What is loaded is let go: when an app says so, and where there is more than can be kept."""

import cv2
import moderngl
import numpy as np
import pytest

from heimdall.errors import AppError, ModelError
from heimdall.render import Scene
from heimdall.render.content import stock
from tests.render.content.conftest import SQUARE, TWO

GREY = np.full((90, 160, 3), 128, np.uint8)


@pytest.fixture
def files(writer):
    """Two models."""
    writer.mesh(SQUARE, TWO, {"pbrMetallicRoughness": {"baseColorFactor": [1, 0, 0, 1]}})
    return [writer.save("a.gltf"), writer.save("b.gltf")]


class Run:
    """A frame each call: one model in the middle, or none."""

    def __init__(self, surface):
        self.surface, self.scene, self.number = surface, Scene(surface), 0

    def frame(self, file=None, loads=True):
        self.number += 1
        self.scene.begin(GREY, self.number)
        found = None
        if file is not None:
            found = self.scene.model(file, at=(80, 60), width=60)
            if found is None and loads:
                self.scene.settle()
                found = self.scene.model(file, at=(80, 60), width=60)
        self.scene.render()
        self.surface.finish()
        return found

    @property
    def changed(self):
        return bool((np.abs(self.surface.read().astype(int) - 128) > 60).any())


@pytest.fixture
def run(headless):
    return Run(headless)


def released(sent):
    arrays = [array for part in sent.parts for array in part.arrays]
    objects = (*arrays, *sent.buffers, sent.ground)
    found = {isinstance(each.mglo, moderngl.InvalidObject) for each in objects}
    assert len(found) == 1
    return found.pop()


def sent_of(run, file):
    return run.scene._stock.model(file)


def test_an_unloaded_model_is_freed_after_the_frame_and_loaded_again(run, files):
    run.frame(files[0])
    sent = sent_of(run, files[0])
    run.number += 1
    run.scene.begin(GREY, run.number)
    run.scene.model(files[0], at=(80, 60), width=60)
    run.scene.unload(files[0])
    assert not released(sent)  # this frame shows it
    run.scene.render()
    run.surface.finish()
    assert run.changed
    run.frame()
    assert released(sent)
    assert run.frame(files[0], loads=False) is None
    assert run.frame(files[0]) is not None
    run.frame(files[0])
    assert run.changed
    assert not released(sent_of(run, files[0]))


def test_models_that_were_not_asked_for_lately_are_let_go_where_there_are_many(
    run, files, monkeypatch
):
    monkeypatch.setattr(stock, "_LATELY", 3)
    run.frame(files[0])
    sent = sent_of(run, files[0])
    monkeypatch.setattr(stock, "_MOST_BYTES", int(1.5 * sent.model.nbytes) + 200_000)
    for _ in range(9):
        run.frame(files[1])
    assert not released(sent)  # there is room for both
    monkeypatch.setattr(stock, "_MOST_BYTES", 0)
    for _ in range(3):
        run.frame(files[1])
    assert released(sent)
    assert run.changed
    assert not released(sent_of(run, files[1]))  # it is drawn, however large it is


def test_one_that_is_on_its_way_may_be_unloaded(run, files):
    run.frame(files[0], loads=False)
    run.scene.unload(files[0])
    for _ in range(5):
        run.frame()
    assert run.scene._stock._left == []
    assert run.frame(files[0]) is not None


def test_a_file_that_failed_is_read_again_once_it_is_unloaded(run, files):
    text = files[0].read_text()
    files[0].write_text("{}")
    with pytest.raises(ModelError, match="asset"):
        run.frame(files[0])
    files[0].write_text(text)
    run.scene.unload(files[0])
    assert run.frame(files[0]) is not None


def test_an_environment_is_let_go_once_another_one_is_the_light(run, files, tmp_path):
    maps = []
    for name in "ab":
        maps.append(tmp_path / f"{name}.png")
        cv2.imwrite(str(maps[-1]), np.random.default_rng(1).integers(0, 255, (8, 16, 3), np.uint8))
    run.scene.environment = maps[0]
    run.frame(files[0])
    before = run.scene._figures.light[1]
    with pytest.raises(AppError, match=r"a\.png is the environment"):
        run.scene.unload(maps[0])
    run.scene.environment = maps[1]
    run.scene.unload(maps[0])
    run.scene.settle()
    for _ in range(3):
        run.frame(files[0])
    assert run.scene._figures.light[1] is not before
    assert all(isinstance(each.mglo, moderngl.InvalidObject) for each in before._textures)


def test_what_is_not_there_cannot_be_unloaded(run):
    with pytest.raises(AppError, match="no file"):
        run.scene.unload("nowhere.glb")
