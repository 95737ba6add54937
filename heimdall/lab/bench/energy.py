"""The power that the processor draws, by its own counters (section 9.7 of the Heimdall paper)."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping
from pathlib import Path

# Linux' powercap: a folder a package (intel-rapl:0; AMD's are called so, too); those of its parts
# have a second number. Reading them takes root's rights on most systems.
FOLDER = Path("/sys/class/powercap")
PACKAGES = "intel-rapl:[0-9]"
EVERY_S = 20.0  # the smallest range that is known, 65 kJ, lasts a minute at 1 kW


class EnergyMeter:
    """Measures from when it is made. Counters start again at 0 beyond their range, which may take
    no longer than minutes: they are read every ``EVERY_S`` seconds, on a thread that ends with the
    meter."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._before = self._read()
        self._used_uj = 0
        self._began_s = time.perf_counter()
        self._lock = threading.Lock()
        if self._before:
            threading.Thread(
                target=_keep_up, args=(weakref.ref(self),), name="energy", daemon=True
            ).start()

    def read(self) -> bool:
        """Add what was used since the last reading; False where nothing can be read."""
        with self._lock:
            now = self._read()
            if not now or now.keys() != self._before.keys():
                return False
            self._used_uj += sum(
                (now_uj - self._before[package][0]) % range_uj
                for package, (now_uj, range_uj) in now.items()
            )
            self._before = now
            return True

    def watts(self) -> float | None:
        """The mean power of all packages until now; None where it cannot be read."""
        joules, seconds = self.joules(), time.perf_counter() - self._began_s
        return None if joules is None or seconds <= 0 else round(joules / seconds, 3)

    def joules(self) -> float | None:
        """The energy of all packages until now; None where it cannot be read."""
        return self._used_uj / 1e6 if self.read() else None

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


def _keep_up(meter_ref: weakref.ref[EnergyMeter]) -> None:
    while True:
        time.sleep(EVERY_S)
        meter = meter_ref()
        if meter is None:
            return
        meter.read()
        del meter


def inference_mj(
    joules: float | None, finished: Mapping[str, int], lone_ns: Mapping[str, float]
) -> dict[str, float] | None:
    """What an inference of each model takes, in mJ: all of a run's energy, idle time included, in
    proportion to what models take alone; None where it is unknown, or nothing was ``finished``."""
    worked_ns = sum(count * lone_ns[name] for name, count in finished.items())
    if joules is None or not worked_ns:
        return None
    return {name: 1000 * joules * ns / worked_ns for name, ns in lone_ns.items()}
