"""DNNs as attributes of an app, and what the app has of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from heimdall import DNN, App, AppError, ConfigError, Frame
from heimdall.app import validate

FRAME = Frame(np.zeros((2, 2, 3), np.uint8), 7, 0)


Listed = Sequence[DNN[Any]]


class Both(App):
    dnns: ClassVar[Listed] = (DNN("style", model="multistyle", on_event=True),)
    detect = DNN(model="nanodet", rate_hz=2)


def names(app: type[App]) -> list[str]:
    return [dnn.name for dnn in app.dnns]


def test_an_attribute_names_its_dnn_and_joins_the_listed_ones():
    assert names(Both) == ["style", "detect"]
    assert Both.detect is Both.dnns[1]
    validate(Both)


def test_a_name_that_is_given_stays():
    class Named(App):
        detect = DNN("objects", model="nanodet")

    assert names(Named) == ["objects"]
    assert Named().detect.name == "objects"


def test_a_subclass_adds_replaces_and_with_dnns_begins_anew():
    class More(Both):
        people = DNN(model="selfie")
        detect = DNN(model="nanodet", rate_hz=9)

    class Anew(Both):
        dnns: ClassVar[Listed] = (DNN("hand", model="hand"),)

    assert names(More) == ["style", "people", "detect"]
    assert More.dnns[2].rate_hz == 9
    assert Both.detect.rate_hz == 2
    assert names(Anew) == ["hand"]


def test_a_changed_copy_keeps_the_name():
    changed = replace(Both.detect, rate_hz=5)
    assert (changed.name, changed.model, changed.rate_hz) == ("detect", "nanodet", 5)


def test_a_feed_gives_the_newest_result_and_its_frame():
    app = Both()
    assert app.detect.latest is None
    assert app.detect.frame is None
    assert app.detect.tracked is None
    app._keep("detect", ["a", "b"], FRAME)
    assert app.detect.latest == app.latest("detect") == ["a", "b"]
    assert app.detect.frame is FRAME
    assert Both().detect.latest is None  # each app has its own


def test_a_feed_asks_for_its_dnn():
    app = Both()
    app.detect.request(region=(1, 2, 3, 4))
    assert app._requests == [("detect", {"region": (1, 2, 3, 4)})]


def test_a_dropped_dnn_is_not_there():
    class Without(Both):
        dnns: ClassVar[Listed] = ()

    with pytest.raises(AppError, match="unknown DNN 'detect'"):
        Without().detect.request()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "", "model": "nanodet"}, "a DNN needs a name, a text, not ''"),
        ({"name": 5, "model": "nanodet"}, "not 5"),
        ({"name": "eye"}, "DNN 'eye' needs a model"),
        ({"model": "nanodet", "rate_hz": 0}, r"DNN\(model='nanodet'\): rate_hz must be above 0"),
    ],
)
def test_what_is_missing_is_said(arguments, message):
    with pytest.raises(ConfigError, match=message):
        DNN(**arguments)


def test_a_listed_dnn_needs_a_name():
    class Nameless(App):
        dnns = (DNN(model="nanodet"),)

    with pytest.raises(ConfigError, match=r"Nameless.dnns: DNN\(model='nanodet'\) needs a name"):
        validate(Nameless)
