"""The recipes of docs/do work as they stand: of each page every file is written and every command
is run, in order, in processes of their own; commands that need a camera, another machine or a
person (blocks of ``text``) have at least options that exist."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import heimdall
from heimdall.cli import COMMANDS
from heimdall.errors import DeviceError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "do"
ELSEWHERE = {"qt.md", "notebooks.md"}  # test_learn runs them, for they show results
PAGES = sorted({path.name for path in FOLDER.glob("*.md")} - ELSEWHERE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w.-]+\.(?:py|toml))\n")
# A page may be followed on any machine: here onnxruntime plays the GPU, so that no kernel need be
# compiled, and runs are short.
QUICK = {"run": ["--size", "320x240", "--frames", "8"], "bench": ["--size", "320x240"]}
IN_ONE_PROCESS = ("run", "bench", "serve")
OF_ENGINES = ("check", "profile", "partition")  # these are about the OpenCL engine
LIMIT_S = 250
BUSY = "OverdueError: it has not come back"  # other programs took the cores: no fault of a page


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((FOLDER / page).read_text(encoding="utf-8"))


def commands(text: str) -> Iterator[list[str]]:
    """The words of each line, without its comment."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


PROGRAMS = [page for page in PAGES if any(kind == "sh" for kind, _ in blocks(page))]
TYPED = [
    (page, words)
    for page in PAGES
    for kind, text in blocks(page)
    if kind in ("sh", "text", "console")
    for words in (line.split() for line in text.splitlines())
    if words[:1] == ["heimdall"] and len(words) > 1
]


def opencl_missing() -> bool:
    from heimdall.engine.opencl import device

    try:
        device.select()
    except (DeviceError, ImportError):
        return True
    return False


class Reader:
    """Whoever does what a page says, in a folder of their own beside the assets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: list[subprocess.Popen[str]] = []
        self.ports = {"8000": free_port(), "8001": free_port()}
        self.environment = {**os.environ, "COLUMNS": "200", "PYTHONPATH": str(ROOT)}
        (folder / "assets").symlink_to(ROOT / "assets", target_is_directory=True)

    def write(self, text: str) -> None:
        if name := NAMED.match(text):
            for port, free in self.ports.items():
                text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
            if "device=" not in text:
                text = text.replace("headless=True", 'headless=True, device="onnxruntime"')
            (self.folder / name[1]).write_text(text, encoding="utf-8")

    def type(self, words: list[str]) -> None:
        behind = words[-1] == "&"
        program, *rest = words[:-1] if behind else words
        if program == "heimdall":
            rest = ["-m", "heimdall", *rest, *self.quick(rest)]
        else:
            assert program == "python"
        if self.about_opencl(rest) and opencl_missing():
            pytest.skip("no OpenCL here")
        if behind:
            self.servers.append(
                subprocess.Popen(
                    [sys.executable, *rest],
                    cwd=self.folder,
                    env=self.environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            return
        done = subprocess.run(
            [sys.executable, *rest],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
        assert done.stdout.strip() or done.stderr.strip(), f"{' '.join(words)} says nothing"
        said = [each for each in (done.stdout + done.stderr).splitlines() if BUSY not in each]
        assert not any("error: " in each for each in said), done.stdout + done.stderr

    def about_opencl(self, words: list[str]) -> bool:
        if words[0] == "-m":
            return words[2] in OF_ENGINES
        return "opencl" in (self.folder / words[0]).read_text(encoding="utf-8")

    def quick(self, words: list[str]) -> list[str]:
        """What makes a command short."""
        command = words[0]
        if command not in IN_ONE_PROCESS:
            return []
        more = ["--device", "onnxruntime", *QUICK.get(command, [])]
        if command == "run":
            more += ["--headless"]
        if command == "serve":
            more += ["--http-port", self.ports["8000"], "--grpc-port", self.ports["8001"]]
        return more

    def close(self) -> None:
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            server.wait(30)


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture
def reader(tmp_path):
    reader = Reader(tmp_path)
    yield reader
    reader.close()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PROGRAMS)
def test_every_file_and_command_of_a_page_works(reader, page):
    if page == "serve.md":
        pytest.importorskip("tritonclient.grpc")
        pytest.importorskip("aiohttp")
    for kind, text in blocks(page):
        if kind in ("python", "toml"):
            reader.write(text)
        elif kind == "sh":
            for words in commands(text):
                reader.type(words)
    for name in written(page):
        assert (reader.folder / name).stat().st_size > 0


def written(page: str) -> list[str]:
    """What the page's commands write."""
    outputs = ("--record", "--screenshot", "--trace", "--capture", "--png", "--board")
    lines = [words for kind, text in blocks(page) if kind == "sh" for words in commands(text)]
    return [words[at + 1] for words in lines for at, word in enumerate(words) if word in outputs]


@pytest.mark.parametrize("page", PAGES)
def test_every_program_of_a_page_is_a_file_that_is_run(page):
    texts = blocks(page)
    files = [NAMED.match(text) for kind, text in texts if kind == "python"]
    assert all(files), "a program without its name in its first line"
    run = "\n".join(text for kind, text in texts if kind == "sh")
    assert [name[1] for name in files if name and name[1] not in run] == []


@pytest.mark.parametrize(("page", "words"), TYPED, ids=lambda given: str(given)[:60])
def test_every_command_and_option_exists(page, words):
    name, *rest = words[1:]
    assert name in COMMANDS
    known = {
        option
        for param in COMMANDS[name].params
        if isinstance(param, click.Option)
        for option in (*param.opts, *param.secondary_opts)
    }
    assert {word for word in rest if word.startswith("--")} <= known


@pytest.mark.parametrize("page", PAGES)
def test_every_option_that_a_page_names_exists(page):
    text = BLOCK.sub("", (FOLDER / page).read_text(encoding="utf-8"))
    known = {name for command in COMMANDS.values() for each in command.params for name in each.opts}
    known |= {name for each in COMMANDS.values() for p in each.params for name in p.secondary_opts}
    elsewhere = {"--system-site-packages", "--write", "--device"}
    assert set(re.findall(r"`(--[a-z0-9-]+)", text)) - known - elsewhere == set()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_first_whom_it_is_for(page):
    title, _, rest = (FOLDER / page).read_text(encoding="utf-8").partition("\n\n")
    assert title.startswith("# ")
    assert rest.startswith(("For whoever ", "You have "))


def test_recipes_are_short():
    words = {page: len((FOLDER / page).read_text(encoding="utf-8").split()) for page in PAGES}
    assert {page: count for page, count in words.items() if count > 800} == {}
    assert sum(words.values()) <= 8000


@pytest.mark.parametrize("page", PAGES)
def test_every_path_in_a_page_exists(page):
    text = (FOLDER / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:heimdall|tests|assets|scripts|benchmarks|apps)/[\w/.-]+)`", text))
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_every_group_of_entry_points_is_looked_for():
    text = (FOLDER / "plugin.md").read_text(encoding="utf-8")
    registries = (heimdall.SCHEDULERS, heimdall.CATALOG, heimdall.SOURCES, heimdall.ENGINES)
    groups = {each.group for each in registries}
    assert set(re.findall(r"entry point `([a-z.]+)`", text)) == groups
