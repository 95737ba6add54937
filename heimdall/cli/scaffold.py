"""The files of a new app: one that runs and explains itself, and its test."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from heimdall.app import app_names
from heimdall.errors import ConfigError
from heimdall.system.paths import replace_file

_TEMPLATES = Path(__file__).with_name("templates")


def new_app(name: str, folder: Path) -> tuple[Path, Path]:
    """Write ``<name>.py`` and ``test_<name>.py`` into ``folder``; returns both paths.

    Raises ConfigError for a name that cannot be one, or where a file is in the way: nothing is
    ever replaced.
    """
    words = re.split(r"[-_ ]+", name.removesuffix(".py").strip().lower())
    module = "_".join(words)
    if not re.fullmatch("[a-z][a-z0-9_]*", module) or keyword.iskeyword(module):
        raise ConfigError(
            f"{name!r} cannot name an app: use letters, digits and - or _, a letter first"
        )
    if module in app_names() or module == "heimdall":
        raise ConfigError(f"{module!r} is a name of Heimdall's own; choose another")
    values = {
        "file": f"{module}.py",
        "class": "".join(word.capitalize() for word in words),
        "title": " ".join(words).capitalize(),
    }
    made = folder / f"{module}.py", folder / f"test_{module}.py"
    for path in made:
        if path.exists():
            raise ConfigError(f"{path} exists already; choose another name, or --folder")
    for path, template in zip(made, ("app.py.txt", "test.py.txt"), strict=True):
        text = Template((_TEMPLATES / template).read_text(encoding="utf-8"))
        try:
            replace_file(path, text.substitute(values).encode())
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error
    return made
