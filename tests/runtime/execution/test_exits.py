"""DNNs of an app that end at an early exit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from heimdall import DNN, ImageInput, Labels, Session
from heimdall.engine.null import NullEngine
from tests.engine.networks_with_exits import BACKBONE, HEADS, declared, model

FRAME = np.zeros((90, 160, 3), np.uint8)


def test_a_dnn_ends_at_an_exit_where_the_whole_network_would_be_late(tmp_path):
    """Ops of 8 ms: the first exit takes 5 of them, the whole network 14."""
    file = tmp_path / "early.onnx"
    nodes = [*BACKBONE, *HEADS[0], *HEADS[1]]
    onnx.save(model(nodes, ["y3", "y1", "y2"], declared()), file)
    dnn = DNN(
        "kind",
        model=str(file),
        preprocess=ImageInput(),
        decode=Labels("abcd"),
        on_event=True,
        latency_constraint_ms=60,
    )
    engine = NullEngine(op_ns=8_000_000, sleep=True)
    options: dict[str, Any] = {"device": engine, "offload": False, "build_first": True}
    with Session([dnn], scheduler="edf-exits", **options) as session:
        session.push(FRAME)
        assert session.wait(session.request("kind"), 20).exit == "first"
        assert session.summary().dnns["kind"].exits == {"first": 1}


def faces_of(scheduler: str) -> dict[str, int]:
    """Which exits a network took that comes with them and without."""
    dnn = DNN("faces", model="centerface", on_event=True, options={"size": (96, 128)})
    options: dict[str, Any] = {"device": NullEngine(), "offload": False, "build_first": True}
    with Session([dnn], scheduler=scheduler, **options) as session:
        session.push(FRAME)
        assert session.wait(session.request("faces"), 20) == []
        return dict(session.summary().dnns["faces"].exits)


def test_a_network_has_its_exits_under_policies_that_use_them():
    assert faces_of("edf-exits") == {"whole": 1}
    assert faces_of("edf-exits-noexits") == faces_of("max-total") == {}
