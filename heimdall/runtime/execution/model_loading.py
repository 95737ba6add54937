"""A model that answers requests, loaded on every processor that may run it.

Where there are several processors, its ops are *units*: ranges that all of them can begin and end
at, so that a job may go on elsewhere with its tensors in the host's memory. A unit is a range of
ops of each processor's own network; with one processor, it is one of that network's ops.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from heimdall.analyzer.profile import NetworkProfile
from heimdall.analyzer.profiler import Progress, measure_whole, no_progress
from heimdall.analyzer.store import load_or_measure
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork
from heimdall.graph.costs import node_bytes, node_flops
from heimdall.graph.cuts import alive, critical
from heimdall.graph.graph import Graph
from heimdall.runtime.execution.agreement import disagreeing
from heimdall.runtime.execution.deployment import Networks
from heimdall.runtime.execution.unit_network import UnitNetwork
from heimdall.vocabulary.plans import Exit, StagePlan
from heimdall.vocabulary.processors import GPU

log = logging.getLogger(__name__)

MOST_UNITS = 24  # a CPU has a session for each

Border = tuple[str, ...]  # the tensors alive before a unit


class ModelCache:
    """The models that the sessions of a shared GPU serve: each is loaded once."""

    def __init__(self, engines: Mapping[str, Engine], cpu: Engine, mode: str | None) -> None:
        """See ``serve``."""
        self._engines, self._cpu, self._mode = engines, cpu, mode
        self._loaded: dict[str, Networks] = {}  # by the digest of their graphs
        self._users: Counter[str] = Counter()

    def take(self, graph: Graph, progress: Progress = no_progress) -> Networks:
        """A graph's model, loaded if need be. Raises ModelError where a processor cannot run it."""
        key = graph.sha256
        if key not in self._loaded:
            self._loaded[key] = serve(
                graph, self._engines, self._cpu, mode=self._mode, progress=progress
            )
            self._loaded[key].settle()
        self._users[key] += 1
        return self._loaded[key]

    def put_back(self, networks: Networks) -> None:
        """One user less; the last one's networks are freed."""
        key = networks.graphs[0].sha256
        self._users[key] -= 1
        if not self._users[key]:
            self._loaded.pop(key).close()


def serve(
    graph: Graph,
    engines: Mapping[str, Engine],
    cpu: Engine,
    *,
    mode: str | None = None,
    progress: Progress = no_progress,
) -> Networks:
    """Load and profile ``graph`` on these processors. ``cpu``: the engine that stands for CPU cores
    in profiles; ``mode``: see ``load_or_measure``.

    Raises ModelError where one of them cannot run it.
    """
    free = {name: each for name, each in engines.items() if each.cuts_where_asked}
    if graph.exits and len(engines) == 1:  # an exit is a range of the network's own ops
        free = {}
    loaded = {name: each.load(graph) for name, each in engines.items() if name not in free}
    profiles = {
        name: load_or_measure(
            graph, engines[name], cpu, network=network, mode=mode, progress=progress
        )
        for name, network in loaded.items()
    }
    cuts: Sequence[Border] = ()
    if (len(engines) > 1 or free) and not graph.exits:
        cuts = _cuts(graph, loaded, profiles)
    unit_networks, cut_ns = _unit_networks(graph, loaded, engines, cuts)
    if not cuts and len(engines) == 1 and loaded:
        (name, network), *_ = loaded.items()
        unit_networks[name] = UnitNetwork(network, range(len(network.ops) + 1))
    ordered = {name: unit_networks[name] for name in engines}
    stage = replace(_stage(ordered, profiles, cut_ns), exits=_exits(ordered))
    return Networks(graph.name, [graph], [stage], {name: [each] for name, each in ordered.items()})


def _exits(unit_networks: Mapping[str, UnitNetwork]) -> tuple[Exit, ...]:
    """The variants of a network with early exits, where its units are its ops. Elsewhere all of it
    runs: no other processor could go on with what is alive, which depends on the exit."""
    (first, *others) = unit_networks.values()
    by_op = list(first.edges) == list(range(len(first.network.ops) + 1))
    return first.network.exits if by_op and not others else ()


def _cuts(
    graph: Graph, loaded: Mapping[str, LoadedNetwork], profiles: Mapping[str, NetworkProfile]
) -> list[Border]:
    """Where every network can hand over, some way apart; around ops that one lacks too."""
    if not loaded:
        weights = [node_flops(graph, node) + node_bytes(graph, node) for node in graph.nodes]
        places = {index: alive(graph, index) for index in range(1, len(graph.nodes))}
        return [places[index] for index in _apart(weights, dict.fromkeys(places, False))]
    (name, first), *others = loaded.items()
    places = {op: names for op, names in first.handovers.items() if names}
    for _, network in others:
        theirs = {frozenset(names) for names in network.handovers.values()}
        places = {op: names for op, names in places.items() if frozenset(names) in theirs}
    edge = {op: first.ops[op - 1].fallback != first.ops[op].fallback for op in places}
    return [places[op] for op in _apart(profiles[name].plan.op_ns, edge)]


def _apart(weights: Sequence[int], places: Mapping[int, bool]) -> list[int]:
    """The ``places``, in order, that leave about ``MOST_UNITS`` units of the same weight, and
    all that are marked."""
    sums = list(accumulate(weights, initial=0))
    least, last, chosen = sums[-1] / MOST_UNITS, 0, list[int]()
    for place in sorted(places):
        if places[place] or sums[place] - sums[last] >= least:
            chosen.append(place)
            last = place
    return chosen


def _unit_networks(
    graph: Graph,
    loaded: Mapping[str, LoadedNetwork],
    engines: Mapping[str, Engine],
    cuts: Sequence[Border],
) -> tuple[dict[str, UnitNetwork], tuple[int, ...]]:
    """The networks, with those of the ``cuts`` at which they are of one mind, and what it costs to
    hand over at each."""
    while True:
        unit_networks = {}
        for name, engine in engines.items():
            network = loaded.get(name) or engine.load_segments(graph, cuts)
            unit_networks[name] = UnitNetwork(network, _edges(network, cuts))
        alike = [unit_networks[name] for name, engine in engines.items() if engine.computes]
        wrong, cut_ns = disagreeing(graph, alike, len(cuts) + 1)
        if not wrong:
            return unit_networks, cut_ns
        log.warning("%s: not handed over at %d of %d places", graph.name, len(wrong), len(cuts))
        cuts = [cut for index, cut in enumerate(cuts, 1) if index not in wrong]


def _edges(network: LoadedNetwork, cuts: Sequence[Border]) -> list[int]:
    where = {frozenset(names): op for op, names in network.handovers.items()}
    return [0, *(where[frozenset(cut)] for cut in cuts), len(network.ops)]


def _stage(
    unit_networks: Mapping[str, UnitNetwork],
    profiles: Mapping[str, NetworkProfile],
    cut_ns: tuple[int, ...],
) -> StagePlan:
    """The times of units: of ops as profiled; where only whole networks are, in proportion."""
    names = [*profiles, *(name for name in unit_networks if name not in profiles)]
    first = unit_networks[names[0]]
    units = len(first.edges) - 1
    if profiles:
        profile = profiles[names[0]]
        times = {
            name: _sums(unit_networks[name], each.plan.op_ns) for name, each in profiles.items()
        }
        cpu_ns, cost_ns = profile.cpu_ns, profile.chunk_cost_ns
    else:
        cpu_ns, cost_ns = measure_whole(first.network), 0
        times = {names[0]: _shared(cpu_ns, [op.flops + op.bytes for op in first.network.ops])}
    like = times[names[0]]
    held = first.network.held()
    states = [held[op] for op in first.edges[:-1]]
    on = tuple(
        (
            name,
            tuple(
                ns if each.supports(unit) else None
                for unit, ns in enumerate(times.get(name) or _shared(cpu_ns, like))
            ),
        )
        for name, each in unit_networks.items()
    )
    listed = list(unit_networks) != [GPU]
    return StagePlan(
        op_ns=tuple(like),
        fallback=(False,) * units,
        cpu_ns=cpu_ns,
        chunk_cost_ns=cost_ns,
        chunks=((0, units),),
        on=on if listed else (),
        cut_ns=cut_ns if len(unit_networks) > 1 else (),
        state_bytes=tuple(state.bytes for state in states),
        critical=critical(states),
    )


def _sums(unit_network: UnitNetwork, op_ns: Sequence[int]) -> list[int]:
    return [sum(op_ns[start:end]) for start, end in pairwise(unit_network.edges)]


def _shared(total_ns: int, weights: Sequence[int]) -> list[int]:
    """So much in all, in proportion (Band learns the rest from what runs: 4.3.2)."""
    whole = max(sum(weights), 1)
    return [max(1, total_ns * weight // whole) for weight in weights]
