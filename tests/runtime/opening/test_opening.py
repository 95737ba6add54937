"""What is refused when a run is opened."""

from __future__ import annotations

import pytest

from heimdall import DNN, ArgumentError, Session


def test_the_cpu_has_no_more_workers_than_cores():
    with (
        pytest.raises(ArgumentError, match="cpu_workers=999: each needs a core of its own"),
        Session([DNN("people", model="selfie")], device="onnxruntime", cpu_workers=999),
    ):
        pass
