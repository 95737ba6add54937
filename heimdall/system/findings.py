"""JSON files of what was found out on this machine: without one it is found out again."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from heimdall.system import paths

log = logging.getLogger(__name__)

T = TypeVar("T")


def read(path: Path, parse: Callable[[Any], T], otherwise: str) -> T | None:
    """What ``parse`` makes of a file's content, or None where there is no file, or (a warning
    says, then what happens ``otherwise``) it cannot be read or is not what ``parse`` takes."""
    try:
        return parse(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        log.warning("%s cannot be used (%s): %s", path, error, otherwise)
        return None


def write(path: Path, content: Any, otherwise: str) -> None:
    """Best effort: that it cannot be saved is a warning, which says what happens ``otherwise``."""
    try:
        paths.replace_file(path, json.dumps(content, indent=1).encode())
    except OSError as error:
        paths.say_unsaved(path, error, otherwise)
