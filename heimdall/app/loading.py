"""Finds an app by name or file, makes it, and checks what it declares."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from heimdall.app.app import App
from heimdall.app.dnn import DNN, is_positive
from heimdall.app.options import MAX_FPS, MAX_SIDE, check_scheduler, check_size
from heimdall.errors import AppError, ConfigError, HeimdallError, unknown
from heimdall.system import paths
from heimdall.system.faults import say
from heimdall.vocabulary.enums import Admission, Content, Luminance, RenderPriority


def load_app(target: str) -> type[App]:
    """The App class named by ``target``: a name in apps/, or ``path/to/file.py[:Class]``.

    Raises AppError when there is no such app, the file fails to import, or has no App.
    """
    file, _, wanted = target.partition(":") if ".py" in target else (target, "", "")
    if file.endswith(".py"):
        path = Path(file)
        if not path.is_file():
            raise AppError(f"app file {file} does not exist")
        path = path.absolute()
    else:
        path = paths.APPS / f"{file}.py"
        if not path.is_file() or file.startswith("_"):
            raise AppError(
                unknown("app", file, app_names()) + ", or give a file: path/to/app.py[:Class]"
            )
    module = _import(path)
    classes = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, App)
        and value is not App
        and value.__module__ == module.__name__
    }
    if wanted:
        if wanted not in classes:
            raise AppError(f"{file}: {unknown('app class', wanted, classes or ['(none)'])}")
        return classes[wanted]
    if len(classes) != 1:
        found = ", ".join(classes) or "none"
        raise AppError(
            f"{file} must define one App subclass (found: {found}); else name it: {file}:Class"
        )
    return next(iter(classes.values()))


def app_names() -> list[str]:
    """The bundled apps."""
    return sorted(path.stem for path in paths.APPS.glob("*.py") if not path.stem.startswith("_"))


class _Loader(SourceFileLoader):
    """Compiles what is in the file: bytecode that is kept counts as current for a second after."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _import(path: Path) -> ModuleType:
    """The module of an app's file. A bundled one belongs to a package, so that it may import what
    stands beside it."""
    name = f"heimdall_app_{path.stem}"
    if path.parent == paths.APPS:
        name = f"{_package()}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_Loader(name, str(path)))
    if spec is None or spec.loader is None:
        raise AppError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except HeimdallError as error:
        raise type(error)(f"{path}{_last_line_in(error, path)}: {error}") from error
    except (Exception, SystemExit) as error:
        # The file is the user's: whatever it raises, say where.
        raise AppError(f"{path}{_last_line_in(error, path)}: {say(error)}") from error
    return module


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
        line = _last_line_in(error, Path(where)) if where else ""
        raise AppError(f"{where or app.__name__}{line}: {app.__name__}(): {say(error)}") from error


def _last_line_in(error: BaseException, path: Path) -> str:
    walked = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in walked if frame.f_code.co_filename == str(path)]
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines else ""


def validate(app: type[App]) -> None:
    """Check a scenario's declarations; ConfigError or AppError says what is wrong."""
    where = app.__name__
    if not (is_positive(app.fps) and app.fps <= MAX_FPS):
        raise ConfigError(f"{where}.fps must be above 0, at most {MAX_FPS:g}, not {app.fps!r}")
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
    _validate_dnns(where, app.dnns)
    _validate_world(where, app.world)


def _validate_dnns(where: str, dnns: object) -> None:
    if not isinstance(dnns, Sequence) or isinstance(dnns, str):
        raise AppError(f"{where}.dnns must be a list of DNN(...) values, not {dnns!r}")
    names = set()
    for dnn in dnns:
        if not isinstance(dnn, DNN):
            raise AppError(f"{where}.dnns must hold DNN(...) values, not {dnn!r}")
        if not dnn.name:
            raise ConfigError(f"{where}.dnns: DNN(model={dnn.model!r}) needs a name")
        if dnn.name in names:
            raise ConfigError(f"{where}.dnns has two DNNs named {dnn.name!r}")
        names.add(dnn.name)


def _validate_world(where: str, world: object) -> None:
    if world is None:
        return
    from heimdall.tracking import World  # OpenCV comes with it

    if not isinstance(world, World):
        raise AppError(f"{where}.world must be World(...) or None, not {world!r}")
