"""Looks whether a processor that was lost works again: nothing else would try."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from heimdall.vocabulary.events import ProcessorBack, ProcessorLost

log = logging.getLogger(__name__)

EVERY_S = 0.4  # one that is back is used again within a second
LONGEST_S = 30.0  # where it is back again and again only to be lost at once
HANGING_S = 10.0  # a probe that takes longer hangs, as what was lost before it may
MOST_PATIENCE_S = 600.0  # of later ones
_SOON_S = 10.0  # lost again so soon: it was not really back


class Prober:
    """Tells the coordinator, through its inbox, of processors that are lost, and back."""

    def __init__(self, inbox: queue.SimpleQueue[Any]) -> None:
        self._inbox = inbox
        self._lost: set[str] = set()
        self._losses: Counter[str] = Counter()
        self._back: dict[str, tuple[float, float]] = {}  # when, and how long the waits were
        self._closing = threading.Event()
        self._lock = threading.Lock()

    def lose(self, processor: str, probe: Callable[[], object]) -> None:
        """A processor is lost until ``probe`` raises nothing; that is tried on a thread of its own.
        Callable from any thread, and as often as it is noticed."""
        with self._lock:
            if processor in self._lost or self._closing.is_set():
                return
            self._lost.add(processor)
            self._losses[processor] += 1
            when_s, wait_s = self._back.get(processor, (0.0, EVERY_S))
        soon = time.monotonic() - when_s < _SOON_S
        wait_s = min(2 * wait_s, LONGEST_S) if soon and when_s else EVERY_S
        self._inbox.put(ProcessorLost(processor))
        watch = threading.Thread(
            target=self._watch, args=(processor, probe, wait_s), name="prober", daemon=True
        )
        watch.start()

    def losses(self, processor: str) -> int:
        """How often a processor has been lost."""
        return self._losses[processor]

    def _watch(self, processor: str, probe: Callable[[], object], wait_s: float) -> None:
        next_s, patience_s = wait_s, HANGING_S
        while not self._closing.wait(next_s):
            next_s = wait_s
            probed: Future[None] = Future()
            threading.Thread(target=_try, args=(probe, probed), name="probe", daemon=True).start()
            try:
                error = probed.exception(patience_s)
            except TimeoutError:  # its thread is left behind: fewer and fewer are
                next_s, patience_s = patience_s, min(2 * patience_s, MOST_PATIENCE_S)
                log.warning(
                    "%s is still lost: looking whether it works again has not come back; that is "
                    "given up, and tried again in %g s",
                    processor,
                    next_s,
                )
                continue
            if error is not None:
                log.debug("%s is still lost: %s", processor, error)
                continue
            with self._lock:
                self._lost.discard(processor)
                self._back[processor] = time.monotonic(), wait_s
            log.warning("%s works again", processor)
            self._inbox.put(ProcessorBack(processor))
            return

    def close(self) -> None:
        """Look no more."""
        self._closing.set()


def _try(probe: Callable[[], object], probed: Future[None]) -> None:
    try:
        probe()
    except BaseException as error:  # of any kind: it does not work
        probed.set_exception(error)
    else:
        probed.set_result(None)
