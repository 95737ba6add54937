"""Shared by the tests of what commands print."""

from __future__ import annotations

import pytest

from heimdall.cli import tables


@pytest.fixture
def shown(capsys):
    """``shown(parts)``: what is printed of them, line by line."""

    def lines(parts) -> list[str]:
        tables.show(*parts)
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return lines
