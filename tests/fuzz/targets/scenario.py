"""Scenarios, simulated devices and sweeps: TOML files, read and made ready to run."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

import numpy as np

from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.simulator.devices import find_device
from heimdall.lab.simulator.simulate import prepare_any
from heimdall.lab.simulator.sweep_file import load_sweep
from heimdall.system import paths
from tests.fuzz.damage import in_lines, pick
from tests.fuzz.target import Target

FOLDERS = {
    "scenario": paths.ROOT / "heimdall" / "lab" / "scenarios",
    "device": paths.ROOT / "heimdall" / "lab" / "devices",
    "sweep": paths.ROOT / "benchmarks" / "sweeps",
}
SECONDS = 0.2
_MEASURED = paths.PROFILES / "devices" / "xeon-2-cores-pocl.toml"


class Fuzzed(Target):
    """Each kind of file is read as its command would, and begun as a simulation."""

    suffix = ".toml"

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        kind = pick(list(FOLDERS), random)
        return kind, in_lines(pick(_seeds(kind), random).read_bytes(), random)

    def run(self, name: str, raw: bytes) -> str:
        file = self.folder / f"{name}{self.suffix}"
        file.write_bytes(raw)
        self.stage = name
        if name == "scenario":
            scenario = load_scenario(str(file))
            self.stage = "simulate"
            prepare_any(scenario, None, None, seconds=SECONDS)
        elif name == "device":
            find_device(str(file))
            self.stage = "simulate"
            prepare_any("shopping", str(file), None, seconds=SECONDS)
        else:
            sweep = load_sweep(file)
            self.stage = "simulate"
            for point in itertools.islice(sweep.points(), 3):
                sweep.experiment(point)
        return f"begun: {name}"


@cache
def _seeds(kind: str) -> list[Path]:
    found = sorted(FOLDERS[kind].glob("*.toml"))
    return [*found, _MEASURED] if kind == "device" else found
