"""What one process notes, another one reads."""

from __future__ import annotations

import os
import threading

from heimdall.lab.faults.notes import Listener, Notes


def test_what_is_noted_is_seen_until_the_pipe_is_closed():
    read, write = os.pipe()
    note, listener = Notes(write), Listener(os.fdopen(read))
    note("entered")
    note("frame")
    note("begun", 1, "hand")
    note("end", 1, "hand", "result")
    note("told", "hand hangs")
    note("acted", "hand")
    note("left", ["thread x"])
    note("fps", 60.0)
    assert listener.wait_for("entered", 10)
    os.write(write, b'[12, "fra')  # of a process that was killed
    os.close(write)
    listener.join(10)
    assert not listener.wait_for("began", 10)
    seen = listener.seen
    assert len(seen.frames) == 1
    assert seen.frames[0] > seen.entered_ns
    assert len(seen.results["hand"]) == 1
    assert seen.jobs[1].end == "result"
    assert [text for _, text in seen.told] == ["hand hangs"]
    assert [dnn for _, dnn in seen.acted] == ["hand"]
    assert seen.left == ["thread x"]
    assert seen.fps == 60.0


def test_notes_to_nobody_stop_nothing():
    read, write = os.pipe()
    os.close(read)
    Notes(write)("frame")
    os.close(write)


def test_notes_of_several_threads_are_whole():
    read, write = os.pipe()
    note, listener = Notes(write), Listener(os.fdopen(read))

    def write_many():
        for _ in range(200):
            note("frame")

    threads = [threading.Thread(target=write_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(write)
    listener.join(10)
    assert len(listener.seen.frames) == 800
