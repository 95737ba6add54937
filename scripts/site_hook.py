"""What the site says of commands and scenario files, written from the code."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from heimdall.cli import COMMANDS, main
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.settings import (
    Away,
    DnnSettings,
    EventProcess,
    ModelSettings,
    Table,
    Throttle,
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages (an MkDocs event)."""
    for name, page in (
        ("commands", commands_page),
        ("scenario-files", scenarios_page),
    ):
        text = "\n\n".join(page()) + "\n"
        files.append(File.generated(config, f"look-up/{name}.md", content=text))
    return files


def commands_page() -> Iterator[str]:
    """Each command, its arguments and options, as its help says."""
    yield "# Commands"
    yield (
        "For whoever types: every command with every option, as `heimdall COMMAND --help` says it. "
        "`heimdall --debug COMMAND` adds tracebacks. A mistake is one line on standard error and "
        "exit status 2."
    )
    for name in sorted(COMMANDS):
        if not (command := COMMANDS[name]).hidden:
            yield from _command(name, command)


def _command(name: str, command: click.Command) -> Iterator[str]:
    context = click.Context(
        command, info_name=name, parent=click.Context(main, info_name="heimdall")
    )
    yield f"## {name}"
    yield f"```text\n{' '.join(command.get_usage(context).split())}\n```"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "")
    options = [
        each for each in command.params if isinstance(each, click.Option) and not each.hidden
    ]
    rows = [(_code(row[0]), row[1]) for each in options if (row := each.get_help_record(context))]
    if rows:
        yield _table(("option", "what it does"), rows)


def scenarios_page() -> Iterator[str]:
    """Each table of a scenario's file, and its keys."""
    yield "# Scenario files"
    yield (
        "For whoever writes a workload for `heimdall bench` or `heimdall simulate`: every key of "
        "its TOML file. The bundled ones in `heimdall/lab/scenarios/` are examples."
    )
    tables: dict[str, type[Table]] = {
        "Top level": Scenario,
        "`[dnns.NAME]`": DnnSettings,
        "`[models.NAME]`": ModelSettings,
        "`events` of a DNN, `requests` of a model": EventProcess,
        "`[throttle]`": Throttle,
        "`[[away]]`": Away,
    }
    for title, kind in tables.items():
        yield f"## {title}"
        yield inspect.getdoc(kind) or ""
        yield _table(("key", "type", "default"), _keys(kind))


def _keys(kind: type[Table]) -> Iterator[tuple[str, str, str]]:
    schema = kind.model_json_schema()
    for key, rules in schema["properties"].items():
        default = "required" if key in schema.get("required", ()) else _code(rules.get("default"))
        yield _code(key), _type(rules), default


def _type(rules: dict[str, Any]) -> str:
    """A JSON schema's type in words."""
    if "anyOf" in rules:
        return " or ".join(_type(each) for each in rules["anyOf"] if each.get("type") != "null")
    if "$ref" in rules:
        return f"table ({rules['$ref'].rpartition('/')[2]})"
    if "enum" in rules or "const" in rules:
        return ", ".join(_code(each) for each in rules.get("enum", [rules.get("const")]))
    limits = {"exclusiveMinimum": ">", "minimum": ">=", "exclusiveMaximum": "<", "maximum": "<="}
    bounds = [f"{sign} {rules[word]}" for word, sign in limits.items() if word in rules]
    kind = {"object": "table", "array": "list"}.get(rules.get("type", ""), rules.get("type", "any"))
    return " ".join([kind, ", ".join(bounds)]).strip()


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(tuple(head))]
    for row in rows:
        lines.append("| " + " | ".join(_line(cell).replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _code(value: object) -> str:
    return f"`{value}`"
