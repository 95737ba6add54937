"""The programme with parts that answer at once: what is written when they fail or are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.lab.bench.judge.programme import SHARES, Apart, FailedPartError, Programme, measure

ABOUT = {"cpu": "C", "cores": 2, "gpu": "G", "providers": []}
FIGURES = {"fps_mean": 30.0, "power_w": None, "dnns": {}}
FOUND = {
    "networks": {"processors": {"gpu": "G"}, "networks": [{"network": "n"}]},
    "engine": {"cores": 1, "geometric_mean": {"onnxruntime": 1.5}, "networks": {}},
    "chunks": {"pieces": 8},
    "preemption": {"times": 3},
}


class Parts:
    """Answers as parts do, and notes what it was asked for."""

    def __init__(self, providers=(), fails=None) -> None:
        self.asked: list[tuple[str, dict]] = []
        self._providers, self._fails = list(providers), fails or {}

    def __call__(self, part, arguments, progress):
        self.asked.append((part, dict(arguments)))
        if part in self._fails:
            raise self._fails[part]
        if part == "machine":
            return {**ABOUT, "providers": self._providers}
        if part == "scenario":
            return {"figures": dict(FIGURES), "run": {"scenario": arguments["scenario"]}}
        return FOUND[part]


def judged(tmp_path: Path, run: Parts, **asked):
    programme = Programme(tmp_path / "m.toml", **{"seconds": 1.4, **asked})
    return measure(programme, run=run)


def read(path) -> dict:
    return tomllib.loads(Path(path).read_text(encoding="utf-8"))


def test_one_file_holds_the_row_and_the_device(tmp_path):
    result = judged(tmp_path, Parts())
    assert result["files"] == [str(tmp_path / "m.toml")]
    content = read(tmp_path / "m.toml")
    assert content["machine"]["cpu"] == "C"
    assert content["engine"]["geometric_mean"] == {"onnxruntime": 1.5}
    assert content["scenarios"]["shopping-phone 60 fps 1080p"] == {"fps_mean": 30.0, "dnns": {}}
    assert len(content["scenarios"]) == len(content["profile"]["runs"]) == 8


def test_each_part_measures_for_its_share(tmp_path):
    parts = Parts()
    judged(tmp_path, parts, seconds=14.0)
    seconds = {part: asked["seconds"] for part, asked in parts.asked if "seconds" in asked}
    assert seconds == pytest.approx(
        {"engine": 4.0, "chunks": 1.0, "preemption": 0.8, "scenario": 1.0}
    )


def test_the_warm_up_comes_first_and_what_is_not_asked_for_is_left_out(tmp_path):
    parts = Parts()
    judged(tmp_path, parts, parts=("chunks",))
    assert [part for part, _ in parts.asked] == ["machine", "networks", "chunks"]
    content = read(tmp_path / "m.toml")
    assert content["engine"] == {"not_measured": "not asked for"}
    assert "profile" not in content


def test_a_part_that_fails_costs_itself_only(tmp_path):
    parts = Parts(fails={"preemption": DeviceError("no GL"), "scenario": DeviceError("too large")})
    judged(tmp_path, parts)
    content = read(tmp_path / "m.toml")
    assert content["preemption"] == {"not_measured": "no GL"}
    assert content["scenarios"]["shopping 30 fps 720p"] == {"not_measured": "too large"}
    assert content["chunks"] == {"pieces": 8}


def test_without_networks_there_is_no_device_to_simulate(tmp_path):
    judged(tmp_path, Parts(fails={"networks": DeviceError("out of memory")}))
    content = read(tmp_path / "m.toml")
    assert content["scenarios"]["shopping 30 fps 720p"] == {"fps_mean": 30.0, "dnns": {}}
    assert "profile" not in content


def test_an_interruption_keeps_what_has_been_measured(tmp_path):
    result = judged(tmp_path, Parts(fails={"preemption": KeyboardInterrupt()}))
    assert result["interrupted"]
    content = read(tmp_path / "m.toml")
    assert content["chunks"] == {"pieces": 8}
    assert content["preemption"] == {"not_measured": "interrupted"}


def test_an_interruption_before_anything_was_measured_writes_nothing(tmp_path):
    result = judged(tmp_path, Parts(fails={"networks": KeyboardInterrupt()}))
    assert result["interrupted"]
    assert result["files"] == []
    assert list(tmp_path.iterdir()) == []


def test_every_way_of_using_a_gpu_is_a_row(tmp_path):
    parts = Parts(providers=["cuda"])
    result = judged(tmp_path, parts)
    assert result["files"] == [str(tmp_path / "m.toml"), str(tmp_path / "m-cuda.toml")]
    devices = [asked["device"] for part, asked in parts.asked if part == "engine"]
    assert devices == [None, "cuda"]


def test_a_device_that_is_named_is_the_only_one(tmp_path):
    parts = Parts(providers=["cuda"])
    judged(tmp_path, parts, device="cuda")
    assert {asked["device"] for _, asked in parts.asked} == {"cuda"}


def test_what_cannot_be_is_refused_before_anything_is_measured(tmp_path):
    with pytest.raises(ConfigError, match=r"'speed'.*chunks, energy"):
        Programme(tmp_path / "m.toml", parts=("speed",))
    with pytest.raises(ConfigError, match="seconds=0"):
        Programme(tmp_path / "m.toml", seconds=0)
    with pytest.raises(ConfigError, match=r"\.toml"):
        Programme(tmp_path / "m.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write there"):
        Programme(tmp_path / "file" / "m.toml")


def test_shares_are_those_of_about_three_minutes():
    assert 120 <= sum(SHARES.values()) <= 180


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to a process of one's own")
def test_ctrl_c_ends_it_and_the_part_that_runs(tmp_path):
    command = [sys.executable, "-m", "heimdall", "measure"]
    process = subprocess.Popen(
        [*command, "--parts", "energy", "--seconds", "9999", "--output", str(tmp_path / "m.toml")],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "idle" in line:
            break
    process.send_signal(signal.SIGINT)
    process.stderr.read()
    assert process.wait() == 130
    assert list(tmp_path.iterdir()) == []


def test_a_part_that_fails_in_its_process_says_why():
    said: list[tuple] = []
    with pytest.raises(FailedPartError, match="no-such-device"):
        Apart()("machine", {"device": "no-such-device"}, lambda *step: said.append(step))
    assert said[0] == ("looking at the machine", 0, 1)
