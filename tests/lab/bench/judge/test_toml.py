"""What is written is what the standard library reads."""

from __future__ import annotations

import tomllib

from heimdall.lab.bench.judge.toml import as_toml


def test_plain_data_comes_back():
    table = {
        "late": {"b": 1.5, "deep": {"c": True}},
        "name": 'a "quoted" \\ line\nand µs \x7f',
        "numbers": [1, 2.5, -3],
        "lists": [[1, 2], []],
        "empty": [],
        "runs": [{"size": [1, 2], "dnns": [{"k": 1}, {"k": 2}]}, {"size": [3, 4], "dnns": []}],
        "key with spaces.and dots": {"x": 1},
    }
    assert tomllib.loads(as_toml(table)) == table


def test_none_is_left_out():
    assert tomllib.loads(as_toml({"a": None, "b": {"c": None}})) == {"b": {}}


def test_values_stand_before_tables_that_would_swallow_them():
    assert tomllib.loads(as_toml({"t": {"x": 1}, "after": 2})) == {"t": {"x": 1}, "after": 2}
