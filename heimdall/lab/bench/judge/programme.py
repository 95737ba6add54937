"""The programme: what is measured, for how long, in which order, and what comes of it.

Each part runs in a process of its own (``heimdall measure-part``), so that one that fails, or
hangs a driver, costs only itself: the row says "not measured", and why.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import check_number, check_writable
from heimdall.errors import ArgumentError, ConfigError, HeimdallError, unknown
from heimdall.lab.bench.apart import Hearing, run_apart
from heimdall.lab.bench.energy import EnergyMeter
from heimdall.lab.bench.judge import engines, facts, networks, preemption, scenarios
from heimdall.lab.bench.judge.toml import as_toml
from heimdall.system import paths

log = logging.getLogger(__name__)

SCHEMA = 1
SCENARIOS = ("shopping", "shopping-phone")
RATES = (30, 60)
SIZES = ((1280, 720), (1920, 1080))
# Seconds of each part; what opens, compiles and profiles before them is apart.
SHARES = {"engine": 40.0, "chunks": 10.0, "preemption": 8.0, "scenarios": 80.0, "energy": 2.0}
SECONDS = sum(SHARES.values())
NOT_MEASURED = "not_measured"
PROGRESS = "progress: "  # begins a line of a part's standard error
_PART = (sys.executable, "-m", "heimdall", "measure-part")

# What a part runs: it is given the arguments of its call as JSON, and ``progress``.
CALLS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "machine": facts.describe_machine,
    "networks": networks.profile_networks,
    "engine": engines.compare_engines,
    "chunks": engines.cost_of_cutting,
    "preemption": preemption.measure_preemption,
    "scenario": scenarios.run_scenario,
}
RunPart = Callable[[str, Mapping[str, Any], Progress], dict[str, Any]]


class FailedPartError(HeimdallError):
    """A part of the programme could not be measured; it has said why."""


@dataclass(frozen=True)
class Programme:
    """What is asked for. Raises ConfigError for values that cannot be."""

    output: Path
    device: str | None = None
    parts: Sequence[str] = tuple(SHARES)
    seconds: float = SECONDS  # of all parts together; of fewer parts, their share of it

    def __post_init__(self) -> None:
        check_number("seconds", self.seconds, above=0)
        for part in self.parts:
            if part not in SHARES:
                raise ArgumentError(unknown("part", part, SHARES), argument="parts", value=part)
        check_writable("output", self.output, (".toml",))

    def seconds_of(self, part: str) -> float:
        """How long a part measures."""
        return SHARES[part] * self.seconds / SECONDS


def measure(
    programme: Programme, progress: Progress = no_progress, run: RunPart | None = None
) -> dict[str, Any]:
    """Measure this machine, and write a file for each way of using its GPU: OpenCL (or what
    ``device`` names), and each of onnxruntime's providers that finds a GPU.

    Returns ``rows``, the ``files`` and whether the user ``interrupted``: what had been measured
    by then is written. Raises HeimdallError when the machine cannot be opened at all.
    """
    run = run or Apart()
    about = run("machine", {"device": programme.device}, progress)
    ways = [programme.device]
    if programme.device is None:
        ways += about["providers"]
    rows, files, interrupted = [], [], False
    for way in ways:
        if way != programme.device:
            about = run("machine", {"device": way}, progress)
        judged = _Judged(programme, way, about)
        try:
            judged.measure(run, progress)
        except KeyboardInterrupt:
            interrupted = True
            log.warning("interrupted: what is missing is not measured")
        if judged.measured or not interrupted:
            path = programme.output
            if way is not None and way != programme.device:
                path = path.with_name(f"{path.stem}-{paths.slug(way)}{path.suffix}")
            _write(path, judged.content())
            rows.append(judged.row)
            files.append(str(path))
        if interrupted:
            break
    return {"schema": SCHEMA, "rows": rows, "files": files, "interrupted": interrupted}


def _write(path: Path, content: Mapping[str, Any]) -> None:
    try:
        paths.replace_file(path, as_toml(content).encode())
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


class _Judged:
    """One way of using this machine's GPU, and what has been found out about it."""

    def __init__(self, programme: Programme, way: str | None, about: Mapping[str, Any]) -> None:
        self._programme, self._way = programme, way
        machine = {key: value for key, value in about.items() if key != "providers"}
        title = f"{about['cpu']}, {about['cores']} cores; {about['gpu']}"
        self.row: dict[str, Any] = {"title": title, "machine": machine}
        for part in SHARES:
            asked = part in programme.parts
            why = "interrupted" if asked else "not asked for"
            self.row[part] = {NOT_MEASURED: why}
        self._profile: dict[str, Any] = {}
        self._runs: list[dict[str, Any]] = []
        self.measured = False

    def content(self) -> dict[str, Any]:
        """What the file holds: the row, and the device to simulate where all of that is known."""
        whole = self._profile and self._runs
        profile = {"profile": {**self._profile, "runs": self._runs}} if whole else {}
        return {"schema": SCHEMA, **self.row, **profile}

    def measure(self, run: RunPart, progress: Progress) -> None:
        """The whole programme; an interruption leaves what has been measured."""
        parts, machine = self._programme.parts, self.row["machine"]
        began_s = time.perf_counter()
        self._warm_up(run, progress)
        machine["warm_up_s"] = round(time.perf_counter() - began_s, 1)
        began_s, stolen_s = time.perf_counter(), _stolen_s()
        try:
            for part in parts:
                if part in ("engine", "chunks", "preemption"):
                    self.row[part] = self._tried(run, part, progress)
            if "energy" in parts:
                self.row["energy"] = self._idle_power(progress)
            if "scenarios" in parts:
                self._scenarios(run, progress)
        finally:
            wall_s = time.perf_counter() - began_s
            machine["measured_s"] = round(wall_s, 1)
            before, after = stolen_s, _stolen_s()
            if before is not None and after is not None:
                share = (after - before) / (wall_s * (psutil.cpu_count() or 1))
                machine["stolen_percent"] = round(100 * share, 2)

    def _warm_up(self, run: RunPart, progress: Progress) -> None:
        """Compile and profile what the parts will find ready."""
        parts = set(self._programme.parts)
        names = SCENARIOS if "scenarios" in parts else (preemption.SCENARIO,)
        asked: dict[str, Any] = {
            "device": self._way,
            "scenarios": names if parts & {"scenarios", "preemption"} else (),
            "models": networks.bundled() if parts & {"engine", "chunks", "scenarios"} else (),
        }
        if asked["scenarios"] or asked["models"]:
            try:
                self._profile = run("networks", asked, progress)
            except HeimdallError as error:
                log.error("the device to simulate: %s", error)

    def _tried(self, run: RunPart, part: str, progress: Progress, **more: Any) -> dict[str, Any]:
        """What came of a part of the programme, or why nothing did."""
        seconds = more.pop("seconds", None) or self._programme.seconds_of(part)
        try:
            found = run(part, {"device": self._way, "seconds": seconds, **more}, progress)
        except HeimdallError as error:
            log.error("%s: %s", part, error)
            return {NOT_MEASURED: str(error)}
        self.measured = True
        return found

    def _scenarios(self, run: RunPart, progress: Progress) -> None:
        seconds = self._programme.seconds_of("scenarios")
        seconds /= len(SCENARIOS) * len(RATES) * len(SIZES)
        self.row["scenarios"] = found = {}
        cases = [(name, fps, size) for name in SCENARIOS for fps in RATES for size in SIZES]
        for name, fps, size in cases:
            found[title(name, fps, size)] = {NOT_MEASURED: "interrupted"}
        for name, fps, size in cases:
            called = title(name, fps, size)
            progress(called, 0, 1)
            each = {"scenario": name, "fps": fps, "size": size, "seconds": seconds}
            came = self._tried(run, "scenario", progress, **each)
            if "run" in came:
                self._runs.append(came["run"])
                self._power(called, came["figures"].pop("power_w"))
            found[called] = came.get("figures", came)
            progress(called, 1, 1)

    def _idle_power(self, progress: Progress) -> dict[str, Any]:
        meter, seconds = EnergyMeter(), self._programme.seconds_of("energy")
        progress("power while idle", 0, 1)
        time.sleep(seconds)
        progress("power while idle", 1, 1)
        watts = meter.watts()
        self.measured = True
        return {NOT_MEASURED: "not readable"} if watts is None else {"idle_w": watts}

    def _power(self, called: str, watts: float | None) -> None:
        if "idle_w" in self.row["energy"] and watts is not None:
            self.row["energy"][f"{called} w"] = watts


def title(scenario: str, fps: float, size: Sequence[int]) -> str:
    """What a run of the programme is called in its row."""
    return f"{scenario} {fps:g} fps {size[1]}p"


def _stolen_s() -> float | None:
    """What the host of a virtual machine has taken of its cores; None where that is not told."""
    return getattr(psutil.cpu_times(), "steal", None)


class Apart:
    """Runs a part in a new process; its warnings and its progress are passed on."""

    def __init__(self) -> None:
        self._heard: set[str] = set()

    def __call__(self, part: str, arguments: Mapping[str, Any], progress: Progress) -> Any:
        """What the part found. Raises FailedPartError when it fails or ends without that."""
        hearing = Hearing(self._heard)

        def hear(line: str) -> None:
            if line.startswith(PROGRESS):
                progress(*json.loads(line.removeprefix(PROGRESS)))
            else:
                hearing(line)

        output, status = run_apart([*_PART, part, json.dumps(arguments)], hear)
        try:
            return json.loads(output)
        except ValueError:
            said = "".join(hearing.said).removeprefix("error: ")
            raise FailedPartError(said or f"it ended with status {status}") from None
