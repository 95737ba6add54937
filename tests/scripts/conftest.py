"""Scripts come with a checkout, not with an installed package."""

from __future__ import annotations

from pathlib import Path

THERE = (Path(__file__).resolve().parents[2] / "scripts").is_dir()
collect_ignore_glob = [] if THERE else ["test_*.py"]
