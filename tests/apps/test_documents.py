"""Documents are found by what they say, and by what they show."""

from __future__ import annotations

import numpy as np
import pytest

from apps.content.documents import Library
from heimdall import ConfigError
from heimdall.system import paths


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(paths.ASSETS / "documents")


def test_every_document_has_a_title_and_a_page(library):
    titles = {document.path.stem: document.title for document in library.documents}
    assert titles["one-gpu"] == "Four networks, one GPU"
    assert all(document.page.shape[2] == 4 for document in library.documents)


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (["A GPU runs one thing at atime and cannot"], "one-gpu.md"),
        (["handedoverwholedelaystheframethatis", "dueinioms."], "one-gpu.md"),
        (["be interruptedA network of 6o ms that"], "one-gpu.md"),
        (["biscuits, sold in yelow boxes"], "camprodon.md"),
        (["POINT AND CLICK;", "the right button keeps a note"], "reading-a-page.md"),
    ],
)
def test_what_was_read_finds_its_document_mistakes_and_all(library, lines, name):
    assert library.saying(lines).path.name == name


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["So"],
        ["frame", "gap"],  # in a document, and in many another
        ["The quick brown fox jumps over the lazy dog"],
        ["Notice: double parking prohibited at all times"],
        ["A road of 60 km that is closed in winter"],
    ],
)
def test_other_words_find_nothing(library, lines):
    assert library.saying(lines) is None


def test_words_count_before_looks(library, clip):
    box = clip("box.mp4", 120)[60:260, 300:560]
    assert library.find(box, ["draw first, always"]).path.name == "one-gpu.md"
    assert library.find(box, ["CMPR0D"]).path.name == "camprodon.md"


def test_a_thing_finds_the_document_with_its_picture(library, clip):
    assert library.find(clip("box.mp4", 120)[60:260, 300:560]).path.name == "camprodon.md"


def test_a_printed_page_on_a_table_finds_its_file(library, clip):
    page = clip("desk.mp4", 100)[210:430, 150:470]
    assert library.find(page).path.name == "one-gpu.md"


@pytest.mark.parametrize(("name", "index"), [("cup.mp4", 50), ("single_face.mp4", 30)])
def test_what_no_document_shows_finds_none(library, clip, name, index):
    assert library.find(clip(name, index)) is None


def test_a_picture_without_any_feature_finds_none(library):
    assert library.find(np.full((50, 50, 3), 128, np.uint8)) is None


def test_a_folder_without_documents_is_explained(tmp_path):
    with pytest.raises(ConfigError, match=r"no documents in .*\.md"):
        Library(tmp_path)


def test_a_document_that_is_no_text_is_named(tmp_path):
    (tmp_path / "broken.md").write_bytes(b"\xff\xfe\x00bad")
    with pytest.raises(ConfigError, match=r"broken\.md"):
        Library(tmp_path)
