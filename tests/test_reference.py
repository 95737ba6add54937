"""The reference is made of docstrings: everything public has one, and the tool accepts them."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

MAKEFILE = (Path(__file__).resolve().parents[1] / "Makefile").read_text(encoding="utf-8")
API = re.search(r"^API := ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)[1].replace("\\", "").split()
API = [name.strip("'") for name in API]
MODULES = [name for name in API if name[0] != "!"]  # others say what is left out


def public(module: ModuleType) -> list[type | FunctionType]:
    """The classes and functions that a module names in ``__all__``, else those it defines."""
    names = getattr(module, "__all__", [name for name in vars(module) if name[0] != "_"])
    values = [getattr(module, name) for name in names]
    return [
        value
        for value in values
        if (inspect.isclass(value) or inspect.isfunction(value))
        and (hasattr(module, "__all__") or value.__module__ == module.__name__)
    ]


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_says_what_it_is(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for value in public(module):
        assert value.__doc__, value.__qualname__
        for name, method in vars(value).items():
            if name[0] != "_" and inspect.isfunction(method) and inspect.isclass(value):
                assert inspect.getdoc(getattr(value, name)), method.__qualname__


def test_the_tool_makes_a_page_for_each_module_and_for_no_other(tmp_path):
    pytest.importorskip("pdoc")
    command = [sys.executable, "-m", "pdoc", "--no-show-source", "-o", str(tmp_path), *API]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for name in MODULES:
        page = tmp_path / (name.replace(".", "/") + ".html")
        assert page.stat().st_size > 1000
    pages = {path.relative_to(tmp_path).with_suffix("") for path in tmp_path.rglob("*/*.html")}
    assert {".".join(page.parts) for page in pages} == set(MODULES) - {"heimdall"}
