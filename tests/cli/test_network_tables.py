"""What is known of networks as people read it."""

from __future__ import annotations

from heimdall.cli import network_tables
from tests.cli.printed import cells


def test_chunks_are_bars_and_one_beyond_the_gap_sticks_out(shown):
    chunks = [
        {"network": "net", "start": 0, "end": 3, "ms": 10.0, "fallback": False, "state_kb": 0.0},
        {"network": "net", "start": 3, "end": 4, "ms": 30.0, "fallback": False, "state_kb": 40.2},
        {"network": "net", "start": 4, "end": 5, "ms": 1.0, "fallback": True, "state_kb": None},
    ]
    report = {"model": "net", "strategy": "gap", "gap_ms": 20.0, "chunks": chunks, "pictures": []}
    lines = shown(network_tables.partition_report(report))
    assert lines[0] == "net: gap, gap 20 ms"
    assert cells(lines, "1")[2:] == ["0-2", "3", "10.00", "50", "0", "#" * 12]
    assert cells(lines, "2")[2:] == ["3-3", "1", "30.00", "150", "40", "#" * 24 + ">"]
    assert cells(lines, "3")[-2:] == ["-", "fallback"]


def test_a_pass_is_a_table_with_a_line_an_op(shown):
    nodes = [["a"], [f"n{index}" for index in range(9)]]
    shapes = [[1, 3, 8, 8], []]
    ops = [
        {"kind": "conv", "output": f"y{index}", "shape": shape, "nodes": names}
        for index, (shape, names) in enumerate(zip(shapes, nodes, strict=True))
    ]
    lines = shown(
        network_tables.pass_report({"passes": [{"network": "net", "pass": "fuse", "ops": ops}]})
    )
    assert lines[0].strip() == "net, fuse: 2 ops"
    assert lines[2].split() == ["conv", "y0", "1x3x8x8", "a"]
    assert lines[3].split(maxsplit=3) == ["conv", "y1", "1", "n0, 7 more, n8"]


def test_what_could_not_be_checked_stands_below_what_could(shown):
    good = {
        "model": "models/a.onnx", "ops": 12, "fallback_ops": ["x"], "max_rel_error": 1.2e-5,
        "gpu_ms": 3.0, "chunked_ms": 3.5, "chunks": 2, "onnxruntime_ms": 9.0,
        "longest_enqueue_ms": None, "activations_mb": 1.5, "cores": 1, "precision": "fp16",
        "error": None,
    }  # fmt: skip
    lines = shown(
        network_tables.check_report(
            {"models": [good, {"model": "b.onnx", "error": "is truncated"}]}
        )
    )
    assert cells(lines, "a.onnx") == [
        "a.onnx", "12", "1", "1.2e-05", "3.00", "3.50", "2", "9.00", "-", "1.5", "1", "fp16"
    ]  # fmt: skip
    assert lines[-1] == "b.onnx: is truncated"
