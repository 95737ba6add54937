"""Environment variables are there inside a block, and as they were behind it."""

from __future__ import annotations

import os

import pytest

from heimdall.system.environment import variables

NAMES = ("HEIMDALL_TEST_SET", "HEIMDALL_TEST_NEW", "HEIMDALL_TEST_REMOVED")
SET, NEW, REMOVED = NAMES


@pytest.fixture(autouse=True)
def _before(monkeypatch):
    monkeypatch.setenv(SET, "as it was")
    monkeypatch.delenv(NEW, raising=False)
    monkeypatch.setenv(REMOVED, "as it was")


def found():
    return [os.environ.get(name) for name in NAMES]


def test_variables_hold_within_the_block_alone():
    with variables({SET: "1", NEW: "2", REMOVED: None}):
        assert found() == ["1", "2", None]
    assert found() == ["as it was", None, "as it was"]


def test_a_block_that_fails_puts_them_back_too():
    with pytest.raises(ZeroDivisionError), variables({SET: "1", NEW: "2", REMOVED: None}):
        raise ZeroDivisionError
    assert found() == ["as it was", None, "as it was"]


def test_a_variable_that_cannot_be_set_leaves_the_others_as_they_were():
    with pytest.raises(ValueError, match="null"), variables({SET: "1", NEW: "\0"}):
        pytest.fail("the block is not entered")
    assert found() == ["as it was", None, "as it was"]


def test_what_somebody_else_has_set_meanwhile_stays():
    with variables({SET: "1", NEW: "2", REMOVED: None}):
        os.environ[SET] = os.environ[REMOVED] = "another"
    assert found() == ["another", None, "another"]


def test_a_block_within_a_block_gives_back_what_the_outer_one_set():
    with variables({SET: "1"}):
        with variables({SET: "2", NEW: "2"}):
            assert found() == ["2", "2", "as it was"]
        assert found() == ["1", None, "as it was"]
    assert found() == ["as it was", None, "as it was"]
