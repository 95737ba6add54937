"""The processors that chunks run on, as globals and plain strings: decisions are made of look-ups
and comparisons of them, and with members of an enum they take 1% longer."""

from __future__ import annotations

from heimdall.vocabulary.enums import Processor

PROCESSORS = Processor.values()
GPU, CPU = PROCESSORS
