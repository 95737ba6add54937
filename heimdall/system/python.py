"""Modules of ours in processes of their own, wherever this one came from.

``python -m`` needs an interpreter. A frozen app (PyInstaller, cx_Freeze, Nuitka) has none:
``sys.executable`` is the app, which would start itself again, and again from there. So it is called
with a mark, by which it becomes the module as soon as it imports heimdall. In a program that embeds
Python ``sys.executable`` is that program: its interpreter is looked for where its library is.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

MARK = "--heimdall-module"
NONE = "no Python interpreter is here: this program embeds Python without one"
_NAMES = ("python", "pypy", "graalpy")
_WHERE = ("bin/python3", "bin/python", "python.exe", "Scripts/python.exe")  # below a prefix


def command(module: str, *arguments: str) -> tuple[str, ...]:
    """What starts a module of ours. Where there is no interpreter, the command is a name that says
    so, and starting it raises FileNotFoundError."""
    if frozen():
        return sys.executable, MARK, module, *arguments
    return _interpreter(), "-m", module, *arguments


def frozen() -> bool:
    """Whether this is an app with Python inside, and no interpreter."""
    return bool(getattr(sys, "frozen", False)) or "__compiled__" in vars(sys.modules["__main__"])


def become() -> None:
    """In a frozen app that was started by ``command``: run that module's ``main``, and end. Else
    nothing."""
    if len(sys.argv) < 3 or sys.argv[1] != MARK or not sys.argv[2].startswith("heimdall."):
        return
    module = sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    sys.exit(importlib.import_module(module).main())


def _interpreter() -> str:
    own = sys.executable or ""
    if Path(own).name.lower().startswith(_NAMES):
        return own
    base = getattr(sys, "_base_executable", "") or ""
    if Path(base).name.lower().startswith(_NAMES):
        return base
    places = [
        Path(prefix) / name for prefix in (sys.exec_prefix, sys.base_prefix) for name in _WHERE
    ]
    return next((str(each) for each in places if os.access(each, os.X_OK)), NONE)
