"""Text to tokens and back, by the file that comes with a language model (``tokenizer.json``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from heimdall.errors import ModelError
from heimdall.system.extras import need


class Tokenizer(Protocol):
    """What a Writer needs of a tokenizer."""

    size: int  # tokens are 0 .. size - 1

    def encode(self, text: str) -> list[int]:
        """Text to tokens."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Tokens to text, without those that are not text."""

    def token(self, name: str) -> int | None:
        """The number of a token by its name, such as "<|end|>"."""


class TokenizerFile:
    """A file of the package ``tokenizers``."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError without that package, ModelError for what is no such file."""
        need("tokenizers", "text", "a language model")
        import tokenizers

        if not path.is_file():
            raise ModelError(
                f"no tokenizer at {path}: it comes with the model, as tokenizer.json; give its "
                "path as tokenizer"
            )
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises nothing more special
            raise ModelError(f"{path} is no tokenizer.json: {error}") from error
        self.size = int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))

    def token(self, name: str) -> int | None:
        found = self._tokenizer.token_to_id(name)
        return None if found is None else int(found)
