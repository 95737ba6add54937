"""Kernels are named by what makes their source, which is rendered only when it is needed."""

from __future__ import annotations

import pytest

from heimdall.engine.opencl import conv_source
from heimdall.engine.opencl.conv_source import forget, render


@pytest.fixture
def templates(tmp_path, monkeypatch):
    (tmp_path / "deep.cl").write_text("// deep\n")
    (tmp_path / "shared.cl").write_text('{% import "deep.cl" as deep %}\n// shared\n')
    (tmp_path / "one.cl").write_text('{% import "shared.cl" as shared %}\nint x[{{ side }}];\n')
    (tmp_path / "other.cl").write_text("int y[{{ side }}];\n")
    monkeypatch.setattr(conv_source, "KERNELS", tmp_path)
    forget()
    yield tmp_path
    monkeypatch.undo()
    forget()


def test_equal_variables_give_the_same_kernel_and_others_another(templates):
    assert render("one", side=3) is render("one", side=3)
    assert render("one", side=3).identity != render("one", side=4).identity
    assert render("one", side=3).source.strip() == "int x[3];"


def test_identity_changes_with_every_imported_template_and_no_other(templates):
    before = render("one", side=3).identity, render("other", side=3).identity
    (templates / "deep.cl").write_text("// changed\n")
    forget()
    assert render("one", side=3).identity != before[0]
    assert render("other", side=3).identity == before[1]
