"""Tokens: where they are read from, what may be one, and how they are compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.errors import ConfigError
from heimdall.system.token import VARIABLE, bearer, checked, is_same, read_token

TOKEN = "0123456789.abc_~-"


def test_a_file_wins_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert read_token() is None
    monkeypatch.setenv(VARIABLE, TOKEN)
    assert read_token() == TOKEN
    file = tmp_path / "token"
    file.write_text("another-token-of-22-ch\n")
    assert read_token(file) == "another-token-of-22-ch"


def test_a_token_that_is_none_is_told_without_saying_it(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "secret")
    with pytest.raises(ConfigError, match=VARIABLE) as told:
        read_token()
    assert "secret'" not in str(told.value)
    for content in (b"", b"short", b"with a space in the middle", b"\xff" * 20):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(ConfigError, match="token file"):
            read_token(tmp_path / "token")
    with pytest.raises(ConfigError, match="nowhere"):
        read_token(tmp_path / "nowhere")


@given(st.text())
def test_only_the_token_is_the_token(text):
    assert is_same(text, TOKEN) == (text == TOKEN)
    assert bearer(text) != TOKEN
    assert is_same(TOKEN, TOKEN)


def test_a_header_bears_a_token():
    assert bearer(f"Bearer {TOKEN}") == bearer(f" bearer  {TOKEN} ") == TOKEN
    for header in (None, "", "Bearer", TOKEN, f"Basic {TOKEN}"):
        assert bearer(header) == ""
    assert checked(TOKEN) == TOKEN
