"""Names of systems, and what they mean."""

from __future__ import annotations

import pytest

from heimdall.bench.systems import Kind, parse_system, parse_systems, system_names
from heimdall.errors import ConfigError


@pytest.mark.parametrize("name", system_names())
def test_every_listed_system_can_be_parsed(name):
    assert parse_system(name).name == name


def test_a_bare_scheduler_is_elastic_with_offload():
    system = parse_system("max-total")
    assert system.coordinated
    assert (system.scheduler, system.mode, system.offload) == ("max-total", "elastic", True)


def test_suffixes_choose_static_chunks_and_decline_offload():
    system = parse_system("max-min-static-nooffload")
    assert (system.scheduler, system.mode, system.offload) == ("max-min", "static", False)


def test_a_fixed_system_says_after_how_many_kernels_it_waits():
    assert parse_system("fixed-12").ops == 12
    assert parse_system("fixed-5").kind is Kind.FIXED


@pytest.mark.parametrize(
    "name", ["", "max-totl", "fixed-0", "fixed-", "max-total-nooffload-static"]
)
def test_an_unknown_system_lists_the_valid_ones(name):
    with pytest.raises(ConfigError, match=r"unknown system .*fixed-5.*max-total-static"):
        parse_system(name)


def test_a_list_keeps_its_order():
    assert [s.name for s in parse_systems("max-min, multithread")] == ["max-min", "multithread"]


@pytest.mark.parametrize(
    ("names", "message"), [(" , ", "no system given"), ("fixed-5,fixed-5", "listed twice")]
)
def test_an_impossible_list_is_refused(names, message):
    with pytest.raises(ConfigError, match=message):
        parse_systems(names)
