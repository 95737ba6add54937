"""The priority that a GPU's driver gives to a queue or a context: whose work it takes first."""

from __future__ import annotations

from dataclasses import dataclass

from heimdall.vocabulary.enums import Name


class Level(Name):
    """How urgent work is to a driver, as OpenCL and EGL name it (``REALTIME``: NVIDIA's EGL)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    REALTIME = "realtime"


@dataclass(frozen=True)
class DriverPriority:
    """What a driver was made to do, or says that it does. ``level``: None where it says nothing;
    ``why``: it is not what Heimdall wants, low for networks and high for rendering; or empty."""

    level: Level | None = None
    why: str = ""


NOT_ASKED = DriverPriority(None, "no driver is asked for a priority")
