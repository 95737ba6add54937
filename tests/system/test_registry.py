"""Names and what they stand for: Heimdall's own, this program's, and other packages'."""

from __future__ import annotations

import logging

import pytest

from heimdall import ConfigError
from heimdall.system import registry as module
from heimdall.system.registry import Registry


def accept(name: str, value: object) -> str | None:
    return None if isinstance(value, int) else f"must be a number, not {value!r}"


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """``offered(package, name=value)`` puts a package on the path whose entry points are these."""
    monkeypatch.syspath_prepend(tmp_path)
    module._entry_points.cache_clear()

    def offer(package: str, **values: str) -> None:
        (tmp_path / f"{package}.py").write_text("ONE = 1\nWORD = 'word'\n")
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in values.items()]
        (info / "entry_points.txt").write_text("[some.numbers]\n" + "\n".join(lines))

    yield offer
    module._entry_points.cache_clear()


@pytest.fixture
def numbers() -> Registry[int]:
    return Registry("number", "some.numbers", {"two": 2, "three": "math:floor"}, accept)


def test_own_values_come_first_and_places_are_imported_when_asked_for(numbers):
    import math

    assert list(numbers) == ["two", "three"]
    assert numbers["two"] == 2
    assert numbers["three"] is math.floor


def test_a_package_adds_a_name(numbers, offered):
    offered("more", one="more:ONE")
    assert "one" in numbers
    assert numbers.find("one") == 1
    assert list(numbers) == ["two", "three", "one"]
    assert numbers.others() == ["one"]


def test_a_program_adds_a_name_and_may_replace_its_own(numbers):
    assert numbers.register("ten", 10) == 10
    numbers.register("ten", 11)
    assert numbers.find("ten") == 11
    with pytest.raises(ConfigError, match=r"number 'two' is a name of Heimdall; choose another"):
        numbers.register("two", 22)
    with pytest.raises(ConfigError, match="number 'x' must be a number, not 'y'"):
        numbers.register("x", "y")
    assert "x" not in numbers


def test_an_unknown_name_lists_all_and_marks_the_broken(numbers, offered):
    offered("bad", half="bad:HALF")
    with pytest.raises(ConfigError, match=r"one of: half \(broken\), three, two"):
        numbers.find("one")


def test_one_that_cannot_be_loaded_is_left_out_with_one_warning(numbers, offered, caplog):
    offered("bad", half="bad:HALF", gone="nowhere_at_all:X", word="bad:WORD")
    with caplog.at_level(logging.WARNING):
        assert list(numbers) == ["two", "three"]
        assert len(numbers) == 2
    assert len(caplog.records) == 3
    with pytest.raises(ConfigError) as caught:
        numbers.find("gone")
    for said in ("number 'gone' of package bad 1.0 (nowhere_at_all:X)", "ModuleNotFoundError"):
        assert said in str(caught.value)
    with pytest.raises(ConfigError, match=r"package bad 1\.0 \(bad:WORD\) must be a number"):
        numbers.find("word")


def test_a_package_that_takes_a_name_of_heimdalls_is_refused_and_named(numbers, offered, caplog):
    offered("thief", two="thief:ONE")
    with caplog.at_level(logging.WARNING):
        assert numbers.find("two") == 2
    expected = "number 'two' of package thief 1.0 is not used: the name is taken by Heimdall"
    assert [record.getMessage() for record in caplog.records] == [expected]


def test_two_packages_with_one_name_are_both_named(numbers, offered):
    offered("first", one="first:ONE")
    offered("second", one="second:ONE")
    with pytest.raises(ConfigError, match=r"offered by package .* 1\.0 and package .* 1\.0"):
        numbers.find("one")
    assert "one" not in list(numbers)


def test_a_program_cannot_take_the_name_of_a_package(numbers, offered):
    offered("more", one="more:ONE")
    with pytest.raises(ConfigError, match=r"a name of package more 1\.0"):
        numbers.register("one", 5)
