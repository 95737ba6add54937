"""Policies of the software GPU: by name, and with slices that are given back."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.system import policy
from heimdall.system.policy import FIFO, NORMAL, RR, GpuPolicy, parse_policy


@pytest.fixture
def slices(tmp_path, monkeypatch):
    """The file by which the system tells, and is told, how long slices are."""
    path = tmp_path / "sched_rr_timeslice_ms"
    path.write_text("100\n")
    monkeypatch.setattr(policy, "_SLICE_MS", path)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [("rr", RR), ("rr-30", GpuPolicy("rr", 30)), ("fifo", FIFO), ("normal", NORMAL)],
)
def test_a_policy_has_a_name_that_is_read_back(text, expected):
    assert parse_policy(text) == expected
    assert str(expected) == text
    assert expected.realtime == (text != "normal")


@pytest.mark.parametrize(
    "text", ["", "RR", "rr-", "rr-0", "rr-1001", "rr-2.5", "rr-30ms", "fifo-3", "idle", "rr-٣"]
)
def test_another_name_is_refused_with_the_choice(text):
    with pytest.raises(ConfigError, match="rr, rr-N"):
        parse_policy(text)


def test_it_is_described_with_the_slices_that_it_has(slices):
    assert RR.describe() == "SCHED_RR, slices of 100 ms"
    assert parse_policy("rr-30").describe() == "SCHED_RR, slices of 30 ms"
    assert FIFO.describe() == "SCHED_FIFO"
    slices.unlink()
    assert RR.describe() == "SCHED_RR"


def test_slices_are_set_for_the_length_of_a_block(slices):
    with parse_policy("rr-30").in_force():
        assert slices.read_text() == "30"
    assert slices.read_text() == "100"
    with pytest.raises(ZeroDivisionError), parse_policy("rr-30").in_force():
        raise ZeroDivisionError
    assert slices.read_text() == "100"


def test_slices_that_somebody_else_has_set_meanwhile_stay(slices):
    with parse_policy("rr-30").in_force():
        slices.write_text("50")
    assert slices.read_text() == "50"


@pytest.mark.parametrize("kept", [RR, FIFO, NORMAL, GpuPolicy("rr", 100)])
def test_slices_are_left_alone_where_none_are_asked_for(slices, kept):
    before = slices.stat().st_mtime_ns
    kept.check()
    with kept.in_force():
        pass
    assert slices.stat().st_mtime_ns == before


def test_where_slices_cannot_be_set_it_is_said_before_anything_runs(slices, monkeypatch):
    monkeypatch.setattr(policy.os, "access", lambda path, mode: False)  # root may write all files
    parse_policy("rr-100").check()  # it is what they are
    with pytest.raises(DeviceError, match="run as root, or leave the number out"):
        parse_policy("rr-30").check()


def test_a_system_that_refuses_another_length_says_so(slices):
    slices.unlink()
    slices.mkdir()
    with pytest.raises(DeviceError, match="30 ms cannot be set"), parse_policy("rr-30").in_force():
        pass
