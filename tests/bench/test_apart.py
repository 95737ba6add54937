from __future__ import annotations

import logging
import sys

from heimdall.bench.apart import Hearing, run_apart

PROGRAM = "import sys; print('out'); print('warning: hot', file=sys.stderr); sys.exit(3)"


def test_output_status_and_what_was_said():
    lines: list[str] = []
    output, status = run_apart([sys.executable, "-c", PROGRAM], lines.append)
    assert (output.strip(), status, lines) == ("out", 3, ["warning: hot"])


def test_a_warning_is_passed_on_once(caplog):
    heard: set[str] = set()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            hearing = Hearing(heard)
            hearing("warning: hot")
            hearing("Segmentation fault")
    assert caplog.messages == ["hot"]
    assert list(hearing.said) == ["Segmentation fault"]
