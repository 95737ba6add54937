"""The shopping app runs headless for real: networks, coordination, picture, video and trace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

pytestmark = pytest.mark.slow

FRAMES = 90
SIZE = (1280, 720)  # the 4:3 clip covers columns 160 to 1120
PICTURE = (slice(0, 720), slice(160, 1120))
OVERLAY = (slice(15, 250), slice(15, 160))  # of its panel, what lies beside the picture
TABLE = (slice(82, 180), slice(45, 240))  # what the panel leaves of the picture, a quarter as large


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("shopping")
    command = [sys.executable, "-m", "heimdall", "run", "shopping", "--headless", "--json"]
    command += ["--frames", str(FRAMES), "--size", "x".join(map(str, SIZE))]
    for option, name in (("screenshot", "last.png"), ("trace", "t.json"), ("record", "v.mp4")):
        command += [f"--{option}", str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(folder=folder, summary=json.loads(done.stdout), stderr=done.stderr)


@pytest.fixture(scope="module")
def clip(run: SimpleNamespace) -> np.ndarray:
    """The clip's frames as the surface shows them, a quarter of the size."""
    from heimdall.system import paths

    capture = cv2.VideoCapture(str(paths.ASSETS / "media" / "room.mp4"))
    frames = []
    while (read := capture.read())[0]:
        frames.append(cv2.resize(read[1], (240, 180), interpolation=cv2.INTER_AREA))
    return np.stack(frames)


def test_the_summary_has_every_documented_field(run):
    summary = run.summary
    assert {
        "schema", "app", "wall_s", "startup_s", "ready_s", "source", "scheduler", "device",
        "fps_target", "frames", "seconds", "fps", "frame_interval_ms", "late_frames", "render_ms",
        "gpu", "cpu_core_s", "gap_utilization", "decision_us", "dnns", "memory_mb", "errors",
    } <= summary.keys()  # fmt: skip
    assert (summary["schema"], summary["app"], summary["frames"]) == (1, "shopping", FRAMES)
    assert summary["errors"] == []
    assert set(summary["dnns"]) == {"detect", "segment", "hand", "style"}
    for figures in summary["dnns"].values():
        assert {
            "inferences", "latency_ms", "end_to_end_ms", "gpu", "cpu", "chunks",
            "fallback_ops", "deadline_misses",
        } <= figures.keys()  # fmt: skip
        assert figures["inferences"] == figures["gpu"] + figures["cpu"]
    assert summary["dnns"]["hand"]["stages"] == 2


def test_every_network_produces_results_and_none_has_fallback_ops(run):
    for name, figures in run.summary["dnns"].items():
        assert figures["inferences"] > 0, name
        assert figures["fallback_ops"] == 0, name


def test_the_last_picture_shows_camera_couch_and_overlay(run, clip):
    picture = cv2.imread(str(run.folder / "last.png"))
    assert picture.shape == (SIZE[1], SIZE[0], 3)
    shown = cv2.resize(picture[PICTURE], (240, 180), interpolation=cv2.INTER_AREA)
    difference = np.abs(clip.astype(int) - shown).mean(axis=3)
    nearest = int(np.median(difference, axis=(1, 2)).argmin())
    # Most of the picture is the camera's, in its place and its colours ...
    assert np.median(difference[nearest]) < 12
    # ... except where the couch stands on the table, textured, and its card beside it. Compared
    # at a quarter of the size: of a clip enlarged again each sharp edge would differ.
    drawn = difference[nearest][TABLE] > 30
    rows, _ = drawn.nonzero()
    assert 500 < len(rows) < 5_000
    assert np.ptp(rows) < 95
    couch = shown[TABLE][drawn]
    assert couch.std(axis=0).mean() > 25
    # The overlay's text is bright on its dark panel; the bar beside it is empty below.
    panel, bar = picture[OVERLAY], picture[slice(400, 700), slice(15, 160)]
    assert (panel.max(axis=2) > 180).mean() > 0.02
    assert bar.max() < 60


def test_the_room_is_known_and_the_couch_stands_in_it(run):
    world = run.summary["world"]
    assert world["tracked"] > 0.8
    assert world["pose_ms"]["p50"] > 0


def test_the_recording_plays_and_shows_movement(run):
    recorded = run.summary["outputs"]["record"]
    assert recorded["error"] is None
    assert recorded["frames"] + recorded["dropped"] >= FRAMES
    video = cv2.VideoCapture(str(run.folder / "v.mp4"))
    assert int(video.get(cv2.CAP_PROP_FRAME_COUNT)) == recorded["frames"]
    # Read one by one: OpenCV seeks by the mean rate, which frames left out make wrong.
    first = video.read()[1]
    for _ in range(recorded["frames"] - 1):
        later = video.read()[1]
    assert first.shape == (SIZE[1], SIZE[0], 3)
    assert np.abs(first.astype(int) - later).mean() > 1


def test_the_recorded_run_replays_with_identical_actions(run):
    from heimdall.coordinator.replay import replay
    from heimdall.runtime.telemetry.trace import read_recording

    recording = read_recording(run.folder / "t.json")
    assert len(recording.records) > 2 * FRAMES
    assert list(replay(recording.config, recording.records)) == []


def test_the_trace_has_every_lane_at_work_and_says_why(run):
    events = json.loads(Path(run.folder / "t.json").read_text())["traceEvents"]
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
    spans = [e for e in events if e["ph"] == "X"]
    assert {"render", "gpu", "pool-0"} <= {lanes[e["tid"]] for e in spans}
    chunks = [e for e in spans if lanes[e["tid"]] == "gpu"]
    assert all(e["args"]["reason"] for e in chunks)
    assert sum(lanes[e["tid"]] == "render" for e in spans) >= FRAMES
