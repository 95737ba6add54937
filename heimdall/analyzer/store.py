"""The profile files: shipped ones are read, the user's are read, renewed and written.

A profile that does not belong to what runs now, or cannot be read, is never used: the reason
is logged, and it is measured again and replaced in one step.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from dataclasses import asdict

from heimdall.analyzer.profile import NetworkProfile, ProfileKey
from heimdall.analyzer.profile_file import from_table
from heimdall.analyzer.profiler import (
    QUIET,
    Conditions,
    Progress,
    measure_ops,
    measure_whole,
    no_progress,
)
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork
from heimdall.graph.graph import Graph
from heimdall.system import findings, paths

log = logging.getLogger(__name__)


def load_or_measure(
    graph: Graph,
    gpu: Engine,
    cpu: Engine,
    *,
    network: LoadedNetwork | None = None,
    mode: str | None = None,
    force_fallback: Collection[str] = (),
    remeasure: bool = False,
    conditions: Conditions = QUIET,
    progress: Progress = no_progress,
) -> NetworkProfile:
    """The profile of ``graph`` on these engines, measured now if there is no valid one.

    ``network`` is the graph as it is loaded on ``gpu``, if it is (else it is loaded for the
    measurement); ``mode`` says how the software GPU is confined.
    """
    key = ProfileKey.of(graph, gpu, cpu, mode=mode, force_fallback=force_fallback)
    name = f"{graph.name}-{_digest(key.sha256, key.mode, *key.forced_fallback)}.json"
    names = [op.name for op in network.ops] if network is not None else None
    own, shipped = (
        root / paths.slug(key.device) / name
        for root in (paths.cache_dir() / "profiles", paths.PROFILES)
    )
    why = ""
    # The user's file first: it may be a newer measurement of what is shipped.
    for path in () if remeasure else (own, shipped):
        if (profile := findings.read(path, from_table, "measuring again")) is None:
            continue
        if profile.key != key:
            why = profile.key.differences(key)
        elif names is not None and [op.name for op in profile.ops] != names:
            why = "its ops are no longer those that were measured"
        else:
            return profile
        log.debug("%s is out of date", path)
    if why:
        said = "the saved timings of %s are out of date (%s): measuring it again, once"
        log.warning(said, graph.name, why)
    loaded = network or gpu.load(graph, force_fallback=force_fallback)
    alone = cpu.load(graph)
    try:
        measured = measure_ops(loaded, progress, conditions)
        whole_ns = measure_whole(alone, progress, conditions)
        profile = NetworkProfile.from_measurement(key, loaded, measured, whole_ns)
    finally:
        alone.close()
        if network is None:
            loaded.close()
    findings.write(own, asdict(profile), "it will be measured again")
    return profile


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
