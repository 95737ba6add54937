"""What the site says of commands, files and networks, written from the code: a page has it where it
says ``<!-- generated: NAME -->``. JSON schemas are files of their own."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pydantic import BaseModel

from heimdall.cli import COMMANDS, main
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.settings import Away, DnnSettings, EventProcess, ModelSettings, Throttle
from heimdall.lab.cli.schemas import json_schema, schema_names
from heimdall.lab.simulator.cutting import CutTable
from heimdall.lab.simulator.device import Cpu, Device, Gpu, PhoneNetwork
from heimdall.lab.simulator.early_exits import ExitTable, ScaledTable
from heimdall.lab.simulator.several import NetworkTable, ProcessorTable, SeveralDevice
from heimdall.lab.simulator.sweep_file import SweepFile
from heimdall.lab.simulator.together.device import TogetherTable
from heimdall.lab.simulator.variations import vary
from heimdall.models.catalog import CATALOG
from heimdall.runtime.session.keys import COMMANDS as KEYS
from heimdall.runtime.session.keys import GESTURES, NAMES

LOOK_UP = Path(__file__).resolve().parents[1] / "docs" / "look-up"
MARK = re.compile(r"<!-- generated: ([a-z-]+) -->")
MANY = 12  # options of a command: more are told in groups


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the JSON schemas (an MkDocs event)."""
    for name in schema_names():
        text = json.dumps(described(json_schema(name)), indent=1) + "\n"
        files.append(File.generated(config, f"look-up/schemas/{name}.json", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write what a page asks for (an MkDocs event)."""
    return filled(markdown)


def filled(markdown: str) -> str:
    """The page with everything that is generated."""
    return MARK.sub(lambda found: "\n\n".join(GENERATED[found[1]]()), markdown)


# --- commands -----------------------------------------------------------------------------------

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Pictures and controls": (
        *("source", "sound", "fps", "size", "headless", "serve", "phone", "certificate", "turn"),
        *("virtual_camera", "full_screen", "overlay", "press", "no_inputs", "reload"),
    ),
    "Networks": (
        *("models", "shapes", "slo_ms", "scheduler", "static", "no_offload", "content"),
        *("luminance", "admission", "processors", "cpu_workers", "remote", "build_first"),
        *("files", "fallback", "force_fallback", "remeasure"),
    ),
    "The GPU": ("device", "gpu_cores", "realtime", "gpu_policy"),
    "What is compared": (
        *("systems", "runs", "system", "seed", "seeds", "variations", "render_ms", "sweep"),
        "workers",
    ),
    "Training": (
        *("data", "test", "beside", "count", "after", "epochs", "pictures", "copies", "stage"),
        *("max_drop", "budget_mb", "mean", "std"),
    ),
    "Cutting": ("gap_ms", "strategy", "margin_ms", "ops", "passes"),
    "The server": (
        *("host", "http_port", "grpc_port", "no_http", "no_grpc", "tls_certificate", "tls_key"),
        *("max_clients", "max_waiting", "max_megabytes"),
    ),
    "The end, and what is kept": (
        *("frames", "seconds", "record", "screenshot", "trace", "capture", "lossless", "report"),
        *("output", "out", "png", "as_json"),
    ),
}
ARGUMENTS = {
    "APP": "The name of a bundled app (`shopping`, `emoji`, `workspace`, `marker`, "
    "`surroundings`), or a file: `mine.py`, or `mine.py:Class` where it has several.",
    "MODEL": "A name of `heimdall models`, or an `.onnx` file.",
    "SCENARIO": "A bundled name, or a [scenario file](scenario-files.md).",
    "FILE": "The file to read.",
    "SHELL": "`bash`, `zsh` or `fish`.",
    "NAME": "What the app is called: the file becomes `NAME.py`.",
    "SESSION": "A file that `heimdall run --capture` wrote.",
    "SOURCE": "As `heimdall run --source` takes it.",
}
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "bench": (
        "heimdall bench shopping --systems multithread,max-total --seconds 10",
        "heimdall bench shopping-phone --runs 5 --report out.html",
    ),
    "completion": ("heimdall completion bash",),
    "doctor": ("heimdall doctor",),
    "calibrate": (
        "heimdall calibrate --board board.pdf",
        "heimdall calibrate --source 0",
    ),
    "check": ("heimdall check nanodet selfie", "heimdall check --all --precision fp16"),
    "devices": ("heimdall devices",),
    "exits": ("heimdall exits fashion.onnx --data pictures --out fashion-exits.onnx",),
    "export": ("heimdall export session.mcap --rerun session.rrd",),
    "faults": ("heimdall faults --only gpu-lost,camera-unplugged", "heimdall faults --list"),
    "measure": ("heimdall measure --output mine.toml",),
    "model3d": ("heimdall model3d couch.glb --png couch.png",),
    "models": ("heimdall models --json",),
    "new": ("heimdall new mine",),
    "partition": (
        "heimdall partition nanodet --gap-ms 20 --png chunks.png",
        "heimdall partition nanodet --passes",
    ),
    "pose": (
        "heimdall pose clip.mp4 --camera camera.toml --marker DICT_4X4_50:7:0.08",
        "heimdall pose clip.mp4 --camera camera.toml --world",
    ),
    "profile": ("heimdall profile nanodet", "heimdall profile mine.onnx --shape x=1x3x320x320"),
    "run": (
        "heimdall run shopping",
        "heimdall run shopping --source clip.mp4 --size 1280x720 --fps 30",
        "heimdall run mine.py --headless --frames 90 --screenshot last.png --json",
        "heimdall run shopping --serve 8080",
    ),
    "serve": ("heimdall serve --model detector=mine.onnx --slo-ms 50",),
    "simulate": (
        "heimdall simulate shopping --device lg-v50",
        "heimdall simulate shopping --systems max-total,multithread --seeds 16",
        "heimdall simulate --sweep phone.toml",
    ),
    "soak": ("heimdall soak --minutes 60 --output soak.html",),
    "trace": ("heimdall trace run.json",),
    "train-top": ("heimdall train-top top-mixed --out actor.npz",),
}


def shown_commands() -> list[str]:
    """Every command that people see."""
    return [name for name in sorted(COMMANDS) if not COMMANDS[name].hidden]


def commands() -> Iterator[str]:
    """Each command: usage, what it does, examples, arguments and options."""
    for name in shown_commands():
        command = COMMANDS[name]
        context = click.Context(command, info_name=name, parent=click.Context(main, info_name=""))
        yield f"## {name}"
        usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
        yield f"```text\n{f'heimdall {usage}'}\n```"
        yield _paragraphs(command)
        yield "```text\n" + "\n".join(EXAMPLES[name]) + "\n```"
        yield from _options(command, context)


def _paragraphs(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "").replace("\b\n", "")


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    arguments = [
        (_code(each.make_metavar(context)), ARGUMENTS[str(each.name).upper()])
        for each in command.params
        if isinstance(each, click.Argument)
    ]
    if arguments:
        yield _table(("argument", ""), arguments)
    options = {
        str(each.name): row
        for each in command.params
        if isinstance(each, click.Option) and not each.hidden and each.name != "debug"
        if (row := each.get_help_record(context))
    }
    for title, names in grouped(options):
        rows = [(_code(options[name][0]), options[name][1]) for name in names]
        yield _table((title, "what it does"), rows)


def grouped(options: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Names of options by group; of a command with few, all in one."""
    left = list(options)
    for title, names in GROUPS.items() if len(left) > MANY else ():
        inside = [name for name in left if name in names]
        left = [name for name in left if name not in inside]
        if inside:
            yield title, inside
    if left:
        yield "option", left


# --- files --------------------------------------------------------------------------------------

Tables = Mapping[str, type[BaseModel]]
SCENARIO: Tables = {
    "Top level": Scenario,
    "`[dnns.NAME]`": DnnSettings,
    "`[models.NAME]`": ModelSettings,
    "`event`": EventProcess,
    "`[throttle]`": Throttle,
    "`[[away]]`": Away,
}
PHONE: Tables = {
    "Top level": Device,
    "`[gpu]`": Gpu,
    "`[cpu]`": Cpu,
    "`[networks.NAME]`": PhoneNetwork,
}
SEVERAL: Tables = {
    "Top level, with processors": SeveralDevice,
    "`[processors.ID]`": ProcessorTable,
    "`[networks.NAME]`, with processors": NetworkTable,
    "`cuts`": CutTable,
    "`exits`": ExitTable,
    "`scaled`": ScaledTable,
    "`[together]`": TogetherTable,
}
SWEEP: Tables = {"Keys of a sweep": SweepFile}


def tables(kinds: Tables) -> Callable[[], Iterator[str]]:
    """Each table of a file and its keys."""

    def written() -> Iterator[str]:
        for title, kind in kinds.items():
            yield f"### {title}"
            yield _table(("key", "what it is", "type", "default"), keys(kind))

    return written


def keys(kind: type[BaseModel]) -> Iterator[tuple[str, str, str, str]]:
    """Each key that a file may have: what it is, its type and its default."""
    schema = kind.model_json_schema()
    for key, rules in schema["properties"].items():
        if key == "name" and rules["description"].startswith("As the file"):
            continue
        default = rules.get("default")
        silent = default in (None, [], {}, "") or "by default" in rules["description"]
        said = "" if silent else _code(json.dumps(default))
        needed = key in schema.get("required", ()) and key != "title"
        yield _code(key), rules["description"], _type(rules), "required" if needed else said


def _type(rules: dict[str, Any]) -> str:
    """A JSON schema's type in words."""
    if "anyOf" in rules:
        return " or ".join(_type(each) for each in rules["anyOf"] if each.get("type") != "null")
    if "$ref" in rules:
        return "table"
    if "enum" in rules or "const" in rules:
        return ", ".join(_code(each) for each in rules.get("enum", [rules.get("const")]))
    limits = {"exclusiveMinimum": "above", "minimum": "from", "exclusiveMaximum": "below"}
    limits["maximum"] = "to"
    bounds = [f"{word} {rules[key]:g}" for key, word in limits.items() if key in rules]
    kinds = {"object": "table", "array": "list", "integer": "whole number", "string": "text"}
    kinds["boolean"] = "true or false"
    kind = kinds.get(rules.get("type", ""), rules.get("type", "any"))
    return ", ".join([kind, " ".join(bounds)]) if bounds else kind


AXIS = re.compile(r"((?:``\w+``(?:,\s)?)+):\s(.+?)(?:;|\.$)", re.DOTALL)


def axes() -> Iterator[str]:
    """What a simulated machine may have other than its file says, as ``vary`` tells it."""
    text = (inspect.getdoc(vary) or "").split("\n\n")[1]
    rows = [
        (", ".join(_code(name) for name in re.findall(r"``(\w+)``", names)), said)
        for names, said in AXIS.findall(text)
    ]
    yield _table(("axis", "meaning"), rows)


# --- networks -----------------------------------------------------------------------------------


def networks() -> Iterator[str]:
    """The catalogue."""
    rows = []
    for entry in CATALOG.values():
        options = [_code(name) for name in inspect.signature(entry.make).parameters]
        (result,) = get_args(entry.make.__orig_bases__[0])
        kind = re.sub(r"[a-z_]+\.", "", str(result)) if get_args(result) else result.__name__
        about = f"{entry.task} ({entry.title})"
        rows.append((_code(entry.name), about, _code(kind), ", ".join(options), entry.licence))
    yield _table(("name", "finds (networks)", "result", "options", "licence"), rows)


# --- keys ---------------------------------------------------------------------------------------


def key_table() -> Iterator[str]:
    """The keys of every app."""
    rows = [
        (" or ".join(_code(NAMES.get(key, key).upper()) for key in each.keys), each.says)
        for each in KEYS
    ]
    rows += GESTURES.items()
    yield _table(("key", ""), rows)


# --- JSON schemas -------------------------------------------------------------------------------

FIGURES = re.compile(r"^\| (`[^|]+`) \| (.+?) \|$", re.MULTILINE)
SECTIONS = {"RunSummary": "A run", "DnnSummary": "Each DNN", "RequestSummary": "Each model"}


def figures() -> dict[str, dict[str, str]]:
    """What figures.md says of each figure, by its section."""
    text = (LOOK_UP / "figures.md").read_text(encoding="utf-8")
    found: dict[str, dict[str, str]] = {}
    for part in text.split("\n## ")[1:]:
        rows = FIGURES.findall(part)
        found[part.partition("\n")[0]] = {
            name: plain(said) for names, said in rows for name in re.findall(r"`(\w+)`", names)
        }
    return found


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, with what figures.md says of the figures of runs."""
    said = figures()
    kinds = {"RunSummary": schema, **schema.get("$defs", {})}
    for name, kind in kinds.items():
        base = "RunSummary" if name in ("SimulatedRun", "LiveRun") else name
        if base in SECTIONS and (
            kind is not schema or "fps_target" in schema.get("properties", ())
        ):
            for key, rules in kind["properties"].items():
                if text := said[SECTIONS[base]].get(key):
                    rules["description"] = text
    return schema


def plain(text: str) -> str:
    """Markdown without its marks."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text).replace("`", "").replace("*", "")


def schemas() -> Iterator[str]:
    """Each schema, and what prints that."""
    rows = []
    for name in schema_names():
        title = json_schema(name)["title"].removesuffix(" --json")
        rows.append((_code(f"{title} --json"), f"[{name}.json](schemas/{name}.json)"))
    yield _table(("command", "schema"), rows)


# --- Markdown -----------------------------------------------------------------------------------


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = tuple(head)
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for row in rows:
        lines.append("| " + " | ".join(_line(cell).replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _code(value: object) -> str:
    return f"`{value}`"


GENERATED: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "scenario": tables(SCENARIO),
    "phone": tables(PHONE),
    "several": tables(SEVERAL),
    "sweep": tables(SWEEP),
    "axes": axes,
    "networks": networks,
    "keys": key_table,
    "schemas": schemas,
}
