"""Commands about this machine and this shell: what is missing, and completion."""

from __future__ import annotations

from dataclasses import asdict

import click

from heimdall.cli import console
from heimdall.cli.parameters import json_option

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "missing": ("MISSING", "red")}


@click.command(cls=console.Command)
@json_option
def doctor(as_json: bool) -> int:
    """Say what is missing on this machine, and what to type.

    Tries OpenCL, OpenGL, cameras, the display, the cache and optional packages. The status is 1
    where something is missing that apps need.
    """
    with console.work(as_json):
        from heimdall.runtime.opening.devices import list_devices
        from heimdall.runtime.opening.doctor import Level, diagnose

        findings = diagnose(list_devices())
    if as_json:
        console.print_json({"schema": 1, "findings": [asdict(each) for each in findings]})
    else:
        for each in findings:
            mark, colour = _MARKS[each.level]
            click.echo(f"{click.style(f'{mark:8}', fg=colour)}{each.what}")
            if each.line:
                click.echo(f"{'':8}type: {each.line}")
    return int(any(each.level == Level.MISSING for each in findings))


@click.command(cls=console.Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script with which SHELL completes commands, options and names.

    bash: heimdall completion bash >> ~/.bashrc; zsh: the same with ~/.zshrc; fish: heimdall
    completion fish > ~/.config/fish/completions/heimdall.fish
    """
    from click.shell_completion import get_completion_class

    from heimdall.cli import main

    kind = get_completion_class(shell)
    assert kind is not None  # click knows all three
    click.echo(kind(main, {}, "heimdall", "_HEIMDALL_COMPLETE").source())
