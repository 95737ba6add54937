"""What was found out is kept in a file, and no file is worth more than a warning."""

from __future__ import annotations

import os

import pytest

from heimdall.system import findings


def sides(content):
    return tuple(content["sides"].values())


def test_what_was_written_is_read(tmp_path, caplog):
    path = tmp_path / "new" / "a.json"
    findings.write(path, {"sides": {"b": 2, "a": 1}}, "again")
    assert findings.read(path, sides, "again") == (2, 1)
    assert not caplog.records


def test_no_file_is_nothing_to_speak_of(tmp_path, caplog):
    assert findings.read(tmp_path / "a.json", sides, "again") is None
    assert not caplog.records


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"3", b"{}", b'{"sides": 3}', b"\xff", b"[" * 100_000],
)
def test_a_damaged_file_is_reported_and_not_used(tmp_path, caplog, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert findings.read(path, sides, "it is counted again") is None
    assert f"{path} cannot be used" in caplog.text
    assert "it is counted again" in caplog.text


def test_what_the_reader_refuses_is_reported_in_its_words(tmp_path, caplog):
    path = tmp_path / "a.json"
    findings.write(path, {"schema": 2}, "again")

    def parse(content):
        raise ValueError(f"schema {content['schema']} instead of 1")

    assert findings.read(path, parse, "again") is None
    assert "schema 2 instead of 1" in caplog.text


def test_a_file_that_cannot_be_read_is_reported(tmp_path, caplog):
    assert findings.read(tmp_path, sides, "again") is None  # a folder
    assert "cannot be used" in caplog.text


def test_a_full_disk_costs_the_file_alone(tmp_path, caplog, monkeypatch):
    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    findings.write(tmp_path / "a.json", {}, "it is counted at each start")
    assert "cannot be saved (disk full): it is counted at each start" in caplog.text
    assert not list(tmp_path.iterdir())
