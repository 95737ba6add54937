"""Shared by all tests: a cache of their own, so that nothing of the user's is read or written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    if "HEIMDALL_TEST_CACHE" in os.environ:  # kept between runs, to make them quick
        os.environ["HEIMDALL_CACHE"] = os.environ["HEIMDALL_TEST_CACHE"]
    else:
        os.environ["HEIMDALL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _own_cores() -> Iterator[None]:
    """A test may confine threads; the next one, and the processes it starts, must not be."""
    from heimdall import softgpu

    softgpu._gpu_tids.clear()  # the GPU threads of tests before
    with softgpu.restored_afterwards():
        yield


@pytest.fixture
def assets() -> Path:
    from heimdall import paths

    return paths.ASSETS
