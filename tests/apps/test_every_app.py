"""Every bundled app with its own networks on its own clip; one of them as a real run."""

from __future__ import annotations

import json
import subprocess
import sys

import cv2
import numpy as np
import pytest

from heimdall.app import app_names, load_app
from heimdall.models.catalog import open_pipeline
from heimdall.system import paths


@pytest.mark.parametrize("name", app_names())
def test_an_app_is_short_enough_to_be_its_own_documentation(name):
    assert len((paths.APPS / f"{name}.py").read_text().splitlines()) <= 200


@pytest.mark.parametrize("name", app_names())
def test_an_app_draws_what_its_networks_find_on_its_clip(name, play, clip, run):
    stage = play(name)
    image = clip(stage.app.clip, 20)
    plain = stage.show(image).astype(int)
    looking = (dnn for dnn in stage.app.dnns if isinstance(dnn.model, str))
    pipelines = {dnn.name: open_pipeline(dnn.model, **dnn.options) for dnn in looking}
    for dnn in stage.app.dnns:
        if not dnn.on_event:
            stage.show(image, **{dnn.name: run(pipelines[dnn.name], image)})
    for dnn, options in stage.requests():  # what the results, or the start, have led to
        stage.show(image, **{dnn: run(pipelines[dnn], image, **options)})
    drawn = np.abs(stage.show(image) - plain).max(axis=2) > 20
    assert 0.005 < drawn.mean() < 0.95


@pytest.mark.slow
def test_a_run_ends_without_errors(tmp_path):
    picture = tmp_path / "last.png"
    command = [sys.executable, "-m", "heimdall", "run", "workspace", "--headless", "--json"]
    command += ["--frames", "20", "--size", "640x360", "--screenshot", str(picture)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["errors"] == []
    assert set(summary["dnns"]) == {dnn.name for dnn in load_app("workspace").dnns}
    assert cv2.imread(str(picture)).shape == (360, 640, 3)
