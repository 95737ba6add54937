"""Finds an app by name or file, makes it, and checks what it declares."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from heimdall.app.app import App
from heimdall.app.dnn import DNN, is_positive, wanted
from heimdall.app.options import (
    MAX_FPS,
    MAX_SIDE,
    PICTURES,
    SESSIONS,
    VIDEOS,
    check_scheduler,
    check_size,
)
from heimdall.errors import AppError, ConfigError, unknown
from heimdall.system import paths
from heimdall.system.classes import class_of, is_file, last_line_in
from heimdall.system.faults import say
from heimdall.vocabulary.enums import Admission, Content, Luminance, RenderPriority

# Endings of what an app looks at, which people give instead of an app.
SOURCES = {*VIDEOS, *SESSIONS, *PICTURES, ".bmp", ".webp", ".gif", ".mov", ".mkv", ".avi", ".webm"}
SOURCES |= {".tif", ".tiff", ".pgm", ".ppm", ".tga", ".jp2", ".avif", ".ts", ".mts", ".mpg"}


def load_app(target: str) -> type[App]:
    """The App class named by ``target``: a name in apps/, or ``path/to/file.py[:Class]``.

    Raises AppError when there is no such app, the file fails to import, or has no App.
    """
    if is_file(target):
        return class_of(target, App, "app", _module_of)
    path = paths.APPS / f"{target}.py"
    if not os.path.isfile(path) or target.startswith("_"):
        raise AppError(_no_app(target))
    return class_of(str(path), App, "app", _module_of)


def _no_app(target: str) -> str:
    if "://" in target or Path(target).suffix.lower() in SOURCES:
        return (
            f"{target!r} is no app: it goes to one as its source, "
            f"such as heimdall run surroundings --source {target}"
        )
    return unknown("app", target, app_names()) + ", or give a file: path/to/app.py[:Class]"


def app_names() -> list[str]:
    """The bundled apps."""
    return sorted(path.stem for path in paths.APPS.glob("*.py") if not path.stem.startswith("_"))


def _module_of(path: Path) -> str:
    """What an app's module is called. A bundled one belongs to a package, so that it may import
    what stands beside it."""
    return f"{_package()}.{path.stem}" if path.parent == paths.APPS else f"heimdall_app_{path.stem}"


def _package() -> str:
    """The package of the bundled apps: a folder beside ``heimdall``, or inside it in a wheel."""
    name = "heimdall_apps"
    if name not in sys.modules:
        package = sys.modules[name] = ModuleType(name, "The bundled apps.")
        package.__path__ = [str(paths.APPS)]
    return name


def create(app: type[App]) -> App:
    """An instance of a scenario; AppError when its ``__init__`` fails."""
    try:
        return app()
    except (Exception, SystemExit) as error:
        where = getattr(sys.modules.get(app.__module__), "__file__", None)  # none in a notebook
        line = last_line_in(error, Path(where)) if where else ""
        raise AppError(f"{where or app.__name__}{line}: {app.__name__}(): {say(error)}") from error


def validate(app: type[App]) -> None:
    """Check a scenario's declarations; ConfigError or AppError says what is wrong."""
    where = app.__name__
    if not (is_positive(app.fps) and app.fps <= MAX_FPS):
        limits = f"above 0, at most {MAX_FPS:g}"
        raise ConfigError(f"{where}.fps must be {wanted(app.fps, limits)}")
    try:
        check_size(app.size)
    except ConfigError:
        raise ConfigError(
            f"{where}.size must be (width, height) in pixels, 1 to {MAX_SIDE}, not {app.size!r}"
        ) from None
    check_scheduler(app.scheduler, where)
    for name, valid in (
        ("content", Content.values()),
        ("luminance", Luminance.values()),
        ("admission", Admission.values()),
        ("render_priority", RenderPriority.values()),
    ):
        if getattr(app, name) not in valid:
            raise ConfigError(f"{where}: {unknown(name, getattr(app, name), valid)}")
    names: set[str] = set()
    _validate_dnns(f"{where}.dnns", app.dnns, names)
    _validate_dnns(f"{where}.sound_dnns", app.sound_dnns, names)
    for dnn in app.sound_dnns:
        if dnn.hears is None:
            raise ConfigError(f"{where}.sound_dnns: DNN {dnn.name!r} does not hear; give it hears")
    _validate_world(where, app.world)


def _validate_dnns(where: str, dnns: object, names: set[str]) -> None:
    """``names``: those that are taken, to which these are added."""
    if not isinstance(dnns, Sequence) or isinstance(dnns, str):
        raise AppError(f"{where} must be a list of DNN(...) values, not {dnns!r}")
    for dnn in dnns:
        if not isinstance(dnn, DNN):
            raise AppError(f"{where} must hold DNN(...) values, not {dnn!r}")
        if not dnn.name:
            raise ConfigError(f"{where}: DNN(model={dnn.model!r}) needs a name")
        if dnn.name in names:
            raise ConfigError(f"{where} has two DNNs named {dnn.name!r}")
        names.add(dnn.name)


def _validate_world(where: str, world: object) -> None:
    if world is None:
        return
    from heimdall.tracking import World  # OpenCV comes with it

    if not isinstance(world, World):
        raise AppError(f"{where}.world must be World(...) or None, not {world!r}")
