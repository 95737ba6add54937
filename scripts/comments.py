"""What a comment behind an attribute says is its description in the reference, as Python has no
docstrings of attributes. A comment on the lines above, up to the attribute before, counts too."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache
from pathlib import Path
from typing import Any

import griffe

_DIRECTIVE = re.compile(r"^(noqa|type:|pragma)|^-{3}")


class Comments(griffe.Extension):
    """Gives attributes of classes the comments behind them."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        """An attribute has been read."""
        if attr.docstring or not isinstance(attr.filepath, Path) or attr.lineno is None:
            return
        if not (attr.parent and attr.parent.is_class):
            return
        own, before = _comments(attr.filepath)
        text = own.get(attr.endlineno or attr.lineno) or before.get(attr.lineno - 1)
        if text:
            attr.docstring = griffe.Docstring(text[0].upper() + text[1:], parent=attr)


@cache
def _comments(file: Path) -> tuple[dict[int, str], dict[int, str]]:
    """Comments by line: those behind code, and those on lines of their own, by the last line."""
    behind: dict[int, str] = {}
    alone: dict[int, str] = {}
    tokens = tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline)
    for token in tokens:
        words = token.string.lstrip("# ")
        if token.type != tokenize.COMMENT or not words or _DIRECTIVE.match(words):
            continue
        line = token.start[0]
        if token.line[: token.start[1]].strip():
            behind[line] = words
        else:
            alone[line] = f"{alone.pop(line - 1, '')} {words}".strip()
    return behind, alone
