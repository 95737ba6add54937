"""The house: its rooms, the order in which they may import, and no file in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import heimdall

PACKAGE = Path(heimdall.__file__).parent
# The ground floor first: each imports only from those before it.
ROOMS = (
    "errors",
    "vocabulary",
    "system",
    "graph",
    "schedulers",
    "coordinator",
    "capture",
    "engine",
    "models",
    "analyzer",
    "tracking",
    "render",
    "app",
    "runtime",
    "serve",
    "inspection",
    "cli",
    "lab",
)
MOST_ROOMS, MOST_FILES = 18, 3


def files() -> dict[str, Path]:
    """Every file of the package by its dotted name; a package has that of its folder."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in found.items() if "_bundled" not in name}


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The files of the package that this one imports: within functions, and for the type checker
    alone, too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield inner if inner in known else node.module


def graph() -> dict[str, set[str]]:
    known = files()
    return {name: set(imports(path, known)) for name, path in known.items()}


def room(name: str) -> str:
    """Where a file is: the package itself, and what starts it, are in no room."""
    inner = name.split(".")[1:2]
    return inner[0] if inner and inner != ["__main__"] else ""


def test_there_are_few_rooms_and_each_has_its_place_in_the_order():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    single = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert folders | single == set(ROOMS)
    assert len(ROOMS) <= MOST_ROOMS
    assert len(single) <= MOST_FILES


def test_imports_run_one_way():
    against = [
        f"{name} -> {other}"
        for name, others in graph().items()
        for other in others
        if room(name) and room(other) and ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]
    assert against == []


def test_no_files_import_each_other_in_a_circle():
    left = graph()
    while free := {name for name, others in left.items() if not others & left.keys() - {name}}:
        left = {name: others for name, others in left.items() if name not in free}
    assert left == {}


def test_nothing_imports_the_laboratory_but_itself():
    guests = [
        f"{name} -> {other}"
        for name, others in graph().items()
        for other in others
        if room(other) == "lab" and room(name) != "lab"
    ]
    assert guests == []
    assert any(room(name) == "lab" for name in graph())
