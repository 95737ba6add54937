"""The processors that chunks run on, by name."""

from __future__ import annotations

GPU = "gpu"
CPU = "cpu"
