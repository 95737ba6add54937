"""What the laboratory's commands take beside what all commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heimdall.cli.parameters import Parsed, completing, scheduler_names
from heimdall.errors import ConfigError


def system_names() -> list[str]:
    """The baselines, the policies that systems are made of, and those with a queue of requests."""
    from heimdall.lab.bench.systems import BASELINES, queue_names, queueing_policies

    drawing = [name for name in scheduler_names() if name not in queueing_policies()]
    return [*BASELINES, *drawing, *queue_names()]


def scenario_names() -> list[str]:
    """The bundled scenarios, and other packages'."""
    from heimdall.lab.bench.scenario import scenario_names as names

    return names()


def device_names() -> list[str]:
    """What can be simulated."""
    from heimdall.lab.simulator.devices import device_names as names

    return names()


def parse_variation(text: str) -> tuple[str, Any]:
    """``"turn_ms=20"`` to ``("turn_ms", 20)``; ConfigError when it is not that."""
    name, _, value = text.partition("=")
    if not name or not value:
        raise ConfigError(f"{text!r}: expected NAME=VALUE, such as turn_ms=20")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            pass
    return name, [float(each) for each in value.split(",")] if "," in value else value


def parse_model_file(text: str) -> tuple[str, Path]:
    """``"VGG19=vgg19.onnx"`` to its two parts; ConfigError when it is not that."""
    name, _, file = text.partition("=")
    if not name or not file:
        raise ConfigError(f"{text!r}: expected NAME=FILE, such as VGG19=vgg19.onnx")
    return name, Path(file)


def parse_workers(text: str) -> int | str:
    """See ``simulator.parallel.parse_workers``."""
    from heimdall.lab.simulator.parallel import parse_workers as parse

    return parse(text)


scenario_argument = click.argument("scenario", shell_complete=completing(scenario_names))


VARIATION = Parsed("NAME=VALUE", parse_variation)


MODEL_FILE = Parsed("NAME=FILE", parse_model_file)


WORKERS = Parsed("N", parse_workers)
