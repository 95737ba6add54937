"""Profiles in files: what is read is what was written, and nothing else is read."""

import json

import pytest

from heimdall.analyzer.profile import NetworkProfile, OpProfile, ProfileKey
from heimdall.analyzer.profile_file import from_json, to_json
from heimdall.engine.null import NullEngine


@pytest.fixture
def profile(graph):
    ops = (
        OpProfile("one", "Conv", 5, flops=10, bytes=3),
        OpProfile("two", "Resize", 7, fallback=True),
    )
    key = ProfileKey.of(graph, NullEngine(), NullEngine(), force_fallback=["Resize"])
    return NetworkProfile("m", key, ops, chunk_cost_ns=1, whole_ns=13, cpu_ns=20, write_ns=2)


def test_profile_survives_being_saved(profile):
    assert from_json(to_json(profile)) == profile


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda table: table.pop("ops"), "no 'ops'"),
        (lambda table: table.update(colour=1), "unknown 'colour'"),
        (lambda table: table.update(ops=3), "ops is 3, not a list"),
        (lambda table: table.update(key=[]), "key is not a table"),
        (lambda table: table.update(cpu_ns=True), "cpu_ns is True, not of type int"),
        (lambda table: table.update(whole_ns=0), "takes no time"),
        (lambda table: table["ops"][1].update(ns=1.5), r"ops\[1\]: ns is 1.5"),
        (lambda table: table["ops"][1].update(ns=-1), "'two' is negative"),
        (lambda table: table["ops"][1].update(bytes=10**400), "'two' is .* beyond all measure"),
        (lambda table: table.update(cpu_ns=1 << 63), "beyond all measure"),
        (lambda table: table["key"].update(forced_fallback=[1]), r"forced_fallback\[0\] is 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(profile, change, named):
    table = json.loads(to_json(profile))
    change(table)
    with pytest.raises(ValueError, match=named):
        from_json(json.dumps(table).encode())
