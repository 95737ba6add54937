"""The command line: ``heimdall run APP`` and the tools around it.

Commands parse, call the module that does the work, and show what it returns. A command's module
is imported when the command is typed, and heavy imports are inside of them, so that
``heimdall --help`` answers at once. Other packages add commands by the entry points
``heimdall.commands``, as the laboratory does (``heimdall.lab.cli``).
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from heimdall.cli import console
from heimdall.system.registry import Registry

_MODULES = {
    "apps": ("run", "new", "devices"),
    "networks": ("models", "profile", "partition", "check"),
    "models3d": ("model3d",),
    "serving": ("serve",),
    "poses": ("calibrate", "pose"),
    "sessions": ("export",),
    "machine": ("doctor", "completion"),
}
_OWN: Mapping[str, click.Command | str] = {
    name: f"heimdall.cli.{module}:{name}" for module, names in _MODULES.items() for name in names
}

_RENAMED = {"content": "model3d"}  # old names, which work and are not listed


def _accept(name: str, value: object) -> str | None:
    return None if isinstance(value, click.Command) else f"must be a click.Command, not {value!r}"


COMMANDS: Registry[click.Command] = Registry("command", "heimdall.commands", _OWN, _accept)


class _Main(console.Commands):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = _RENAMED.get(cmd_name, cmd_name)
        return COMMANDS.find(name) if name in COMMANDS else None


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="heimdall-ar", prog_name="heimdall")
@click.option("--debug", is_flag=True, help="Show tracebacks and what happens inside.")
def main(debug: bool) -> None:
    """Augmented-reality apps that run several neural networks and draw every frame on one GPU."""
    console.set_up_logging(debug)
