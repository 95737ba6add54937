"""Worker threads run what they are given, in order, and survive what it raises."""

from __future__ import annotations

import threading

from heimdall.workers import Workers


def test_one_worker_keeps_the_order_and_close_waits_for_all():
    done: list[int] = []
    workers = Workers("test")
    for number in range(50):
        workers.submit(done.append, number)
    workers.close()
    assert done == list(range(50))


def test_an_error_is_logged_and_the_thread_goes_on(caplog):
    def broken() -> None:
        raise RuntimeError("kernel lost")

    finished = threading.Event()
    workers = Workers("gpu")
    workers.submit(broken)
    workers.submit(finished.set)
    workers.close()
    assert finished.is_set()
    assert "gpu: broken failed" in caplog.text
    assert "kernel lost" in caplog.text


def test_several_workers_run_at_the_same_time():
    meet = threading.Barrier(2, timeout=10)
    workers = Workers("pool", count=2)
    workers.submit(meet.wait)
    workers.submit(meet.wait)
    workers.close()
    assert not meet.broken
