"""One part of a process leaves handles to the others."""

from __future__ import annotations

import sys

import pytest

from heimdall.system.handles import affordable

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no such bound there")


@pytest.fixture
def most():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def limit(handles: int) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (handles, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_it_is_an_eighth_at_most(most):
    most(512)
    assert affordable(1000) == 64
    assert affordable(10) == 10
