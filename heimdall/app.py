"""What a scenario declares: its DNNs, its rates, and how it reacts and draws.

A scenario is a subclass of App; class attributes declare, methods react. All methods run on
the main thread.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from heimdall import paths
from heimdall.errors import AppError, ConfigError, HeimdallError, unknown

if TYPE_CHECKING:
    from heimdall.capture import Frame
    from heimdall.models.base import Pipeline
    from heimdall.render import Key, Pointer, Scene, Scroll

PRIORITIES = ("low", "normal", "high")
DEFAULT_RATE_HZ = 1.0


@dataclass(frozen=True)
class DNN:
    """One neural network of an app, or several in stages behind one model name.

    ``model`` is a name of the catalogue (``heimdall models``), or a Pipeline.
    ``rate_hz`` is the minimum wanted rate: the DNN runs back to back as the GPU allows,
    ``max_rate_hz`` caps it. ``latency_constraint_ms`` defaults to 1000 / rate_hz.
    ``on_event`` DNNs run only when the app calls ``request``. ``beta``, ``gamma``, ``l0`` and
    ``alpha`` override the priority's preset (paper, Eqs. 2-4). ``force_fallback`` names ONNX
    op types or nodes to run on the CPU, as phones' GPU engines must (paper, section 7.2).
    ``options`` go to the model's pipeline (an input size, say).
    """

    name: str
    model: str | Pipeline
    rate_hz: float = DEFAULT_RATE_HZ
    on_event: bool = False
    latency_constraint_ms: float | None = None
    max_rate_hz: float | None = None
    priority: str = "normal"
    beta: float | None = None
    gamma: float | None = None
    l0: float | None = None
    alpha: float | None = None
    force_fallback: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"DNN {self.name!r}"
        if not self.name:
            raise ConfigError("a DNN needs a name")
        if not self.rate_hz > 0:
            raise ConfigError(f"{where}: rate_hz must be above 0, not {self.rate_hz}")
        if self.max_rate_hz is not None and self.max_rate_hz < self.rate_hz and not self.on_event:
            raise ConfigError(
                f"{where}: max_rate_hz {self.max_rate_hz} is below rate_hz {self.rate_hz}"
            )
        if self.max_rate_hz is not None and not self.max_rate_hz > 0:
            raise ConfigError(f"{where}: max_rate_hz must be above 0, not {self.max_rate_hz}")
        if self.latency_constraint_ms is not None and not self.latency_constraint_ms > 0:
            raise ConfigError(
                f"{where}: latency_constraint_ms must be above 0, not {self.latency_constraint_ms}"
            )
        if self.priority not in PRIORITIES:
            raise ConfigError(f"{where}: {unknown('priority', self.priority, PRIORITIES)}")

    @property
    def constraint_ms(self) -> float:
        """The latency constraint t_max in ms."""
        return self.latency_constraint_ms or 1000.0 / self.rate_hz


class App:
    """Base of every scenario. Override what differs; everything has a sensible default."""

    title: ClassVar[str] = ""
    fps: ClassVar[float] = 30.0
    size: ClassVar[tuple[int, int]] = (1280, 720)
    scheduler: ClassVar[str] = "max-total"
    render_priority: ClassVar[str] = "top"  # "equal": rendering waits its turn (section 6.1)
    content: ClassVar[str] = "aging"  # or "paper": how content variation (Eq. 4) enters utility
    clip: ClassVar[str] = "box.mp4"  # in assets/media: played when there is no camera
    dnns: ClassVar[Sequence[DNN]] = ()

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def request(self, dnn: str, **options: Any) -> None:
        """Ask for one inference of ``dnn`` on the newest frame; options go to its pipeline.

        While one is in flight, only the newest request is kept.
        """
        if dnn not in {declared.name for declared in self.dnns}:
            raise AppError(unknown("DNN", dnn, [declared.name for declared in self.dnns]))
        self.requests.append((dnn, options))

    def start(self) -> None:
        """Called once, before the first frame."""

    def on_result(self, dnn: str, result: Any, frame: Frame) -> None:
        """A DNN has finished; ``result`` is in pixels of ``frame``."""

    def draw(self, scene: Scene) -> None:
        """Add this frame's virtual content; the camera picture is already there."""

    def on_key(self, key: Key) -> None:
        """A key was pressed or released."""

    def on_pointer(self, pointer: Pointer, scene: Scene) -> None:
        """The mouse moved, or a button changed; ``scene.to_picture`` maps to picture pixels."""

    def on_scroll(self, scroll: Scroll) -> None:
        """The mouse wheel turned."""

    def script(self) -> Iterator[float]:
        """The event script of headless runs: yields the seconds to wait before each step."""
        return iter(())


def load_app(target: str) -> type[App]:
    """The App class named by ``target``: a name in apps/, or ``path/to/file.py[:Class]``.

    Raises AppError when there is no such app, the file fails to import, or has no App.
    """
    file, _, wanted = target.partition(":") if ".py" in target else (target, "", "")
    if file.endswith(".py"):
        path = Path(file)
        if not path.is_file():
            raise AppError(f"app file {file} does not exist")
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
            raise AppError(f"{path}: {unknown('app class', wanted, classes or ['(none)'])}")
        return classes[wanted]
    if len(classes) != 1:
        found = ", ".join(classes) or "none"
        raise AppError(
            f"{path} must define one App subclass (found: {found}); else name it: {path}:Class"
        )
    return next(iter(classes.values()))


def app_names() -> list[str]:
    """The bundled apps."""
    return sorted(path.stem for path in paths.APPS.glob("*.py") if not path.stem.startswith("_"))


def _import(path: Path) -> ModuleType:
    name = f"heimdall_app_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AppError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except HeimdallError:
        raise
    except Exception as error:
        # The file is the user's: whatever it raises, say where.
        line = _last_line_in(error, path)
        raise AppError(f"{path}{line}: {type(error).__name__}: {error}") from error
    return module


def _last_line_in(error: BaseException, path: Path) -> str:
    lines = []
    traceback = error.__traceback__
    while traceback:
        if traceback.tb_frame.f_code.co_filename == str(path):
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    return f", line {lines[-1]}" if lines else ""


def validate(app: type[App]) -> None:
    """Check a scenario's declarations; ConfigError or AppError says what is wrong."""
    if not app.fps > 0:
        raise ConfigError(f"{app.__name__}.fps must be above 0, not {app.fps}")
    names = [dnn.name for dnn in app.dnns]
    for dnn in app.dnns:
        if not isinstance(dnn, DNN):
            raise AppError(f"{app.__name__}.dnns must hold DNN(...) values, not {dnn!r}")
        if names.count(dnn.name) > 1:
            raise ConfigError(f"{app.__name__}.dnns has two DNNs named {dnn.name!r}")
    if app.render_priority not in ("top", "equal"):
        raise ConfigError(unknown("render_priority", app.render_priority, ("top", "equal")))
