"""When a fault is there, in the process of the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from heimdall.app import App

THREAD = "fault"  # the name of the thread that begins and ends one


class Moment:
    """When a fault is there, as the process of the run knows it: ``after_s`` after its warm-up, for
    ``lasts_s``.

    ``dnn`` is the one that faults of a single DNN are about: the app's first that runs without
    being asked for. ``note(kind, *what)`` tells the process that watches. Any thread may ask.
    """

    def __init__(self, after_s: float, lasts_s: float, note: Callable[..., None]) -> None:
        self.lasts_s, self.note = lasts_s, note
        self.app: App = None  # type: ignore[assignment]  # known before anything is injected
        self.held: list[threading.Thread] = []  # those that never come back
        self.active = self.ended = False
        self._after_ns = round(after_s * 1e9)
        self._warm_ns: int | None = None
        self._hooks: list[tuple[Callable[[], object], Callable[[], object]]] = []
        self._firsts: set[object] = set()
        self._lock = threading.Lock()

    @property
    def dnn(self) -> str:
        """See the class."""
        return next((each.name for each in self.app.dnns if not each.on_event), "")

    def warm(self) -> None:
        """The run is warm; if it is told so again, it was not before."""
        first, self._warm_ns = self._warm_ns is None, time.perf_counter_ns()
        if first:
            threading.Thread(target=self._pass, name=THREAD, daemon=True).start()

    def during(self, begin: Callable[[], object], end: Callable[[], object]) -> None:
        """Call ``begin`` when it begins, and ``end`` when it ends."""
        self._hooks.append((begin, end))

    def acted(self, dnn: str = "") -> None:
        """The fault has done something, to one inference of a DNN or to nobody's in particular."""
        self.note("acted", dnn)

    def first(self, what: object = None) -> bool:
        """True for the first who asks while it is there, of those who ask about ``what``."""
        with self._lock:
            if not self.active or what in self._firsts:
                return False
            self._firsts.add(what)
            return True

    def wait_until_over(self) -> None:
        """Return when the fault has ended."""
        while self.active:
            time.sleep(0.01)

    def hang(self) -> None:
        """Never return."""
        self.held.append(threading.current_thread())
        threading.Event().wait()

    def _pass(self) -> None:
        assert self._warm_ns is not None
        while (left_ns := self._warm_ns + self._after_ns - time.perf_counter_ns()) > 0:
            time.sleep(left_ns / 1e9)
        self.note("began")
        self.active = True
        for begin, _ in self._hooks:
            begin()
        time.sleep(self.lasts_s)
        self.active, self.ended = False, True
        for _, end in self._hooks:
            end()
        self.note("ended")
