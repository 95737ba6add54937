from __future__ import annotations

import pytest

from heimdall.lab.simulator.simulate import simulate

APP = """
from heimdall import DNN, App


class Tiny(App):
    size = (320, 180)
    dnns = (DNN("segment", model="selfie", rate_hz=1),)
"""


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "tiny.py").write_text(APP)
    path = tmp_path / "tiny.toml"
    path.write_text('app = "tiny.py"\n[dnns.segment]\nreference = "DeepLab-v3"\n')
    return str(path)


def test_this_machine_is_measured_and_simulated(scenario):
    summary = simulate(scenario, "here", "max-total", seconds=2)
    assert summary["device"]["mode"] == "simulated here"
    assert summary["fps"]["mean"] == pytest.approx(30, rel=0.01)
    assert summary["dnns"]["segment"]["inferences"] > 10
    assert summary["render_ms"]["p50"] > 0
