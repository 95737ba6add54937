"""Which step of which answer is next: a language model's cache, and the questions put to it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.errors import AppError, ConfigError, ModelError
from heimdall.models.generation.answer import CONTEXT, FAILED, Answer, OnToken
from heimdall.models.generation.sampling import Sampling
from heimdall.models.generation.tokens import Tokenizer
from heimdall.vocabulary.enums import Name


class Kind(Name):
    """Which of the two networks."""

    PROMPT = "prompt"  # many tokens, no logits
    STEP = "step"  # one token, and the logits behind it


@dataclass(frozen=True)
class Step:
    """Tokens that go through a network behind ``position`` others."""

    kind: Kind
    tokens: tuple[int, ...]
    position: int
    answer: Answer


class Writer:
    """One cache, which holds one text. Questions wait for each other; what a question shares with
    the text in the cache, from its beginning, is not computed again.

    A step at a time runs: ``begin`` gives it to who runs it, ``took`` or ``failed`` ends it. Who
    runs steps says so by ``attach``, and is asked by what it gives. Callable from any thread.
    """

    def __init__(self, context: int, rows: int) -> None:
        """``context``: the tokens that the cache holds; ``rows``: of a piece of a prompt."""
        self.context, self.rows = context, rows
        self._tokenizer: Tokenizer | None = None
        self._vocabulary = 0
        self._ends: tuple[int, ...] = ()
        self._cached: list[int] = []
        self._left: list[int] = []  # of the current text: not in the cache yet
        self._current: Answer | None = None
        self._waiting: deque[Answer] = deque()
        self._asked: Kind | None = None  # a step that was asked for, or is under way
        self._runners: dict[Kind, Callable[[], object]] = {}
        self._lock = threading.RLock()

    def open(self, tokenizer: Tokenizer, vocabulary: int, ends: Sequence[str] = ()) -> None:
        """``vocabulary``: how many logits the network has; ``ends``: tokens that end a text. Raises
        ModelError where the tokenizer is another model's."""
        if tokenizer.size > vocabulary:
            raise ModelError(
                f"the tokenizer knows {tokenizer.size} tokens, the model {vocabulary}: it is "
                "another model's"
            )
        unknown = [name for name in ends if tokenizer.token(name) is None]
        if unknown:
            raise ConfigError(f"the tokenizer has no token {unknown[0]!r} to end a text")
        self._tokenizer, self._vocabulary = tokenizer, vocabulary
        self._ends = tuple(token for name in ends if (token := tokenizer.token(name)) is not None)

    # --- questions --------------------------------------------------------------------------

    def ask(
        self,
        prompt: str | Sequence[int],
        *,
        most: int,
        stop: Sequence[str] = (),
        sampling: Sampling | None = None,
        on_token: OnToken | None = None,
    ) -> Answer:
        """Put a question, as text or as tokens. Raises ConfigError for one that has no room, or
        tokens that there are not; AppError before the model is there."""
        if self._tokenizer is None:
            raise AppError(
                "nothing can be asked before the run has begun: ask in on_start, or later"
            )
        tokens = self._tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt)
        if not tokens:
            raise ConfigError("the question is empty")
        if len(tokens) >= self.context:
            raise ConfigError(
                f"the question has {len(tokens)} tokens, and the cache has room for "
                f"{self.context}: ask for less, or declare a larger context"
            )
        outside = [token for token in tokens if not 0 <= token < self._vocabulary]
        if outside:
            raise ConfigError(
                f"token {outside[0]} is not among the {self._vocabulary} that the model knows"
            )
        if isinstance(stop, str):
            stop = (stop,)
        answer = Answer(
            tokens,
            self._tokenizer.decode,
            most=most,
            ends=self._ends,
            stop=[text for text in stop if text],
            sampling=sampling or Sampling(),
            on_token=on_token,
        )
        with self._lock:
            self._waiting.append(answer)
            self._go_on()
        return answer

    # --- who runs it ------------------------------------------------------------------------

    def attach(self, kind: Kind, ask: Callable[[], object]) -> None:
        """``ask`` for a step of that kind; from any thread."""
        with self._lock:
            self._runners[kind] = ask
            self._go_on()

    def detach(self, why: str) -> None:
        """Nobody runs steps any more: who waits is told so."""
        with self._lock:
            self._runners.clear()
            self._asked = None
            self._cached.clear()
            left = [*([self._current] if self._current else []), *self._waiting]
            self._current = None
            self._waiting.clear()
        for answer in left:
            answer.end(FAILED, why)

    def begin(self, kind: Kind) -> Step | None:
        """The step that is to run now; None where there is none of that kind."""
        with self._lock:
            if self._current is None or self._asked is not kind:
                return None
            count = min(self.rows, len(self._left) - 1) if kind is Kind.PROMPT else 1
            return Step(kind, tuple(self._left[:count]), len(self._cached), self._current)

    def took(self, step: Step, logits: np.ndarray | None) -> None:
        """A step has run; ``logits`` of shape (vocabulary,) of one by one token."""
        with self._lock:
            if self._asked is not step.kind or step.position != len(self._cached):
                return  # begun before everything ended
            self._cached += step.tokens
            wanted = step.answer is self._current
            if wanted:
                del self._left[: len(step.tokens)]
            chooses, full = wanted and not self._left, len(self._cached) >= self.context
        token = None
        if full and chooses:
            step.answer.end(CONTEXT)
        elif chooses and logits is not None:
            token = step.answer.choose(logits)  # calls its asker: not under the lock
        with self._lock:
            self._asked = None
            if step.answer.reason == FAILED:  # by what may be in the cache
                self._cached.clear()
            if token is not None and step.answer is self._current:
                self._left.append(token)
            self._go_on()

    def failed(self, step: Step, why: str) -> None:
        """A step has not run, and will not."""
        with self._lock:
            self._asked = None
            step.answer.end(FAILED, why)
            self._go_on()

    def _go_on(self) -> None:
        """Ask for the next step, of the next answer where one has ended; nothing while one is under
        way."""
        if self._asked is not None:
            return
        while self._current is None or self._current.done:
            self._current = None
            if not self._waiting:
                return
            self._current = answer = self._waiting.popleft()
            shared = _shared(self._cached, answer.prompt[:-1])
            del self._cached[shared:]
            self._left = list(answer.prompt[shared:])
        kind = self._kind()
        if kind in self._runners:
            self._asked = kind
            self._runners[kind]()

    def _kind(self) -> Kind:
        """Few tokens go one by one: a piece costs as much however many of its rows are used."""
        more, place = len(self._left) - 1, len(self._cached)
        piece = more > self.rows // 8 and place + self.rows <= self.context
        return Kind.PROMPT if piece else Kind.STEP


def _shared(before: Sequence[int], after: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    for index, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return index
    return min(len(before), len(after))
