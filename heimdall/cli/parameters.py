"""What the commands share: kinds of values, options that several take, and showing a result."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections.abc import Callable
from math import isfinite, nan
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from heimdall.app.options import parse_press, parse_serve, parse_size
from heimdall.cli import console
from heimdall.errors import ConfigError
from heimdall.vocabulary.enums import Precision

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class Parsed(click.ParamType):
    """A value in a notation of its own; ``parse`` raises ConfigError on what it cannot read."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        return self.name  # click would write it in capitals

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return self._parse(value) if isinstance(value, str) else value
        except ConfigError as error:
            self.fail(str(error), param, ctx)


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """``"image=1x3x32x32"`` to ``("image", (1, 3, 32, 32))``; ConfigError when it is not that."""
    name, _, sides = text.rpartition("=")
    if not name or not re.fullmatch(r"[1-9][0-9]{0,5}([x,][1-9][0-9]{0,5}){0,4}", sides):
        raise ConfigError(f"{text!r}: expected INPUT=SHAPE, such as input=1x3x480x640")
    return name, tuple(int(side) for side in re.split("[x,]", sides))


def parse_value(text: str) -> tuple[str, float]:
    """``"sr=16000"`` to ``("sr", 16000)``; ConfigError when it is not that."""
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = nan
    if not name or not isfinite(value):
        raise ConfigError(f"{text!r}: expected INPUT=NUMBER, such as sr=16000")
    return name, int(value) if value == int(value) else value


def completing(names: Callable[[], list[str]], *, listed: bool = False) -> Complete:
    """What a shell offers for a word: the names that begin so, else files. ``listed``: the word is
    several, with commas between them."""

    def complete(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
        before, comma, begun = word.rpartition(",") if listed else ("", "", word)
        found = [f"{before}{comma}{name}" for name in names() if name.startswith(begun)]
        return [CompletionItem(each) for each in found] or [CompletionItem(word, type="file")]

    return complete


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in reading order."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


class Named(click.Option):
    """An option that takes a name, or with ``listed`` several; its help lists the names, other
    packages' among them, which are looked up when the help is shown."""

    def __init__(
        self, *args: Any, names: Callable[[], list[str]], listed: bool = False, **attributes: Any
    ) -> None:
        super().__init__(*args, shell_complete=completing(names, listed=listed), **attributes)
        self._names = names

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]} One of: {', '.join(self._names())}.")


def known_apps() -> list[str]:
    """The bundled apps."""
    from heimdall.app import app_names

    return app_names()


def model_names() -> list[str]:
    """The networks that there are."""
    from heimdall.models.catalog import CATALOG

    return list(CATALOG)


def scheduler_names() -> list[str]:
    """The policies there are."""
    from heimdall.schedulers import SCHEDULERS

    return SCHEDULERS.labels()


def parse_names(text: str) -> tuple[str, ...]:
    """``"gpu,cpu,1"`` to its parts; ConfigError where one is empty, or is there twice."""
    names = tuple(each.strip() for each in text.split(","))
    if not all(names):
        raise ConfigError(f"{text!r}: a name is empty: expected A,B, such as gpu,cpu")
    for index, name in enumerate(names):
        if name in names[:index]:
            raise ConfigError(f"{name!r} is listed twice")
    return names


SIZE = Parsed("WxH", parse_size)
PRESS = Parsed("S:KEY", parse_press)
SERVE = Parsed("[HOST:]PORT", parse_serve)
SHAPE = Parsed("INPUT=1x3xHxW", parse_shape)
VALUE = Parsed("INPUT=NUMBER", parse_value)
NAMES = Parsed("A,B", parse_names)
_VALUES = "heimdall.values"  # of a command line
FILE = click.Path(dir_okay=False, path_type=Path)
app_argument = click.argument("app", shell_complete=completing(known_apps))
model_argument = click.argument("model", shell_complete=completing(model_names))
json_option = click.option("as_json", "--json", is_flag=True, help="Print one JSON value.")
device_option = click.option(
    "--device",
    metavar="NAME",
    help="The GPU: an OpenCL device by number or part of its name, onnxruntime, or one of its "
    "providers (cuda, tensorrt, directml, openvino, coreml), or another package's engine.",
)
cores_option = click.option("--gpu-cores", type=int, metavar="N", help="Cores of the software GPU.")
processors_option = click.option(
    "--processors",
    type=NAMES,
    help="What requests run on, and what there is for DNNs: gpu, cpu, further OpenCL devices by "
    "number or part of their names, other packages' engines; gpu,cpu by default.",
)
realtime_option = click.option(
    "--realtime/--no-realtime", default=None, help="Insist on, or decline, real time."
)
policy_option = click.option(
    "--gpu-policy",
    metavar="NAME",
    help="How the system runs the software GPU: rr, rr-N (slices of N ms), fifo or normal.",
)
_shape_option = click.option(
    "--shape",
    "shapes",
    type=SHAPE,
    multiple=True,
    callback=lambda ctx, param, values: {**dict(values), **ctx.meta.get(_VALUES, {})},
    help="Fix the shape of an input; repeat for more.",
)
_value_option = click.option(
    "--value",
    type=VALUE,
    multiple=True,
    expose_value=False,
    is_eager=True,  # before --shape, which hands both on
    callback=lambda ctx, param, values: ctx.meta.update({_VALUES: dict(values)}),
    help="Fix what an input is, as a number: a sampling rate, say; repeat for more.",
)
fallback_option = click.option(
    "--fallback",
    "force_fallback",
    multiple=True,
    metavar="OP",
    help="Run this op type or node on the CPU; repeat for more.",
)
remeasure_option = click.option(
    "--remeasure", is_flag=True, help="Measure even where a profile is saved."
)
precision_option = click.option(
    "--precision",
    type=click.Choice(Precision.values()),
    default=str(Precision.FP32),
    show_default=True,
    help="Of the network in the GPU's memory; auto: fp16 where it is faster and right.",
)
input_options = options(_shape_option, _value_option)
measuring_options = (
    input_options,
    device_option,
    cores_option,
    fallback_option,
    remeasure_option,
)


def typed_command() -> str:
    """The command line of this process, as one would type it again."""
    return shlex.join(["heimdall", *sys.argv[1:]])


def show(as_json: bool, result: Any, table: str) -> None:
    """Print a result as JSON, or through the function that makes tables of it,
    ``"package.module:function"``."""
    if as_json:
        console.print_json(result)
        return
    from heimdall.cli import tables

    module, _, function = table.partition(":")
    tables.show(*getattr(importlib.import_module(module), function)(result))
