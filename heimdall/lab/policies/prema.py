"""PREMA (HPCA '20) as SPLIT's paper has it among its baselines: token-based, network by network."""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.schedulers.base import JobView, View
from heimdall.schedulers.in_order import InOrder, lone_ns, whole
from heimdall.vocabulary.enums import Priority

# A request has as many tokens as its priority says when it comes; these are the levels, too.
_LOW, _NORMAL, _HIGH = 1, 3, 9
_TOKENS = {str(Priority.LOW): _LOW, str(Priority.NORMAL): _NORMAL, str(Priority.HIGH): _HIGH}


class Prema(InOrder):
    """A request gains tokens with the time it has waited, as a multiple of what it takes alone.
    Among those that have reached the highest level that any has, the shortest is next.

    PREMA itself preempts on an NPU, between tiles of a layer. Where SPLIT's paper measures it,
    networks are "coarse-grained tasks" (section 7), and are not interrupted.
    """

    name = "prema"
    reason = "shortest with tokens"

    def order(self, view: View, now_ns: int) -> Sequence[JobView]:
        found, most = [], 0.0
        for job in view.ready:
            own_ns = lone_ns(job)
            tokens = tokens_of(job, own_ns, now_ns)
            most = tokens if tokens > most else most
            found.append((tokens, own_ns, job.id, job))
        level = _HIGH if most >= _HIGH else _NORMAL if most >= _NORMAL else _LOW
        ranked = [(tokens < level, own_ns, id, job) for tokens, own_ns, id, job in found]
        ranked.sort()
        return [each[3] for each in ranked]

    def end(self, job: JobView, view: View) -> int:
        return whole(job)


def tokens_of(job: JobView, own_ns: int, now_ns: int) -> float:
    """What a request that takes ``own_ns`` alone has gathered until now."""
    waited_ns = now_ns - job.enqueued_ns - job.executed_ns
    tokens = _TOKENS[job.priority]
    return tokens * (1 + waited_ns / own_ns) if waited_ns > 0 and own_ns else tokens
