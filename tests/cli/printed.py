"""What commands print, taken apart."""

from __future__ import annotations


def cells(lines: list[str], first: str) -> list[str]:
    """The words of the one line that begins with ``first``."""
    (line,) = [line for line in lines if line.split()[:1] == [first]]
    return line.split()
