"""The mapper in a process of its own: adjusting a map holds an interpreter for many milliseconds,
and frames do not wait for that.

The process has what others leave of all cores. If it ends or hangs, another one is given the map as
the tracker has it, and ``problem`` says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import BinaryIO, cast

from heimdall.system import python
from heimdall.system.faults import say
from heimdall.system.priority import behind
from heimdall.tracking.slam import wire
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.model import Map, NewKeyframe, Update

log = logging.getLogger(__name__)

NICE = 10  # 19 has 3% of a core that others want all of: a map would not begin
MOST_WAITING = 8  # keyframes: points are followed by guessed depths meanwhile
HANGS_S = 20.0  # without an answer: all other programs may have taken the cores
WORDS = 8000  # bytes of what it says as it ends
MOST_BEGUN = 5  # processes: one that ends again and again is not worth more
COMMAND = python.command("heimdall.tracking.slam.worker")
ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class MappingProcess:
    """As ``Mapper``, elsewhere: what it found out comes with ``updates``, some frames later."""

    def __init__(self) -> None:
        self.problem = ""
        self._begun = 0
        self._asked_s: float | None = None
        self._asked = 0  # answers that are to come
        self._forgotten = 0  # of those, for a map that is no more
        self._known: Map | None = None  # as the tracker has it, for another process
        self._link: _Link | _Here | None = None

    @property
    def busy(self) -> bool:
        """True while it should not be given more."""
        return self._asked - self._forgotten >= MOST_WAITING

    def forget(self) -> None:
        """What was asked does not matter any more: answers to that are not told."""
        self._forgotten, self._known, self._asked_s = self._asked, None, None

    def warm(self) -> None:
        """Start the process, so that the first map does not wait for it."""
        if self._link is None and self._begun < MOST_BEGUN:
            self._begun += 1
            try:
                self._link = _Link()
            except OSError as error:
                self.problem = f"the map is made in this process; frames may be late: {say(error)}"
                log.warning("%s", self.problem)
                self._link = _Here()

    def begin(self, known: Map) -> None:
        """A map to go on with. It is kept: another process begins with it."""
        self._known = known
        self._say(wire.of_map(known))

    def add(self, new: NewKeyframe) -> None:
        """One more keyframe."""
        self._say(wire.of_keyframe(new))

    def updates(self) -> list[Update]:
        """What has been found out since the last time."""
        link, found = self._link, []
        if link is None:
            return []
        while True:
            try:
                message = link.heard.get_nowait()
            except queue.Empty:
                break
            if message is None:
                self._replace("it ended" + link.last_words())
                break
            self._asked -= 1
            if self._forgotten:
                self._forgotten -= 1
                continue
            self._asked_s = time.monotonic() if self._asked else None
            found.append(wire.to_update(message))
        if self._asked_s is not None and time.monotonic() - self._asked_s > HANGS_S:
            self._replace(f"no answer within {HANGS_S:g} s")
        return found

    def close(self) -> None:
        """End the process. Closing twice is allowed."""
        link, self._link = self._link, None
        self._begun = MOST_BEGUN
        if link is not None:
            link.close()

    def _say(self, message: wire.Message) -> None:
        self.warm()
        if self._link is not None:
            self._asked_s = self._asked_s or time.monotonic()
            self._asked += 1
            self._link.say(message)

    def _replace(self, why: str) -> None:
        """Another process takes over the map as it is."""
        link, self._link, self._asked_s = self._link, None, None
        self._asked = self._forgotten = 0
        self.problem = f"the map's process: {why}; " + (
            "another one goes on" if self._begun < MOST_BEGUN else "the map stays as it is"
        )
        log.warning("%s", self.problem)
        if link is not None:
            link.close()
        if self._known is not None:
            self._say(wire.of_map(self._known))


class _Link:
    """A process, one thread that writes to it, and one that reads what it says: ``heard`` ends with
    None when it has ended."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[wire.Message | None] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[wire.Message | None] = queue.SimpleQueue()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  # until close
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            env={**os.environ, **ONE_CORE},
            start_new_session=True,
        )
        behind(self._process.pid, NICE)
        self._threads = [
            threading.Thread(target=each, name="map", daemon=True)
            for each in (self._write, self._read)
        ]
        for each in self._threads:
            each.start()

    def say(self, message: wire.Message) -> None:
        """Tell the process, without waiting."""
        self._said.put(message)

    def last_words(self) -> str:
        """Why it ended, where it says so: its traceback is logged."""
        self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, self._complaints.tell() - WORDS))
        said = self._complaints.read().decode(errors="replace").strip()
        if said:
            log.warning("the map's process ended with:\n%s", said)
        return f" ({said.splitlines()[-1][:200]})" if said else ""

    def close(self) -> None:
        """End the process and both threads."""
        self._said.put(None)
        self._process.kill()
        self._process.wait()
        for each in self._threads:
            each.join(1.0)
        for pipe in (self._process.stdin, self._process.stdout, self._complaints):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (message := self._said.get()) is not None:
                wire.write(cast(BinaryIO, self._process.stdin), message)

    def _read(self) -> None:
        try:
            while (message := wire.read(cast(BinaryIO, self._process.stdout))) is not None:
                self.heard.put(message)
        except (OSError, ValueError, KeyError) as error:
            log.warning("the map's process: %s", say(error))
        self.heard.put(None)


class _Here:
    """Stands in for a process that cannot be started: answers at once, in this one."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[wire.Message | None] = queue.SimpleQueue()
        self._mapper = Mapper()

    def say(self, message: wire.Message) -> None:
        """Do what is said."""
        self.heard.put(answer(self._mapper, message))

    def last_words(self) -> str:
        """None: it does not end."""
        return ""

    def close(self) -> None:
        """Nothing to end."""


def answer(mapper: Mapper, message: wire.Message) -> wire.Message:
    """What a mapper has found out from a message."""
    if message.kind == "map":
        return wire.of_update(mapper.begin(wire.to_map(message)))
    return wire.of_update(mapper.add(wire.to_keyframe(message)))


def main() -> None:
    """In the process: do what is said until there is nothing more."""
    import cv2

    cv2.setNumThreads(1)
    mapper = Mapper()
    heard, said = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not what is said
    while (message := wire.read(heard)) is not None:
        wire.write(said, answer(mapper, message))


if __name__ == "__main__":
    main()
