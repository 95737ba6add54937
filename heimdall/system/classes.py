"""Classes in a user's Python file: ``path/to/file.py``, or with ``:Class`` where it has several."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeVar

from heimdall.errors import AppError, HeimdallError, unknown
from heimdall.system.faults import say

T = TypeVar("T")
_FILE = re.compile(r"(.+\.py)(?::(.*))?")


def is_file(target: str) -> bool:
    """True if that names a Python file, maybe with a class in it."""
    return _FILE.fullmatch(target) is not None


def file_of(target: str, kind: str) -> Path:
    """The file in ``target``, absolute. Raises AppError where there is none; see ``class_of``."""
    file, _ = _parts(target)
    if not os.path.isfile(file):
        raise AppError(f"{kind} file {file} does not exist")
    return Path(file).absolute()


def absolute(target: str) -> str:
    """The same from whatever folder it is looked at."""
    file, wanted = _parts(target)
    return f"{Path(file).absolute()}:{wanted}" if wanted else str(Path(file).absolute())


def class_of(
    target: str, base: type[T], kind: str, module_of: Callable[[Path], str] | None = None
) -> type[T]:
    """The class derived from ``base`` that ``target`` names; its file is imported anew.

    Raises AppError where the file is not there, fails to import, or has no such class; ``kind`` is
    what it should be, in a word. ``module_of``: what the module of a path is called.
    """
    path, (file, wanted) = file_of(target, kind), _parts(target)
    loaded = import_file(path, module_of(path) if module_of else f"heimdall_{kind}_{path.stem}")
    classes = {
        name: value
        for name, value in vars(loaded).items()
        if isinstance(value, type)
        and issubclass(value, base)
        and value is not base
        and value.__module__ == loaded.__name__
    }
    if wanted:
        if wanted not in classes:
            raise AppError(f"{file}: {unknown(f'{kind} class', wanted, classes or ['(none)'])}")
        return classes[wanted]
    if len(classes) != 1:
        found = ", ".join(classes) or "none"
        raise AppError(
            f"{file} must define one {base.__name__} subclass (found: {found}); "
            f"else name it: {file}:Class"
        )
    return next(iter(classes.values()))


class _Loader(SourceFileLoader):
    """Compiles what is in the file: bytecode that is kept counts as current for a second after."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def import_file(path: Path, name: str) -> ModuleType:
    """The module of a file. Raises AppError, or Heimdall's own error, with the line at fault."""
    spec = importlib.util.spec_from_file_location(name, path, loader=_Loader(name, str(path)))
    if spec is None or spec.loader is None:
        raise AppError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except HeimdallError as error:
        raise type(error)(f"{path}{last_line_in(error, path)}: {error}") from error
    except (Exception, SystemExit) as error:
        # The file is the user's: whatever it raises, say where.
        raise AppError(f"{path}{last_line_in(error, path)}: {say(error)}") from error
    return module


def last_line_in(error: BaseException, path: Path) -> str:
    """``", line 5"``: where in the file an error came from; "" if it came from elsewhere."""
    walked = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in walked if frame.f_code.co_filename == str(path)]
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines else ""


def _parts(target: str) -> tuple[str, str]:
    match = _FILE.fullmatch(target)
    return (match[1], match[2] or "") if match else (target, "")
