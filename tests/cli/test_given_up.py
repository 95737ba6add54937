"""The status of a run in which something was given up is 2; what fails now and then leaves it 0."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from heimdall.cli import main
from heimdall.system import paths

SELFIE = str(paths.ASSETS / "models" / "seg_selfie_256.onnx")
HEAD = "from heimdall import App, DNN, Greedy, ImageInput\n"
DRAWS = "class Mine(App):\n    def draw(self, scene):\n"
ALWAYS = HEAD + DRAWS + "        1 / 0\n"
NOW_AND_THEN = HEAD + "class Mine(App):\n    drawn = 0\n    def draw(self, scene):\n"
NOW_AND_THEN += "        self.drawn += 1\n        1 / (self.drawn % 7)\n"
NO_RESULT = (
    HEAD
    + "def decode(outputs, context):\n    raise ValueError('no')\n"
    + f"class Mine(App):\n    eye = DNN(model={SELFIE!r}, rate_hz=9,\n"
    + "              preprocess=ImageInput(), decode=decode)\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "given_up"),
    [(ALWAYS, ["Mine.draw"]), (NOW_AND_THEN, []), (NO_RESULT, ["DNN 'eye'"])],
    ids=["always", "now and then", "no result"],
)
def test_the_status_tells_of_what_was_given_up(tmp_path, code, given_up):
    (tmp_path / "mine.py").write_text(code)
    options = ["--headless", "--frames", "20", "--size", "64x48", "--device", "onnxruntime"]
    done = CliRunner().invoke(main, ["run", str(tmp_path / "mine.py"), *options, "--json"])
    summary = json.loads(done.stdout)
    assert summary["given_up"] == given_up
    assert summary["errors"]
    assert done.exit_code == (2 if given_up else 0)
