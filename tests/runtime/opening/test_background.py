"""Work in processes beside the apps: one of a kind, and who was asked before an app makes room."""

from __future__ import annotations

import time

import pytest

from heimdall.runtime.opening import background

KIND, OTHER = "sorting", "counting"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_one_at_a_time_does_a_kind_of_work():
    with background.alone(KIND) as free:
        assert free
        with background.alone(KIND) as again, background.alone(OTHER) as other:
            assert not again
            assert other
    with background.alone(KIND) as free:
        assert free


def test_a_lock_goes_with_its_process(run_python):
    """However that ends."""
    run_python(
        f"""
        from heimdall.runtime.opening import background
        held = background.alone({KIND!r})
        assert held.__enter__()
        print("null", flush=True)
        import os
        os._exit(0)
        """
    )
    with background.alone(KIND) as free:
        assert free


def test_who_was_asked_before_is_interrupted_and_who_is_asked_later_is_not():
    with background.alone(KIND), background.alone(OTHER):
        pass  # there was one of each
    before_ns = time.time_ns() - 1
    assert not background.interrupted(KIND, before_ns)
    background.interrupt(KIND)
    assert background.interrupted(KIND, before_ns)
    assert not background.interrupted(KIND, time.time_ns() + 1_000_000_000)
    assert not background.interrupted(OTHER, before_ns)


def test_without_work_nothing_is_written(cache):
    background.interrupt(KIND)
    assert not (cache / KIND).exists()
