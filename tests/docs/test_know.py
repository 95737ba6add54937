"""What docs/know and docs/laboratory say is there: names, options, figures, drawings, commands."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

import heimdall
from heimdall.cli import COMMANDS, main
from heimdall.engine.opencl.passes import PASSES
from heimdall.schedulers import utility_for
from heimdall.schedulers.utility import latency_loss

ROOT = Path(__file__).resolve().parents[2]
DOCS, PACKAGE = ROOT / "docs", ROOT / "heimdall"
KNOW = sorted((DOCS / "know").glob("*.md"))
LABORATORY = sorted((DOCS / "laboratory").glob("*.md"))
DRAWINGS = [DOCS / "images" / f"{name}.svg" for name in ("frame", "utility", "engine", "house")]
MOST_WORDS = 5700
PATH = re.compile(r"[\w.-]*/[\w./-]*|[\w-]+\.(?:py|cl|md|toml)")
CAMEL = re.compile(r"[A-Z][a-z]\w*[a-z]\w*(?:\.\w+)?")
MADE = {"frames.json"}  # by a command of a page


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", read(page), flags=re.DOTALL)


def named(page: Path) -> list[str]:
    """What a page has in backticks within its prose."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def ids(page: Path) -> str:
    return page.stem


@cache
def sources() -> dict[Path, str]:
    return {path: read(path) for path in PACKAGE.rglob("*.py")}


@cache
def words() -> frozenset[str]:
    """Every word of the package's code and of the names of its files."""
    found = {path.stem for path in PACKAGE.rglob("*") if "__pycache__" not in path.parts}
    for text in sources().values():
        found.update(re.findall(r"\w[\w-]*\w|\w", text))
        found.update(re.findall(r"\w+", text))
    return frozenset(found)


@cache
def classes() -> dict[str, set[str]]:
    """Every class (and alias of a type) of the package, with the names in its body."""
    found: dict[str, set[str]] = {}
    for text in sources().values():
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own = found.setdefault(node.name, set())
                own.update(re.findall(r"\w+", ast.get_source_segment(text, node) or ""))
        for node in tree.body:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, set())
    return found


def options() -> set[str]:
    params = [param for command in COMMANDS.values() for param in command.params]
    return {name for param in params for name in (*param.opts, *param.secondary_opts)} | {"--debug"}


def test_the_explanations_are_short():
    assert sum(len(read(page).split()) for page in KNOW) <= MOST_WORDS


@pytest.mark.parametrize("page", KNOW + LABORATORY, ids=ids)
def test_a_page_begins_with_whom_it_is_for(page):
    title, first = read(page).split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.match(r"For (whoever|researchers)\b", first), first


@pytest.mark.parametrize("page", KNOW, ids=ids)
def test_every_path_a_page_names_exists(page):
    paths = {path for each in named(page) for path in PATH.findall(each) if "/ " not in each}
    assert {path for path in paths - MADE if not exists(path)} == set()


def exists(path: str) -> bool:
    if (ROOT / path).exists() or (PACKAGE / path).exists():
        return True
    return "/" not in path and any(PACKAGE.rglob(path))


@pytest.mark.parametrize("page", KNOW, ids=ids)
def test_every_class_a_page_names_exists(page):
    for each in named(page):
        if PATH.search(each) or not CAMEL.fullmatch(each):
            continue
        name, _, member = each.partition(".")
        assert name in classes(), each
        assert not member or member in classes()[name], each


@pytest.mark.parametrize("page", KNOW, ids=ids)
def test_every_word_of_code_on_a_page_is_in_the_code(page):
    text = " ".join(each for each in named(page) if not PATH.search(each))
    text = re.sub(r"--[a-z-]+", "", text)
    unknown = set(re.findall(r"[A-Za-z_][\w-]*\w", text)) - words() - set(COMMANDS)
    unknown = {each for each in unknown if not re.fullmatch(r"[A-Z-]+", each)}  # NAME of a usage
    assert unknown == set()


@pytest.mark.parametrize("page", KNOW, ids=ids)
def test_every_option_a_page_names_exists(page):
    assert set(re.findall(r"--[a-z][a-z-]*", read(page))) <= options()


@pytest.mark.parametrize("page", KNOW, ids=ids)
def test_every_command_a_page_names_exists(page):
    assert set(re.findall(r"`heimdall ([a-z-]+)", read(page))) <= set(COMMANDS)


def commands() -> list[str]:
    blocks = [block for page in KNOW for block in re.findall(r"```sh\n(.*?)```", read(page), re.S)]
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("line", commands())
def test_every_command_of_a_page_runs(line, tmp_path):
    program, *rest = shlex.split(line)
    assert program == "heimdall"
    done = subprocess.run(
        [sys.executable, "-m", "heimdall", *rest],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "--trace" in rest:
        lanes = {each["args"]["name"] for each in traced(tmp_path / rest[-1]) if each["ph"] == "M"}
        assert {"render", "gpu", "cpu", "pool-0"} <= lanes  # as the page has it
        assert any("reason" in each.get("args", {}) for each in traced(tmp_path / rest[-1]))


def traced(path: Path) -> list[dict]:
    return json.loads(read(path))["traceEvents"]


# --- drawings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("drawing", DRAWINGS, ids=ids)
def test_a_drawing_is_small_and_readable_in_light_and_dark(drawing):
    text = read(drawing)
    root = ET.fromstring(text)
    assert len(text) < 8000
    assert "href" not in text
    assert "script" not in text
    _, _, width, height = root.attrib["viewBox"].split()
    title, ground = list(root)[:2]
    assert title.tag.endswith("title")
    assert (ground.attrib["width"], ground.attrib["height"]) == (width, height)
    assert ground.attrib["fill"] == "#f6f7fa"  # a ground of its own, under dark text
    shown = [page for page in KNOW if f"](../images/{drawing.name})" in read(page)]
    assert shown
    for page in shown:
        (alt,) = re.findall(rf"!\[(.*?)\]\(../images/{drawing.name}\)", read(page))
        assert len(alt) > 60


def test_the_map_has_every_room_in_the_order_of_imports():
    """From the lowest row up, and from left to right in a row."""
    rooms = [
        (-float(each.attrib["y"]), float(each.attrib["x"]), each.text)
        for each in ET.parse(DOCS / "images" / "house.svg").iter()
        if each.attrib.get("class") == "room"
    ]
    listed = re.findall(r"^- `heimdall\.(\w+)` ", heimdall.__doc__ or "", re.MULTILINE)
    assert sorted(name for *_, name in rooms if name) == sorted(listed)
    order = [name for *_, name in sorted(rooms)]
    below = {name: set(order[:index]) for index, name in enumerate(order)}
    for path, text in sources().items():
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in below or "_bundled" in path.parts:
            continue
        used = set(re.findall(r"^\s*(?:from|import) heimdall\.(\w+)", text, re.MULTILINE))
        assert used <= below[room] | {room}, path


def test_the_drawing_of_utility_has_the_figures_that_policies_use():
    text, page = read(DOCS / "images" / "utility.svg"), read(DOCS / "know" / "deciding.md")
    worth, lost = {}, {}
    for name, priority, constraint_ms, age_ms in (
        ("style", "high", 100, 20),
        ("detect", "normal", 1000, 700),
    ):
        utility = utility_for(priority, constraint_ms)
        worth[name] = utility.l0 - latency_loss(utility, age_ms)
        later = latency_loss(utility, age_ms + 1000 / 30)
        lost[name] = later - latency_loss(utility, age_ms)
        assert f"now: {worth[name]:,.0f}" in text
        assert f"{priority}, {constraint_ms} ms" in text
        assert f"−{lost[name]:,.0f}" in text
        assert f"{lost[name]:,.0f}" in page
    assert max(lost, key=lost.__getitem__) == "style"  # max-total
    assert min(worth, key=worth.__getitem__) == "detect"  # max-min


def test_the_drawing_of_the_engine_has_as_many_ops_as_there_are():
    done = CliRunner().invoke(main, ["partition", "selfie", "--passes", "--json"])
    assert done.exit_code == 0, done.output
    left = [len(each["ops"]) for each in json.loads(done.stdout)["passes"]]
    text, page = read(DOCS / "images" / "engine.svg"), read(DOCS / "know" / "engine.md")
    assert f"{left[0]} ops of selfie" in text
    assert f"{left[-1]} ops of selfie" in text
    assert f"{left[0]} after lowering, {left[-1]} after the last one" in page
    assert len(PASSES) > 1


# --- laboratory --------------------------------------------------------------------------------


def rows() -> list[list[str]]:
    table = re.findall(r"^\| (\[.*) \|$", read(DOCS / "laboratory" / "index.md"), re.MULTILINE)
    return [line.split(" | ") for line in table]


def test_the_index_has_every_page_once():
    linked = [re.findall(r"\]\((\w+\.md)\)", row[0])[0] for row in rows()]
    assert sorted(linked) == sorted({page.name for page in LABORATORY} - {"index.md"})


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_result_of_the_index_is_that_of_its_page(row):
    page = read(DOCS / "laboratory" / re.findall(r"\((\w+\.md)\)", row[0])[0])
    known = set(re.findall(r"\d+(?:\.\d+)?", page))
    if "paper.md" in row[0]:
        headlines = page.partition("## Headlines")[2].partition("\n## ")[0]
        found = Counter(re.findall(r"\| *(reproduced|partly|not) \|", headlines))
        counted = ", ".join(f"{found[each]} {each}" for each in ("reproduced", "partly", "not"))
        assert row[2] == f"of {found.total()} headlines, simulated: {counted}"
        return
    assert set(re.findall(r"\d+(?:\.\d+)?", row[2])) <= known
    command = row[3].strip("`")
    assert command in page or command.replace("python ", "python -m ") in page, command


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("accuracy", "accuracy.py"),
        ("content", "content.py"),
        ("devices", "devices_page.py"),
        ("drivers", "drivers.py"),
        ("paper", "paper/text/intro.md"),
        ("performance", "performance_page.py"),
        ("schedulers", "schedulers.md"),
    ],
)
def test_a_page_that_is_written_begins_as_its_source_has_it(page, source):
    first = read(DOCS / "laboratory" / f"{page}.md").split("\n\n")[1]
    assert first in read(ROOT / "benchmarks" / source)
