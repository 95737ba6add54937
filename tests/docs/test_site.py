"""The site in a real browser: it fits a phone, is searched, is dark; its pictures have words."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser import Page, browser, installed

pytest.importorskip("mkdocs")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 25_000  # of all pages but the laboratory's, as they are written
PHONE = {"width": 375, "height": 800, "deviceScaleFactor": 2, "mobile": True}
needs_browser = pytest.mark.skipif(installed() is None, reason="needs Chromium")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site as ``make site`` builds it; strict, so a link that leads nowhere fails here."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=os.fspath(site))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def page(address, tmp_path_factory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("profile"), size=(1300, 900)) as open_page:
        yield open_page(f"{address}/index.html")


def pages(site: Path) -> list[str]:
    return sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))


def go(page: Page, url: str) -> None:
    page.call("Page.navigate", url=url)
    page.wait_for(f"location.href === '{url}' && document.readyState === 'complete'")


def test_a_reader_need_not_read_much():
    written = [path for path in (ROOT / "docs").rglob("*.md") if "laboratory" not in path.parts]
    written += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    assert sum(len(path.read_text("utf-8").split()) for path in written) <= MOST_WORDS


def test_nothing_is_misspelt():
    pytest.importorskip("codespell_lib")
    prose = [*(path.name for path in ROOT.glob("*.md")), "docs", "examples", "heimdall", "apps"]
    command = [sys.executable, "-m", "codespell_lib", *prose]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_picture_has_words(site):
    for name in pages(site):
        html = (site / name).read_text("utf-8")
        for tag in re.findall(r"<img\b[^>]*>", html):
            assert re.search(r'\balt="[^"]+"', tag) or 'alt="logo"' in tag, (name, tag)


def test_nothing_is_fetched_from_elsewhere(site):
    for name in pages(site):
        html = (site / name).read_text("utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="(https?:[^"]+)"', html)
        fetched += re.findall(r'<link\b[^>]*rel="stylesheet"[^>]*href="(https?:[^"]+)"', html)
        assert fetched == [], name


@pytest.mark.long
@needs_browser
def test_no_page_scrolls_sideways_on_a_phone(site, address, page):
    page.call("Emulation.setDeviceMetricsOverride", **PHONE)
    try:
        wide = []
        for name in pages(site):
            go(page, f"{address}/{name}")
            if page.value("document.documentElement.scrollWidth") > PHONE["width"]:
                wide.append(name)
        assert wide == []
    finally:
        page.call("Emulation.clearDeviceMetricsOverride")


@needs_browser
def test_search_finds_a_page(address, page):
    go(page, f"{address}/index.html?q=webcam")
    page.wait_for("document.querySelectorAll('.md-search-result__link').length > 0")
    found = page.value(
        "[...document.querySelectorAll('.md-search-result__link')].map(each => each.href).join()"
    )
    assert "sources.html" in found


@needs_browser
def test_it_is_dark_where_the_system_is(address, page):
    def brightness() -> float:
        go(page, f"{address}/know/frame.html")
        return float(page.screenshot().mean())

    # As a reader who comes for the first time: nothing is remembered.
    page.call("Page.addScriptToEvaluateOnNewDocument", source="localStorage.clear()")
    light = brightness()
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.call("Emulation.setEmulatedMedia", features=features)
    try:
        assert brightness() < light / 2
    finally:
        page.call("Emulation.setEmulatedMedia", features=[])
