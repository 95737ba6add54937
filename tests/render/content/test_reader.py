"""What reads models beside the frames gets done on a machine that has no time for it."""

import threading

import pytest

from heimdall.errors import ModelError
from heimdall.render import Scene
from heimdall.render.content import reader
from heimdall.render.content.reader import Reader


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(reader, "PATIENCE_S", 0.0)


def test_what_makes_no_progress_is_read_in_turn_with_everything_else(impatient):
    starved, finished, reading = threading.Event(), [], Reader()

    def read():
        if threading.current_thread().name.startswith("content-0"):
            starved.wait(10)  # its thread gets no time
        return threading.current_thread().name

    found = reading.submit(read, lambda: finished.append(True))
    behind = reading.submit(lambda: "behind")
    reading.look()
    assert found.result(5).startswith("content-in-turn")
    reading.look()
    assert behind.result(5) == "behind"
    starved.set()
    assert not finished  # compiling shaders would take as long again


def test_what_is_read_in_time_is_read_once():
    reading, times = Reader(), []
    found = reading.submit(lambda: times.append(1), lambda: times.append(2))
    found.result(5)
    for _ in range(3):
        reading.look()
    assert times == [1, 2]


def test_an_error_is_told(impatient):
    reading = Reader()

    def read():
        raise ModelError("broken")

    found = reading.submit(read)
    reading.look()
    with pytest.raises(ModelError, match="broken"):
        found.result(5)


def test_a_scene_names_what_is_on_its_way(headless, grey):
    scene = Scene(headless)
    assert scene.loading == []
    scene.begin(grey, 0)
    scene.model("lamp.glb", at=(100, 100), width=20)
    assert scene.loading == ["lamp.glb"]
    scene.settle()
    assert scene.loading == []


def test_a_reader_that_is_closed_reads_nothing_more_and_leaves_no_thread():
    before = set(threading.enumerate())
    reading, began, released = Reader(), threading.Event(), threading.Event()

    def read():
        began.set()
        released.wait(10)

    first = reading.submit(read)
    later = reading.submit(lambda: "later")
    assert began.wait(10)
    closing = threading.Thread(target=reading.close)
    closing.start()
    released.set()
    closing.join(10)
    first.result(10)
    assert not later.done()
    assert set(threading.enumerate()) <= before
