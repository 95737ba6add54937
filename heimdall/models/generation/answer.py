"""An answer as it is written: text that grows, from any thread."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import numpy as np

from heimdall.errors import RequestError
from heimdall.models.generation.sampling import Sampling

log = logging.getLogger(__name__)

OnToken = Callable[[str], object]

# Why an answer has ended.
END, STOP, LENGTH, CONTEXT, CANCELLED, FAILED = (
    "end",
    "stop",
    "length",
    "context",
    "cancelled",
    "failed",
)


class Answer:
    """What a language model answers to one question.

    It can be read while it grows (``text``), waited for (``result``), and taken piece by piece:
    ``for piece in answer``, ``async for piece in answer``. ``reason`` says why it ended: "end" (the
    model's own), "stop" (one of the stop texts), "length" (as many tokens as were allowed),
    "context" (its cache is full), "cancelled", "failed" (``error`` says why); empty: it goes on.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        decode: Callable[[Sequence[int]], str],
        *,
        most: int,
        ends: Sequence[int],
        stop: Sequence[str],
        sampling: Sampling,
        on_token: OnToken | None = None,
    ) -> None:
        """``prompt``: its tokens; ``most`` tokens are written, or until one of ``ends`` or a text
        of ``stop`` comes. ``on_token`` is called with each piece of text, in a pool thread."""
        self.prompt = tuple(prompt)
        self.tokens: list[int] = []
        self.text = self.reason = self.error = ""
        self._decode, self._most, self._ends = decode, most, frozenset(ends)
        self._stop, self._sampling, self._chance = tuple(stop), sampling, sampling.random()
        self._on_token = on_token
        self._changed = threading.Condition()
        self._listeners: list[Callable[[], object]] = []
        self.times_ns: list[int] = []  # of each token, by ``time.perf_counter_ns``

    def __repr__(self) -> str:
        return f"<Answer {self.text!r} {self.reason or 'goes on'}>"

    # --- for whoever asked ------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether nothing more comes."""
        return self.reason != ""

    @property
    def tokens_per_s(self) -> float | None:
        """From the first token to the last; None before the second."""
        times_ns = self.times_ns
        if len(times_ns) < 2:
            return None
        return 1e9 * (len(times_ns) - 1) / (times_ns[-1] - times_ns[0])

    def cancel(self) -> None:
        """Have it end; what was written stays."""
        self.end(CANCELLED)

    def result(self, timeout: float | None = None) -> str:
        """The whole text, once it has ended. Raises RequestError where it failed, TimeoutError
        after ``timeout`` s."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.done, timeout):
                raise TimeoutError(f"the answer goes on after {timeout} s")
        self._check()
        return self.text

    def __iter__(self) -> Iterator[str]:
        """Its pieces, each as soon as it is there. Raises RequestError where it fails."""
        taken = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self.text) > taken or self.done)  # noqa: B023
            if not (piece := self.text[taken:]):
                break
            taken += len(piece)
            yield piece
        self._check()

    async def __aiter__(self) -> AsyncIterator[str]:
        """As ``__iter__``, without stopping the event loop."""
        loop, woken, taken = asyncio.get_running_loop(), asyncio.Event(), 0

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        with self._changed:
            self._listeners.append(wake)
        try:
            while True:
                woken.clear()
                done = self.done  # first: text may be written between
                if piece := self.text[taken:]:
                    taken += len(piece)
                    yield piece
                elif done:
                    break
                else:
                    await woken.wait()
        finally:
            with self._changed:
                self._listeners.remove(wake)
        self._check()

    def _check(self) -> None:
        if self.reason == FAILED:
            raise RequestError(f"the answer ended after {len(self.tokens)} tokens: {self.error}")

    # --- for the writer ---------------------------------------------------------------------

    def choose(self, logits: np.ndarray) -> int | None:
        """Write the next token, by ``logits`` of shape (vocabulary,); None: it has ended."""
        if np.isnan(logits).any():
            self.end(FAILED, "its logits are no numbers (NaN)")
            return None
        token = self._sampling.choose(logits, self._chance)
        if token in self._ends:
            self.end(END)
            return None
        with self._changed:
            if self.done:
                return None
            self.tokens.append(token)
            self.times_ns.append(time.perf_counter_ns())
        self._write()
        if not self.done and len(self.tokens) >= self._most:
            self.end(LENGTH)
        return None if self.done else token

    def end(self, reason: str, error: str = "") -> None:
        """Nothing more comes, unless it has ended before."""
        with self._changed:
            if self.done:
                return
            held = self._decode(self.tokens) if self.tokens else ""
            if reason != STOP and held.startswith(self.text):
                self.text = held
            self.reason, self.error = reason, error
        self._tell()

    def _write(self) -> None:
        """The text of all tokens, but for what may yet change, or turn out to be a stop."""
        whole = self._decode(self.tokens)
        ends = [at for text in self._stop if (at := whole.find(text)) >= 0]
        sure = whole[: min(ends)] if ends else whole.rstrip("\ufffd")
        if not ends:
            sure = sure[: len(sure) - _begun(sure, self._stop)]
        with self._changed:
            piece = sure[len(self.text) :] if sure.startswith(self.text) else ""
            self.text += piece
        if piece and self._on_token is not None:
            try:
                self._on_token(piece)
            except Exception:  # the caller's code: the answer goes on
                log.exception("on_token of an answer has failed")
        if ends:
            self.end(STOP)
        self._tell()

    def _tell(self) -> None:
        with self._changed:
            self._changed.notify_all()
            listeners = list(self._listeners)
        for wake in listeners:
            try:
                wake()
            except RuntimeError:  # its event loop is closed: nobody listens
                log.debug("an answer is not listened to any more", exc_info=True)


def _begun(text: str, stops: Sequence[str]) -> int:
    """How many letters at its end may be the beginning of a stop."""
    longest = max(map(len, stops), default=1) - 1
    for count in range(min(longest, len(text)), 0, -1):
        if any(stop.startswith(text[-count:]) for stop in stops):
            return count
    return 0
