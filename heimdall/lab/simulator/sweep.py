"""A sweep: every point of a file with every seed, in processes side by side.

Each run is a line of a results file as soon as it has ended. The same command goes on where it was
interrupted: a run that is already there is not made again, as long as nothing has changed that
decides it: scenario, machine, seed, duration, clips, the policy's code, or Heimdall's.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import heimdall
from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.errors import ConfigError
from heimdall.lab.simulator.machine import SimulatedDnn
from heimdall.lab.simulator.parallel import Workers, results
from heimdall.lab.simulator.simulate import Experiment
from heimdall.lab.simulator.sweep_file import Point, Sweep, load_sweep
from heimdall.lab.simulator.watched import Clip
from heimdall.runtime.telemetry.figures import SCHEMA
from heimdall.runtime.telemetry.statistics import over_runs
from heimdall.schedulers import kind_of

log = logging.getLogger(__name__)

OUTPUT = Path("out")  # where results go by default, beside those of `make demo`
_ENDING = ".jsonl"
_PACKAGE = Path(heimdall.__file__).parent

Summary = dict[str, Any]
Runs = Mapping[str, tuple[Experiment, int]]  # by what identifies them


def run_sweep(
    path: Path,
    *,
    output: Path | None = None,
    workers: Workers = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """What ``heimdall simulate --sweep`` prints: for each point ``over_runs`` of its seeds.

    ``output``: the results file (``.jsonl``), or a folder for it. ``workers``: see
    ``parallel.results``. Interrupted, it returns the points that have runs. Raises ConfigError
    before anything runs for a sweep that is impossible, and for a file of something else.
    """
    sweep = load_sweep(path)
    file = _output(path, output)
    found = _kept(file)
    experiments = [(point, _experiment(path, sweep, point)) for point in sweep.points()]
    keys = [_keys(experiment, sweep.seeds) for _, experiment in experiments]
    wanted: Runs = {
        key: (experiment, seed)
        for (_, experiment), each in zip(experiments, keys, strict=True)
        for seed, key in enumerate(each)
    }
    interrupted = _run(sweep.title, wanted, found, file, workers, progress)
    points = [
        _result(point, {seed: found[key] for seed, key in enumerate(each) if key in found})
        for (point, _), each in zip(experiments, keys, strict=True)
    ]
    return {
        "schema": SCHEMA,
        "simulated": True,
        "title": sweep.title,
        "scenario": sweep.scenario,
        "device": sweep.device,
        "seeds": list(range(sweep.seeds)),
        "seconds": sweep.seconds,
        "runs": len(wanted),
        "done": len(wanted.keys() & found.keys()),
        "points": [point for point in points if point["seeds"]],
        "output": str(file),
        "interrupted": interrupted,
    }


def _experiment(path: Path, sweep: Sweep, point: Point) -> Experiment:
    try:
        return sweep.experiment(point)
    except ConfigError as error:
        raise ConfigError(f"sweep {path}: {error}") from error


def _result(point: Point, runs: Mapping[int, Summary]) -> dict[str, Any]:
    return {
        "system": point.system,
        "values": dict(point.values),
        "seeds": list(runs),
        "over_runs": over_runs(list(runs.values())),
    }


def _run(
    title: str,
    wanted: Runs,
    found: dict[str, Summary],
    file: Path,
    workers: Workers,
    progress: Progress,
) -> bool:
    """Make the runs that are not found yet, and keep each; returns whether it was interrupted."""
    missing = [key for key in wanted if key not in found]
    done = len(wanted) - len(missing)
    progress(title, done, len(wanted))
    try:
        with (
            file.open("a", encoding="utf-8") as lines,
            closing(results(Experiment.run, [wanted[key] for key in missing], workers)) as ended,
        ):
            for index, summary in ended:
                key = missing[index]
                found[key] = summary
                lines.write(json.dumps({"key": key, "summary": summary}) + "\n")
                lines.flush()
                done += 1
                progress(title, done, len(wanted))
    except KeyboardInterrupt:
        log.warning("interrupted: %d of %d runs are kept in %s", done, len(wanted), file)
        return True
    except OSError as error:
        raise ConfigError(f"results {file}: {error.strerror or error}") from error
    return False


# --- the results file ---------------------------------------------------------------------------


def _output(path: Path, output: Path | None) -> Path:
    """The results file, in a folder that exists."""
    file = output or OUTPUT
    if file.suffix != _ENDING:
        file = file / f"{path.stem}{_ENDING}"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError as error:
        raise ConfigError(f"results {file}: {error.strerror or error}") from error
    return file


def _kept(file: Path) -> dict[str, Summary]:
    """The runs in a results file, by their keys; half a line at its end was being written when
    something ended that, and is cut off. Raises ConfigError for a file of something else."""
    found: dict[str, Summary] = {}
    whole = 0
    content = file.read_bytes()
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        try:
            kept = json.loads(line)
            found[kept["key"]] = kept["summary"]
        except (ValueError, KeyError, TypeError) as error:
            if whole + len(line) < len(content) or not found:
                raise ConfigError(
                    f"results {file}: line {number} is no result of a sweep; give another file "
                    "(--output), or remove this one"
                ) from error
            log.warning("results %s: line %d is half a line; its run is made again", file, number)
            with file.open("r+b") as damaged:
                damaged.truncate(whole)
            break
        whole += len(line)
    return found


def _keys(experiment: Experiment, seeds: int) -> list[str]:
    """What identifies the run of each seed: all that decides it."""
    about = repr(
        (
            _code(_PACKAGE),
            (sys.version_info[:2], np.__version__),
            experiment.scenario,
            experiment.machine,
            experiment.dnns,
            _clips(experiment.dnns),
            experiment.models,
            experiment.system,
            _policy(experiment.system.scheduler),
            experiment.seconds,
        )
    )
    digest = hashlib.sha256(about.encode()).hexdigest()[:24]
    return [f"{digest}-{seed}" for seed in range(seeds)]


def _clips(dnns: Iterable[SimulatedDnn]) -> list[str]:
    """Digests of the clips that networks look at."""
    seen = [dnn.watched.files for dnn in dnns if isinstance(dnn.watched, Clip)]
    return [_contents((path,)) for files in seen for path in files]


def _policy(scheduler: str | None) -> str:
    """A digest of the code of a policy that is not Heimdall's: its file or package, and what it has
    imported from its own folder; "" for one of Heimdall's."""
    if scheduler is None:
        return ""
    path = Path(inspect.getfile(kind_of(scheduler))).resolve()
    if path.is_relative_to(_PACKAGE.resolve()):
        return ""
    files = {path}
    for module in tuple(sys.modules.values()):
        file = Path(getattr(module, "__file__", None) or "").resolve()
        if file.suffix == ".py" and file.is_relative_to(path.parent):
            files.add(file)
    return _contents(sorted(files))


@lru_cache
def _code(package: Path) -> str:
    """A digest of all of Heimdall's code: any of it may decide what a simulation comes to."""
    return _contents(sorted(package.rglob("*.py")))


def _contents(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()
