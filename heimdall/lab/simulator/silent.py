"""Ops that fall back silently: what frameworks for one network on one processor do (Band, MobiSys
'22, sections 4.2 and 6.2).

The processor is the network's for as long as it takes, and idle whenever an op runs on the CPU
instead, which no scheduler is told. Band without subgraphs runs networks so, and so do both of its
baselines: TensorFlow Lite, which leaves everything behind the first such op to the CPU, and
TFLite+MaxPartition, which goes back and forth. (Not one processor and many of them, as one may
read: both give each network a processor of its own.)
"""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.vocabulary.enums import Silent

OnProcessors = tuple[tuple[str, tuple[int | None, ...]], ...]  # StagePlan.on


def falling_back(
    on: OnProcessors, host: str, cut_ns: Sequence[int] = (), silent: str = Silent.BACK
) -> OnProcessors:
    """The latency of each op by the processor that the network is given to, as if that supported
    what ``host`` runs for it; going over to the other one costs ``cut_ns`` of the op. A processor
    that supports nothing is left out. Unchanged without such a host, and for ``Silent.NEVER``.
    """
    latencies = dict(on)
    there = latencies.get(host)
    if silent == Silent.NEVER or there is None:
        return on
    return tuple(
        (name, here if name == host else _with(there, here, cut_ns, stay=silent == Silent.STAY))
        for name, here in on
        if any(ns is not None for ns in here)
    )


def _with(
    there: Sequence[int | None],
    here: Sequence[int | None],
    cut_ns: Sequence[int],
    *,
    stay: bool,
) -> tuple[int | None, ...]:
    found: list[int | None] = []
    away = False
    for op, (host_ns, own_ns) in enumerate(zip(there, here, strict=True)):
        was_away, away = away, own_ns is None or (away and stay)
        ns = host_ns if away else own_ns
        if ns is not None and away != was_away and op and cut_ns:
            ns += cut_ns[op]
        found.append(ns)
    return tuple(found)
