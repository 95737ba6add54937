"""Every word that is one of a few: options, processors, states of the machine, what is shown.

A member *is* its string: it compares, prints and is written to JSON as that, and wherever one is
asked for, the plain string will do. Each default is the same wherever it stands.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Name(StrEnum):
    """One of a few names. It prints as its string, in a list too."""

    __repr__ = str.__repr__

    @classmethod
    def values(cls) -> tuple[str, ...]:
        """The plain strings, in their order."""
        return tuple(str(member) for member in cls)


class Precision(Name):
    """How a network's weights and activations lie in memory; sums are float. Default: fp32."""

    FP32 = "fp32"
    FP16 = "fp16"  # half the memory and the traffic; results differ in the third digit
    AUTO = "auto"  # fp16 where that is faster and right, by measurement


class ChunkMode(Name):
    """How the end of a chunk is chosen. Default: elastic."""

    ELASTIC = "elastic"  # at run time, several chunks a gap
    STATIC = "static"  # beforehand: the paper's partition of all ops, one chunk a gap
    STATIC_RUNS = "static-runs"  # the same, but a fallback op ends a chunk, and so its gap


class PhoneView(Name):
    """What a phone's browser shows. Default: video."""

    VIDEO = "video"  # finished frames
    OVERLAY = "overlay"  # its own camera at once, and over it what the app draws


class Content(Name):
    """How a changing scene (C of Eq. 4) enters a DNN's utility. Default: aging."""

    AGING = "aging"  # stale results on a moving scene lose utility faster
    PAPER = "paper"  # Eq. 2 as written


class Luminance(Name):
    """What C of Eq. 4 is summed of. Default: cells."""

    CELLS = "cells"  # means of 96 x 54 cells: sensor noise averages out; under 1 ms at any size
    PIXELS = "pixels"  # every pixel of the frame, as Eq. 4 is written


class Admission(Name):
    """What happens to an inference that something newer comes after, and to requests of models:
    ``queue(n)`` refuses those that come while n of a model wait, the others none. Default:
    one-in-flight."""

    ONE_IN_FLIGHT = "one-in-flight"  # it ends first
    REPLACE = "replace"  # it begins anew, where a newer result is on screen sooner that way
    ALL = "all"  # the same as one-in-flight; what requests have in papers that refuse none


class Priority(Name):
    """How urgent a DNN's result is: the presets of Eq. 3's beta. Default: normal."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


# What apps write, for editors to complete; the same as the members.
PrecisionName = Literal["fp32", "fp16", "auto"] | Precision
PriorityName = Literal["low", "normal", "high"] | Priority


class RenderPriority(Name):
    """Whether chunks keep clear of rendering. Default: top."""

    TOP = "top"  # they run in the gap between two frames
    EQUAL = "equal"  # they start as they come, and rendering waits its turn (section 6.1)


class Processor(Name):
    """What chunks run on."""

    GPU = "gpu"
    CPU = "cpu"


class ProcessorKind(Name):
    """What a processor is, whatever it is called."""

    GPU = "gpu"
    CPU = "cpu"
    DSP = "dsp"
    NPU = "npu"
    REMOTE = "remote"  # a server that speaks the Open Inference Protocol


class Trigger(Name):
    """A scheduling event: why a policy is asked."""

    GAP_OPENED = "gap opened"
    JOB_ARRIVED = "job arrived"
    CHUNK_ENDED = "chunk ended"
    FALLBACK_ENDED = "fallback ended"


class Confinement(Name):
    """How the software GPU's threads are kept to cores of their own."""

    REALTIME = "real-time"  # confined, SCHED_RR
    TIME_SLICED = "time-sliced"  # confined, the system's normal policy
    SHARED = "shared"  # GPU and all else take turns on the same cores: there is only one, say
    UNCONFINED = "unconfined"  # not asked for, or the system cannot (macOS, Windows)


class Lane(Name):
    """Where a traced piece of work was done. Other threads have lanes by their names."""

    RENDER = "render"
    GPU = "gpu"
    CPU = "cpu"
    POOL = "pool"  # whichever of its threads that was


class OverlayView(Name):
    """How much a run shows of itself; a key goes through them in this order. Default: panel."""

    PANEL = "panel"
    TIMELINE = "timeline"
    WORLD = "world"  # the panel, and what the world is known by
    SMALL = "small"
    OFF = "off"


class Silent(Name):
    """What follows an op that a network's processor does not support. Default: never."""

    NEVER = "never"  # nothing falls back silently: the network is handed over, as it is scheduled
    BACK = "back"  # the CPU runs it, and the processor goes on behind it
    STAY = "stay"  # the CPU runs it, and all that is left
