"""Faults that come again and again, and exceptions that are broken themselves."""

from __future__ import annotations

import logging
import threading

import pytest

from heimdall.errors import ModelError
from heimdall.system.faults import MAX_DIFFERENT, Faults, say


def test_a_fault_that_comes_again_is_counted_not_repeated(caplog):
    faults = Faults()
    for _ in range(3):
        faults.report("no couch", ValueError("x"))
    assert faults.messages == ["no couch (3 times)"]
    assert len(caplog.records) == 1
    assert "ValueError: x" in caplog.text
    assert faults.newest == "no couch"


def test_what_heimdall_itself_refuses_is_one_line_but_for_those_who_debug(caplog):
    fault = ModelError("a.obj: install trimesh")
    caplog.set_level(logging.INFO, "heimdall")
    Faults().report("draw raised it", fault)
    assert caplog.messages == ["draw raised it"]
    caplog.set_level(logging.DEBUG, "heimdall")
    Faults().report("draw raised it", fault)
    assert "ModelError: a.obj: install trimesh" in caplog.messages[1]


def test_faults_that_always_differ_do_not_fill_the_memory():
    faults = Faults()
    for index in range(MAX_DIFFERENT + 50):
        faults.report(f"fault {index}")
    assert len(faults.messages) == MAX_DIFFERENT + 1
    assert faults.messages[-1] == "further faults (50 times)"
    faults.report("fault 0")  # known: counted as itself
    assert faults.messages[0] == "fault 0 (2 times)"


def test_faults_of_several_threads_are_all_counted():
    faults = Faults()

    def work():
        for _ in range(200):
            faults.report("no couch")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults.messages == ["no couch (800 times)"]


class BrokenError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BrokenError(), "BrokenError"),
        (ValueError("no couch"), "ValueError: no couch"),
        (KeyError(), "KeyError"),
    ],
)
def test_an_exception_is_said_in_words_whatever_its_own_text_does(error, said):
    assert say(error) == said


def test_an_exception_that_is_neither_true_nor_false_is_told():
    class UndecidedError(Exception):
        def __bool__(self):
            raise ValueError("undecided")

    faults = Faults()
    faults.report("it failed", UndecidedError())
    assert faults.messages == ["it failed"]
