"""What the README shows is true: its app loads, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import heimdall
from heimdall.app import load_app, validate
from heimdall.cli import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {"commands.md", "scenario-files.md"}  # by the site, which checks links to them
MADE = {"out/shopping.mp4", "out/shopping.png", "site/"}  # by the demo, and make site
CODE = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_a_stranger_reads_it_in_five_minutes():
    assert len(README.split()) <= 900


def test_the_app_in_the_readme_loads_and_is_valid(tmp_path):
    code, _ = CODE
    (tmp_path / "mine.py").write_text(code)
    app = load_app(str(tmp_path / "mine.py"))
    validate(app)
    assert [dnn.name for dnn in app().dnns] == ["detect", "style"]
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 15


def test_the_session_in_the_readme_uses_what_there_is():
    _, code = CODE
    compile(code, "README.md", "exec")
    used = set(re.findall(r"\bsession\.(\w+)", README))
    assert used == {"push", "step", "picture"}
    assert used <= set(dir(heimdall.Session))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_on_a_page_exists(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = set(re.findall(r"\]\((?!https?:)([\w/.-]+)\)", text))
    links = {link for link in links if Path(link).name not in GENERATED}
    assert {link for link in links if not (page.parent / link).exists()} == set()
    named = set(re.findall(r"`([a-z_]+/[\w/.-]*)`", text)) - MADE
    assert {name for name in named if not find(name)} == set()


def find(name: str) -> bool:
    """Whether there is such a file, from the top or within the package."""
    return (ROOT / name).exists() or (ROOT / "heimdall" / name).exists()


def test_every_option_the_readme_names_exists():
    params = [param for command in COMMANDS.values() for param in command.params]
    known = {name for param in params for name in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"--[a-z][a-z-]*", README)) <= known | {"--help"}


def test_every_command_of_the_readme_exists():
    assert set(re.findall(r"`heimdall ([a-z-]+)", README)) <= set(COMMANDS)
