"""Calls in other processes: all of them are answered, and what goes wrong is said."""

from __future__ import annotations

import math
import os
import sys
import time

import psutil
import pytest

from heimdall.errors import ArgumentError, ConfigError, DeviceError, HeimdallError
from heimdall.lab.simulator.parallel import parse_workers, results

CALLS = [(float(value),) for value in range(20)]


def refuse(value):
    raise ConfigError(f"no {value:g}")


def which_process(_):
    return os.getpid()


def die(_):
    os._exit(3)


def wait(_):
    time.sleep(300)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_call_is_answered(workers):
    found = dict(results(math.sqrt, CALLS, workers))
    assert found == {index: math.sqrt(index) for index in range(20)}


def test_calls_run_in_other_processes_or_in_this_one():
    assert {pid for _, pid in results(which_process, CALLS, 1)} == {os.getpid()}
    assert os.getpid() not in {pid for _, pid in results(which_process, CALLS, 2)}


def test_no_calls_need_no_process():
    assert list(results(math.sqrt, [], 2)) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_call_is_raised(workers):
    with pytest.raises(ConfigError, match="no 1"):
        dict(results(refuse, [(1.0,), (1.0,)], workers))


def test_a_process_that_dies_is_said():
    with pytest.raises(HeimdallError, match="has died"):
        dict(results(die, CALLS, 2))


def test_who_stops_listening_ends_what_runs():
    calls = [(which_process, 0), (wait, 0), (wait, 0)]
    listening = results(_apply, calls, 2)
    _, pid = next(listening)
    worker = psutil.Process(pid)
    listening.close()
    worker.wait(timeout=60)


def _apply(function, argument):
    return function(argument)


@pytest.mark.parametrize(
    ("text", "workers"), [("1", 1), ("16", 16), ("dask://host:8786", "dask://host:8786")]
)
def test_workers_are_a_number_or_a_cluster(text, workers):
    assert parse_workers(text) == workers


@pytest.mark.parametrize("text", ["0", "-1", "many", "dask://host", "http://host:1", "99999"])
def test_other_workers_are_refused(text):
    with pytest.raises(ArgumentError, match="dask://HOST:PORT"):
        parse_workers(text)


def test_a_cluster_without_dask_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(DeviceError, match="heimdall-ar\\[cluster\\]"):
        next(results(math.sqrt, CALLS, "dask://127.0.0.1:1"))


def test_a_cluster_answers_as_processes_do():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=None,
        processes=False,
        protocol="tcp://",
    ) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        assert dict(results(math.sqrt, CALLS, address))[16] == 4.0
