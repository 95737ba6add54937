"""The reference is made of docstrings: all that is public has one, all that apps import is in."""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import heimdall
from heimdall.system.registry import Registry

PAGES = sorted((Path(__file__).resolve().parents[1] / "docs" / "look-up").rglob("*.md"))
NAMES = [
    name
    for page in PAGES
    for name in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.MULTILINE)
]


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


def described(value: object) -> None:
    assert value.__doc__, value
    for name, method in vars(value).items() if inspect.isclass(value) else ():
        if name[0] != "_" and inspect.isfunction(method):
            assert inspect.getdoc(getattr(value, name)), method.__qualname__


@pytest.mark.parametrize("name", NAMES)
def test_everything_public_says_what_it_is(name):
    value = pkgutil.resolve_name(name)
    described(value)
    for each in public(value) if inspect.ismodule(value) else ():
        described(each)


def test_what_apps_import_is_in_the_reference():
    shown: set[int] = set()
    for name in NAMES:
        value = pkgutil.resolve_name(name)
        shown.add(id(value))
        if inspect.ismodule(value):
            shown.update(id(each) for each in public(value))
    missing = [name for name in heimdall.__all__ if id(getattr(heimdall, name)) not in shown]
    registries = [name for name in missing if isinstance(getattr(heimdall, name), Registry)]
    assert registries == missing
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert [name for name in registries if f"`{name}`" not in text] == []
