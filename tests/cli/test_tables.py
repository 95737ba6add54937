"""Results as people read them: the figures that matter are there, and what is missing is a dash."""

from __future__ import annotations

from typing import Any

from heimdall.capture.formats import Format, Mode, entry
from heimdall.cli import tables
from heimdall.lab.cli import tables as lab_tables

YUYV = Format("YUYV", False, (Mode((1280, 720), (10.0, 5.0)), Mode((640, 480), (29.97,))))
DEVICES: dict[str, Any] = {
    "gpu": None,
    "opencl": [],
    "opencl_error": "no OpenCL device",
    "software_gpu": None,
    "gl": {
        "renderer": None,
        "version": None,
        "es": None,
        "refused": [],
        "priority": None,
        "error": "no EGL",
    },
    "cpu": {"name": "a CPU", "cores": [0, 1]},
    "processors": [{"name": "cpu", "device": "a CPU", "lanes": 2}],
    "onnxruntime": {"version": "1.2", "providers": ["CPU"], "gpu_devices": ["cuda"], "error": None},
    "cameras": [
        entry("0", 0, "Web Cam", formats=[YUYV, Format("MJPG", True, (Mode((1280, 720), ()),))]),
        entry("3", 3, "/dev/video3", error="busy"),
    ],
}


def test_a_machine_without_anything_says_what_is_missing(shown):
    text = "\n".join(shown(tables.device_report(DEVICES)))
    assert "none: no OpenCL device" in text
    assert "no EGL" in text
    assert "as the GPU: --device cuda" in text
    assert "3: /dev/video3 (unusable: busy)" in text
    assert "cpu: a CPU, up to 2 at once" in text


def test_a_camera_tells_its_formats_sizes_and_best_rates(shown):
    text = "\n".join(shown(tables.device_report(DEVICES)))
    assert "0: Web Cam" in text
    assert "YUYV: 1280x720 10 fps, 640x480 30 fps" in text
    assert "MJPG: 1280x720" in text


def test_which_opengl_draws_is_told_and_what_was_refused_before(shown):
    gl = {
        "renderer": "V3D 4.2", "version": "OpenGL ES 3.1 Mesa", "es": True, "error": None,
        "refused": ["OpenGL 3.3 on EGL device 0: too new"], "priority": None,
    }  # fmt: skip
    lines = shown(tables.device_report({**DEVICES, "gl": gl}))
    assert any("OpenGL ES" in line and "V3D 4.2, OpenGL ES 3.1 Mesa" in line for line in lines)
    assert any("refused: OpenGL 3.3 on EGL device 0: too new" in line for line in lines)


def test_a_software_gpu_is_called_one(shown):
    gpu = {
        "name": "PoCL", "platform": "P", "driver": "3", "version": "OpenCL 3", "type": "CPU",
        "compute_units": 1, "priority": {"level": None, "why": "no hint"}, "hints": [],
    }  # fmt: skip
    software = {"mode": "time-sliced", "description": "time-sliced by the system on core 0"}
    report = {**DEVICES, "gpu": gpu, "opencl": [gpu], "software_gpu": software}
    text = "\n".join(shown(tables.device_report(report)))
    assert "PoCL (software GPU, time-sliced, 1 compute unit)" in text
    assert "networks: as usual: no hint" in text
    assert "time-sliced by the system on core 0" in text
    assert "0: PoCL (P, OpenCL 3, 1 compute unit)" in text


def test_what_drivers_make_of_networks_and_of_rendering_is_told(shown):
    gpu = {
        "name": "Adreno", "platform": "P", "driver": "3", "version": "OpenCL 3", "type": "GPU",
        "compute_units": 4, "priority": {"level": "low", "why": ""},
        "hints": ["cl_khr_priority_hints", "cl_qcom_perf_hint"],
    }  # fmt: skip
    gl = {**DEVICES["gl"], "priority": {"level": "medium", "why": "the driver gives medium"}}
    text = "\n".join(shown(tables.device_report({**DEVICES, "gpu": gpu, "gl": gl})))
    assert "networks: low" in text
    assert "rendering: medium: the driver gives medium" in text
    assert "hints of OpenCL: cl_khr_priority_hints, cl_qcom_perf_hint" in text


def test_a_replay_shows_the_first_differences_and_counts_the_rest(shown):
    same: dict[str, Any] = {"steps": 9, "differences": [], "stopped": None}
    assert shown(lab_tables.replay_report(same)) == [
        "9 steps replayed: every action is as recorded"
    ]
    each = {"step": 4, "now_ms": 1.5, "recorded": ["Drop(1)"], "replayed": []}
    many = {**same, "differences": [each] * (lab_tables.MOST_DIFFERENCES + 3)}
    lines = shown(lab_tables.replay_report(many))
    assert lines[1:4] == ["step 4 at 1.500 ms", "  recorded Drop(1)", "  replayed nothing"]
    assert lines[-1] == "... and 3 more"
    stopped = shown(lab_tables.replay_report({**same, "stopped": "job 3 is unknown"}))
    assert stopped[-1] == "stopped: job 3 is unknown"


def test_markup_in_a_name_is_only_text(shown):
    assert shown(["[bold]not bold[/bold]"]) == ["[bold]not bold[/bold]"]


def measured(**changes):
    row = {
        "machine": {
            **dict.fromkeys(("cpu", "gpu", "driver", "mode", "renderer", "os"), "x"),
            "cores": 2,
            "date": "2026-01-02",
            "measured_s": 180.0,
            "warm_up_s": 60.0,
            "stolen_percent": 0.25,
        },
        "engine": {"geometric_mean": {"onnxruntime": 1.5}},
        "chunks": {"pieces": 8, "ratio": 1.05, "ns_a_chunk": 40_000},
        "preemption": {"gpu_free_ms": {"p50": 1.0, "p99": 2.0}},
        "energy": {"not_measured": "not readable"},
        "scenarios": {
            "shopping 30 fps 720p": {
                **{"fps_mean": 30.0, "fps_min": 29.5, "interval_p99_ms": 34.0, "late_share": 0.01},
                "dnns": {"hand": {"mean_ms": 20.0, "worst_ms": None}},
            },
            "shopping 60 fps 720p": {"not_measured": "no GL"},
        },
    }
    return {"rows": [{**row, **changes}], "files": ["m.toml"]}


def test_a_judged_machine_has_its_figures_and_what_is_missing(shown):
    lines = shown(lab_tables.measure_report(measured()))
    text = "\n".join(lines)
    assert "1.50 times as fast as onnxruntime" in text
    assert "0.25% of the cores' time was stolen" in text
    assert "40 us a chunk" in text
    assert "power" in text
    assert "not readable" in text
    (run,) = [line for line in lines if line.startswith("shopping 30")]
    assert "1.0%" in run
    assert "hand 20.0 (-)" in run
    assert any(line.startswith("shopping 60") and "no GL" in line for line in lines)
    assert "written: m.toml" in lines


def test_parts_that_were_not_asked_for_say_so(shown):
    nothing = {"not_measured": "not asked for"}
    parts = ("engine", "chunks", "preemption", "scenarios", "energy")
    lines = shown(lab_tables.measure_report(measured(**dict.fromkeys(parts, nothing))))
    assert sum("not asked for" in line for line in lines) == len(parts)
