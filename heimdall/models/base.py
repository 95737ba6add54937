"""What a network needs around it: how a picture becomes its inputs, and its outputs a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from heimdall.models.memory import Memory
from heimdall.system import paths
from heimdall.vocabulary.hearing import Hearing

if TYPE_CHECKING:
    from heimdall.graph.graph import Graph
    from heimdall.graph.onnx_file import Inputs

ResultT_co = TypeVar("ResultT_co", covariant=True)  # what a pipeline gives the app


@dataclass(frozen=True)
class Prepared:
    """The input tensors of one task, and what its decoder needs to map results back."""

    inputs: Mapping[str, np.ndarray]
    context: Any = None


@dataclass(frozen=True)
class Network:
    """One ONNX file of a pipeline and the input shapes it is run at.

    ``file`` is a bundled file's name, or an absolute path. ``state``: outputs that are inputs of
    the next inference, by name; of the first stage alone.
    """

    file: str
    shapes: Inputs = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the file is; relative names are those of assets/models."""
        return paths.ASSETS / "models" / self.file


class Pipeline(ABC, Generic[ResultT_co]):
    """One DNN as an app sees it: one network, or several in stages (palm, then landmarks).

    All methods are called from pool threads, one call at a time for each job, and must not keep
    state between jobs except what ``prepare`` puts into contexts. Pictures are BGR uint8 of
    shape (height, width, 3), as OpenCV captures them; coordinates in results are pixels of
    that picture (x right, y down).
    """

    networks: tuple[Network, ...]  # one a stage
    # Sides of an input, which the option ``size`` = (height, width) chooses, are multiples of this.
    size_step: int | None = None  # None: there is no choice
    makes = "results"  # what the overlay calls them
    stays = False  # on the GPU whatever its load: what it keeps there is too large to move
    hears: Hearing | None = None  # windows of sound, a Sound instead of each picture

    def bind(self, graphs: Sequence[Graph]) -> None:
        """Told once, before anything else, what the networks are: one graph a stage.

        A pipeline that depends on their shapes reads them here. Raises ModelError when they do
        not fit what was declared.
        """

    def memory(self, graphs: Sequence[Graph]) -> Memory | None:
        """What the first network, or a pipeline that hears, keeps from one inference to the next;
        None: nothing."""
        state = self.networks[0].state if self.networks else {}
        return Memory(graphs[0], state) if state or self.hears else None

    @abstractmethod
    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        """Inputs of ``stage``: exactly one for stage 0; later stages get the decoded results of
        the stage before (``previous``, one each task) and return one a crop, or none."""

    @abstractmethod
    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Any:
        """One task's outputs to a result."""

    def combine(self, results: Sequence[Sequence[Any]], image: np.ndarray) -> ResultT_co:
        """The final result from all stages' results (``results[stage][task]``).

        Default: the single result of a single-stage pipeline.
        """
        result: ResultT_co = results[-1][0]
        return result

    def follow(self, result: Any, past: Any) -> tuple[ResultT_co, Any]:
        """Of a DNN that hears: the result after those before it, and what is to be known of it.

        ``past`` is what was to be known of the last inference that has ended, None at first and
        after a reset. Default: the result as it is.
        """
        return result, None
