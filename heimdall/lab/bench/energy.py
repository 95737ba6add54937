"""The power that the processor draws, by its own counters (section 9.7 of the Heimdall paper)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

# Linux' powercap: a folder a package (intel-rapl:0; AMD's are called so, too); those of its parts
# have a second number. Reading them takes root's rights on most systems.
FOLDER = Path("/sys/class/powercap")
PACKAGES = "intel-rapl:[0-9]"


class EnergyMeter:
    """Measures from when it is made."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._before = self._read()
        self._began_s = time.perf_counter()

    def watts(self) -> float | None:
        """The mean power of all packages until now; None where it cannot be read."""
        seconds = time.perf_counter() - self._began_s
        now = self._read()
        if not now or now.keys() != self._before.keys() or seconds <= 0:
            return None
        used_uj = sum(
            # a counter starts again at 0 beyond its range
            (now_uj - self._before[package][0]) % range_uj
            for package, (now_uj, range_uj) in now.items()
        )
        return round(used_uj / 1e6 / seconds, 3)

    def joules(self) -> float | None:
        """The energy of all packages until now; None where it cannot be read."""
        watts = self.watts()
        return None if watts is None else watts * (time.perf_counter() - self._began_s)

    def _read(self) -> Mapping[str, tuple[int, int]]:
        """(microjoules, where the counter starts again) of each package."""
        try:
            return {
                package.name: (
                    int((package / "energy_uj").read_text()),
                    int((package / "max_energy_range_uj").read_text()) + 1,
                )
                for package in self._folder.glob(PACKAGES)
            }
        except (OSError, ValueError):
            return {}


def inference_mj(
    joules: float | None, finished: Mapping[str, int], lone_ns: Mapping[str, float]
) -> dict[str, float] | None:
    """What an inference of each model takes, in mJ: all of a run's energy, idle time included, in
    proportion to what models take alone; None where it is unknown, or nothing was ``finished``."""
    worked_ns = sum(count * lone_ns[name] for name, count in finished.items())
    if joules is None or not worked_ns:
        return None
    return {name: 1000 * joules * ns / worked_ns for name, ns in lone_ns.items()}
