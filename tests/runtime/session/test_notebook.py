"""A session's picture in a notebook's cell, on a stand-in of IPython's display functions."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from heimdall import App, Session, show
from heimdall.errors import AppError, ConfigError
from heimdall.runtime.session import notebook

PLAIN: dict[str, Any] = {"device": "onnxruntime", "offload": False}
BLUE, RED = (np.full((180, 320, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255)))


class Still(App):
    """No network at all."""


class Page:
    """What IPython has: cells, and what is shown in the output of each."""

    def __init__(self):
        self.outputs: list[list[np.ndarray]] = []  # the pictures of each, one after the other
        self.called: list[Any] = []
        events = SimpleNamespace(
            register=lambda _, call: self.called.append(call),
            unregister=lambda _, call: self.called.remove(call),
        )
        self.shell = SimpleNamespace(execution_count=1, events=events)

    def display(self, picture, display_id):
        assert display_id is True
        self.outputs.append([picture])
        return SimpleNamespace(update=self.outputs[-1].append)

    def end_cell(self):
        for call in self.called.copy():
            call("the cell's result")
        self.shell.execution_count += 1

    @property
    def seen(self):
        """The last picture of each output: its mean colour, RGB."""
        return [tuple(each[-1].mean((0, 1)).round(-1)) for each in self.outputs]


def image(data, format):
    assert format == "jpeg"
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]


@pytest.fixture
def page(monkeypatch):
    page = Page()
    package, display = ModuleType("IPython"), ModuleType("IPython.display")
    vars(package).update(get_ipython=lambda: page.shell)
    vars(display).update(display=page.display, Image=image)
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return page


@pytest.fixture
def session():
    with Session(Still, size=(320, 180), overlay="off", **PLAIN) as session:
        session.push(BLUE)
        session.step()
        yield session


def test_the_picture_is_shown_and_follows_the_session_in_place(page, session, monkeypatch):
    monkeypatch.setattr(notebook, "_INTERVAL_S", 0)
    monkeypatch.setattr(notebook, "_MOST", 0)
    show(session)
    assert page.seen == [(0, 0, 250)]
    session.push(RED)
    session.step()
    session.step()
    assert page.seen == [(250, 0, 0)]
    assert len(page.outputs[0]) == 3


def test_frames_are_not_held_up_by_a_picture_of_each(page, session, monkeypatch):
    monkeypatch.setattr(notebook, "_INTERVAL_S", 1000)
    show(session)
    session.push(RED)
    session.step()
    assert page.seen == [(0, 0, 250)]
    page.end_cell()
    assert page.seen == [(250, 0, 0)]
    session.push(BLUE)
    session.step()
    session.close()
    assert page.seen == [(0, 0, 250)]
    assert page.called == []


def test_a_cell_shows_it_once_and_the_next_cell_anew(page, session):
    show(session)
    session.push(RED)
    session.step()
    show(session)
    assert page.seen == [(250, 0, 0)]
    page.end_cell()
    show(session)
    session.push(BLUE)
    session.step()
    page.end_cell()
    assert page.seen == [(250, 0, 0), (0, 0, 250)]


def test_it_says_where_it_cannot_be_shown(page, session, monkeypatch):
    with Session(Still, render=False, **PLAIN) as undrawn, pytest.raises(AppError, match="drawn"):
        show(undrawn)
    monkeypatch.setattr(page, "shell", None)
    with pytest.raises(ConfigError, match="this is none"):
        show(session)
    monkeypatch.setitem(sys.modules, "IPython", None)
    with pytest.raises(ConfigError, match=r"session.picture\(\) is the picture"):
        show(session)
