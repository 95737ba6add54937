from __future__ import annotations

import hashlib
import re
from typing import Any

import numpy as np
import pytest

from heimdall.app import DNN
from heimdall.capture.sound import Sound
from heimdall.errors import ConfigError, ModelError
from heimdall.graph.graph import load_graph
from heimdall.models import CATALOG, open_pipeline
from heimdall.models.memory import without_state
from heimdall.system import paths
from heimdall.vocabulary.hearing import BUNDLED

NAMES = ["body", "centerface", "face-mesh", "fashion", "hand", "keywords", "movenet"]
NAMES += ["multistyle", "nanodet", "ocr", "ppocr", "selfie", "speech"]


def _notice() -> dict[str, str]:
    text = (paths.ASSETS.parent / "NOTICE.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^### (\S+)\n.*?^- sha256: `(\w{64})`", text, re.M | re.S))


def test_the_catalogue_holds_the_bundled_networks() -> None:
    assert sorted(CATALOG) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_file_of_an_entry_is_bundled_and_used(name: str) -> None:
    pipeline = open_pipeline(name)
    assert tuple(network.file for network in pipeline.networks) == CATALOG[name].files
    assert all(network.path.is_file() for network in pipeline.networks)


@pytest.mark.parametrize("name", NAMES)
def test_prepared_inputs_fit_the_network(name: str) -> None:
    pipeline = open_pipeline(name)
    network = pipeline.networks[0]
    given: Any = np.zeros((360, 640, 3), np.uint8)
    if (hears := pipeline.hears) is not None:
        given = Sound(np.zeros(hears.window, np.float32), hears.rate, 0, 0)
    (task,) = pipeline.prepare(0, given, [], {})
    graph = without_state(load_graph(network.path, network.shapes or None), network.state)
    declared = {t.name: t for t in graph.inputs}
    assert set(task.inputs) == set(declared)
    for key, array in task.inputs.items():
        assert array.shape == declared[key].shape
        assert array.dtype == declared[key].dtype
        assert array.flags.c_contiguous


def test_what_hears_is_declared_by_its_name_alone() -> None:
    hearing = {name: pipeline.hears for name in NAMES if (pipeline := open_pipeline(name)).hears}
    assert hearing == BUNDLED
    for name, hears in hearing.items():
        dnn = DNN("ears", model=name)
        assert (dnn.hears, dnn.on_event, dnn.rate_hz) == (hears, True, hears.rate_hz)


def test_every_bundled_file_has_a_notice_with_its_digest() -> None:
    notice = _notice()
    for path in sorted(paths.ASSETS.rglob("*")):
        if path.is_file() and path.suffix != ".md":  # texts are the project's own
            key = path.relative_to(paths.ASSETS.parent).as_posix()
            assert notice.get(key) == hashlib.sha256(path.read_bytes()).hexdigest(), key


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(ConfigError, match=r"'yolo'.*centerface, face-mesh, fashion, hand"):
        open_pipeline("yolo")


def test_an_unknown_option_lists_the_valid_ones() -> None:
    with pytest.raises(ConfigError, match=r"'colour'.*iou, labels, score"):
        open_pipeline("nanodet", colour="red")


def test_a_path_needs_functions_around_it() -> None:
    with pytest.raises(ConfigError, match=r"needs preprocess and decode, such as .*ImageInput"):
        open_pipeline("my/model.onnx")


def test_a_missing_file_of_ones_own_is_named() -> None:
    with pytest.raises(ModelError, match=r"nowhere\.onnx"):
        open_pipeline("nowhere.onnx", preprocess=dict, decode=dict)
