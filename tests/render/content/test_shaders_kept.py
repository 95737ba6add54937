"""Shaders of models are compiled by a process of their own, once."""

import threading

import pytest

from heimdall.render.content import shaders_kept
from heimdall.render.content.shaders_kept import have_kept
from heimdall.system import child
from heimdall.system.paths import ASSETS

LAMP = ASSETS / "content" / "lamp.glb"


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """The commands of processes that were started."""
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path))
    monkeypatch.delenv("MESA_SHADER_CACHE_DISABLE", raising=False)
    commands = []

    def watch(command, **options):
        commands.append(command)
        return child.watch(command, **options)

    monkeypatch.setattr(shaders_kept, "watch", watch)
    return commands


def test_a_model_is_drawn_by_a_process_once_for_each_driver(begun, tmp_path, headless):
    for driver in ("one", "one", "another"):
        have_kept(LAMP, driver, threading.Event())
    assert len(begun) == 2
    assert len(list((tmp_path / "shaders").iterdir())) == 2


def test_it_is_not_waited_for_where_the_model_is_anyway(begun):
    stop = threading.Event()
    stop.set()
    have_kept(LAMP, "one", stop)
    assert begun == []


def test_a_process_that_fails_is_tried_again_another_time(begun, tmp_path):
    broken = tmp_path / "broken.glb"
    broken.write_bytes(b"not a model")
    for _ in range(2):
        have_kept(broken, "one", threading.Event())
    assert len(begun) == 2
    assert not (tmp_path / "shaders").exists()
