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
from heimdall.faults import say
from heimdall.options import CONTENT, MAX_FPS, MAX_SIDE

if TYPE_CHECKING:
    from heimdall.capture import Frame
    from heimdall.models.base import Pipeline
    from heimdall.models.custom import Decode, Preprocess
    from heimdall.render import Key, Pointer, Scene, Scroll
    from heimdall.tracking import Anchor, Tracker

PRIORITIES = ("low", "normal", "high")
DEFAULT_RATE_HZ = 1.0


@dataclass(frozen=True)
class DNN:
    """One neural network of an app, or several in stages behind one model name.

    ``model`` is a name of the catalogue (``heimdall models``), an ``.onnx`` file (looked for
    beside the app's file first) with ``preprocess`` and ``decode`` (see ``models.OnnxPipeline``),
    or a Pipeline.
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
    preprocess: Preprocess | None = None
    decode: Decode | None = None

    def __post_init__(self) -> None:
        where = f"DNN {self.name!r}"
        if not self.name or not isinstance(self.name, str):
            raise ConfigError(f"a DNN needs a name, a text, not {self.name!r}")
        for rate in ("rate_hz", "max_rate_hz", "latency_constraint_ms"):
            value = getattr(self, rate)
            if not (_positive(value) or (value is None and rate != "rate_hz")):
                raise ConfigError(f"{where}: {rate} must be above 0, not {value}")
        if self.max_rate_hz is not None and self.max_rate_hz < self.rate_hz and not self.on_event:
            raise ConfigError(
                f"{where}: max_rate_hz {self.max_rate_hz} is below rate_hz {self.rate_hz}"
            )
        if self.priority not in PRIORITIES:
            raise ConfigError(f"{where}: {unknown('priority', self.priority, PRIORITIES)}")
        if not isinstance(self.model, str) and (self.preprocess or self.decode):
            raise ConfigError(
                f"{where}: preprocess and decode go with the name of a file; "
                f"{type(self.model).__name__} has its own"
            )

    @property
    def pipeline_options(self) -> dict[str, Any]:
        """The arguments of the model's pipeline."""
        own = {"preprocess": self.preprocess, "decode": self.decode}
        return {**self.options, **{name: each for name, each in own.items() if each is not None}}

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
    keys: ClassVar[Mapping[str, str]] = {}  # the app's keys and what they do, for the help card

    requests: list[tuple[str, dict[str, Any]]]
    tracker: Tracker | None  # of the run; None outside of one

    def __new__(cls, *args: Any, **kwargs: Any) -> App:
        # Not in __init__: a scenario's own one may well forget to call this one's.
        self = super().__new__(cls)
        self.requests = []
        self.tracker = None
        return self

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def request(self, dnn: str, **options: Any) -> None:
        """Ask for one inference of ``dnn`` on the newest frame; options go to its pipeline.

        While one is in flight, only the newest request is kept.
        """
        self._check_declared(dnn)
        self.requests.append((dnn, options))

    def carried(self, dnn: str) -> Any:
        """The latest result of ``dnn``, moved with the picture to the frame being drawn.

        Boxes, points, text regions and masks follow what they were found on, and go over to
        each new result within a few frames; a Picture, and an app's own type, come as they are.
        None before the first result. Pixels are those of the frame being drawn.
        """
        self._check_declared(dnn)
        return self.tracker.carried(dnn) if self.tracker else None

    def anchor(self, point: tuple[float, float]) -> Anchor:
        """Pin virtual content to the world at ``point``, pixels of the frame being drawn.

        The Anchor's ``at``, ``scale`` and ``roll`` follow the picture as long as it is kept.
        """
        if self.tracker is None:
            raise AppError("anchor() needs a run: call it from on_result, draw or an input method")
        return self.tracker.anchor(point)

    def start(self) -> None:
        """Called once, before the first frame."""

    def _check_declared(self, dnn: str) -> None:
        if dnn not in {declared.name for declared in self.dnns}:
            raise AppError(unknown("DNN", dnn, [declared.name for declared in self.dnns]))

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


def _import(path: Path) -> ModuleType:
    name = f"heimdall_app_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
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


def create(app: type[App]) -> App:
    """An instance of a scenario; AppError when its ``__init__`` fails."""
    try:
        return app()
    except (Exception, SystemExit) as error:
        where = sys.modules[app.__module__].__file__ if app.__module__ in sys.modules else None
        line = _last_line_in(error, Path(where)) if where else ""
        raise AppError(f"{where or app.__name__}{line}: {app.__name__}(): {say(error)}") from error


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
    from heimdall.schedulers import SCHEDULERS  # here: declaring an app needs none

    where = app.__name__
    if not (_positive(app.fps) and app.fps <= MAX_FPS):
        raise ConfigError(f"{where}.fps must be above 0, at most {MAX_FPS:g}, not {app.fps!r}")
    if not _is_size(app.size):
        raise ConfigError(
            f"{where}.size must be (width, height) in pixels, 1 to {MAX_SIDE}, not {app.size!r}"
        )
    for name, valid in (
        ("scheduler", SCHEDULERS),
        ("content", CONTENT),
        ("render_priority", ("top", "equal")),
    ):
        if getattr(app, name) not in valid:
            raise ConfigError(f"{where}: {unknown(name, getattr(app, name), valid)}")
    _validate_dnns(where, app.dnns)


def _validate_dnns(where: str, dnns: object) -> None:
    if not isinstance(dnns, Sequence) or isinstance(dnns, str):
        raise AppError(f"{where}.dnns must be a list of DNN(...) values, not {dnns!r}")
    names = set()
    for dnn in dnns:
        if not isinstance(dnn, DNN):
            raise AppError(f"{where}.dnns must hold DNN(...) values, not {dnn!r}")
        if dnn.name in names:
            raise ConfigError(f"{where}.dnns has two DNNs named {dnn.name!r}")
        names.add(dnn.name)


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and value > 0


def _is_size(value: object) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(isinstance(side, int) and 1 <= side <= MAX_SIDE for side in value)
    )
