"""What is fuzzed: every kind of input that may come from somebody else."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

NAMES = ("onnx", "gltf", "profile", "scenario", "mcap", "rest", "grpc", "preview", "room")


class FindingError(Exception):
    """An input was neither handled nor refused: its text says what happened instead."""


class Target(ABC):
    """Takes damaged inputs, one after the other, in ``folder``. ``stage``: what is being done."""

    bound_bytes: ClassVar[int] = 1 << 30  # of the process, with all that is loaded
    limit_s: ClassVar[float] = 30.0  # for one input; the first also loads what takes it
    suffix: ClassVar[str] = ""  # of a file with such an input
    stage = "read"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    @abstractmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        """What it was, and the damaged input: the same for the same state of ``random``."""

    @abstractmethod
    def run(self, name: str, raw: bytes) -> str:
        """What became of it, in a word or two. Raises HeimdallError where it is refused, and
        anything else where that should not be."""

    def close(self) -> None:  # noqa: B027  (most have nothing to end)
        """End what it has opened."""


def find(name: str) -> type[Target]:
    """The target of that name."""
    found: type[Target] = importlib.import_module(f"tests.fuzz.targets.{name}").Fuzzed
    return found


def damaged(name: str, seed: int) -> tuple[str, bytes]:
    """What a target is given for a seed: always the same."""
    return find(name).damaged(np.random.default_rng(seed))
