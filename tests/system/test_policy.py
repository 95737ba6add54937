"""Policies of the software GPU, by name."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.system import policy
from heimdall.system.policy import FIFO, NORMAL, RR, parse_policy


@pytest.fixture
def slices(tmp_path, monkeypatch):
    """The file by which the system tells how long slices are."""
    path = tmp_path / "sched_rr_timeslice_ms"
    path.write_text("100\n")
    monkeypatch.setattr(policy, "_SLICE_MS", path)
    return path


@pytest.mark.parametrize(("text", "expected"), [("rr", RR), ("fifo", FIFO), ("normal", NORMAL)])
def test_a_policy_has_a_name_that_is_read_back(text, expected):
    assert parse_policy(text) == expected
    assert str(expected) == text
    assert expected.realtime == (text != "normal")


@pytest.mark.parametrize("text", ["", "RR", "rr-", "rr-2.5", "rr-30ms", "fifo-3", "idle", "rr-30"])
def test_another_name_is_refused_with_the_choice(text):
    with pytest.raises(ConfigError, match="must be rr, fifo or normal"):
        parse_policy(text)


def test_slices_of_the_whole_system_are_not_an_option_of_a_run(slices):
    """One that was killed left them."""
    with pytest.raises(ConfigError, match=r"set their length in .*timeslice_ms, as root"):
        parse_policy("rr-30")
    assert slices.read_text() == "100\n"


def test_it_is_described_with_the_slices_that_the_system_has(slices):
    assert RR.describe() == "SCHED_RR, slices of 100 ms"
    slices.write_text("30\n")
    assert RR.describe() == "SCHED_RR, slices of 30 ms"
    assert FIFO.describe() == "SCHED_FIFO"
    slices.unlink()
    assert RR.describe() == "SCHED_RR"
