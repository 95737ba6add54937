"""The processors that chunks run on, as globals: decisions are made of look-ups of them."""

from __future__ import annotations

from heimdall.vocabulary.enums import Processor

PROCESSORS: tuple[str, ...] = tuple(Processor)
GPU, CPU = PROCESSORS
