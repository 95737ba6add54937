"""Shared by all tests: a cache of their own, so that nothing of the user's is read or written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    if "HEIMDALL_TEST_CACHE" in os.environ:  # kept between runs, to make them quick
        os.environ["HEIMDALL_CACHE"] = os.environ["HEIMDALL_TEST_CACHE"]
    else:
        os.environ["HEIMDALL_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def assets() -> Path:
    from heimdall import paths

    return paths.ASSETS
