"""What every run passes on to the coordinator."""

from __future__ import annotations

from typing import Any

import numpy as np

from heimdall.app import DNN, App
from heimdall.runtime.session.session import Session
from heimdall.runtime.telemetry.trace import read_recording
from heimdall.vocabulary.events import Group, RunTogether

RED = np.full((180, 320, 3), (0, 0, 255), np.uint8)
OPTIONS: dict[str, Any] = {
    "device": "onnxruntime",
    "offload": False,
    "size": (320, 180),
    "overlay": "off",
    "admission": "replace",
}


class Seeing(App):
    dnns = (DNN("people", model="selfie", on_event=True),)


def test_where_inferences_may_begin_anew_the_coordinator_hears_of_scenes_and_of_other_wishes(
    tmp_path,
):
    trace = tmp_path / "run.json"
    with Session(Seeing, trace=trace, **OPTIONS) as session:
        for number in range(6):
            session.push(RED if number < 4 else 255 - RED)
            session.step()
        for options in ({"size": 1}, {"size": 1}, {"size": 2}):
            session.wait(session.request("people", **options), 20)
    events = [each["event"] for each in read_recording(trace).records if each["event"]]
    changes = [e for e in events if e["type"] == "SceneChanged"]
    assert [e["dnns"] for e in changes[-1:]] == [["people"]]
    assert max(e["luminance_difference"] for e in changes) > 50e6
    asked = [e.get("replaces", False) for e in events if e["type"] == "InferenceRequested"]
    assert asked == [False, False, True]


def test_the_reason_of_what_runs_together_names_every_dnn():
    with Session(Seeing, **OPTIONS) as session:
        groups = [Group(job, dnn, 0, 0, ((0, 1),)) for job, dnn in ((1, "other"), (2, "people"))]
        session._running().acted(RunTogether("gpu", (tuple(groups),), 1, "lowest utility"))
        assert session._running()._reason == "last choice: other, people (lowest utility)"
