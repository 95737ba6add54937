"""An app whose DNNs may leave for a server, which is killed in the middle and comes back.

    python -m benchmarks.remote [--answer-ms 30] [--alone]

The server stands for a machine elsewhere: it takes no core of this one, and answers zeros after
``--answer-ms``. What is measured is where inferences run and what becomes of frames, not results;
``--alone`` is the same app without it. Prints one JSON value: how many inferences it answered
before it was killed and after it was back, and the app's frames.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import threading
import time
from typing import Any

from heimdall import DNN, App, run
from heimdall.lab.faults.elsewhere import Elsewhere
from heimdall.models.catalog import open_pipeline
from heimdall.serve import Server

KILLED_S, BACK_S, ENDS_S = 25.0, 35.0, 60.0  # after the server answered for the first time


def serve(answer_s: float, port: int, answered: Any) -> None:
    """A process of its own, until it is killed."""
    models = Elsewhere([open_pipeline(str(each.model)) for each in Crowd.dnns], answer_s)
    with Server(models, http_port=None, grpc_port=port) as server:
        while True:
            answered.value = sum(each.succeeded for each in server.service.counts.values())
            time.sleep(0.1)


class Crowd(App):
    """Four DNNs without a pause: more than one core of a software GPU has time for."""

    title = "Crowd"
    dnns = tuple(
        DNN(name, model=model)
        for name, model in (
            ("detect", "nanodet"),
            ("people", "selfie"),
            ("hand", "hand"),
            ("pose", "movenet"),
        )
    )


class Fate(threading.Thread):
    """Starts the server, kills it, and starts it again; ``answered`` before and after."""

    def __init__(self, answer_s: float) -> None:
        super().__init__(daemon=True)
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        self._answer_s = answer_s
        self._methods = multiprocessing.get_context("spawn")
        self.servers = [self._begin()]

    def _begin(self) -> tuple[Any, Any]:
        answered = self._methods.Value("q", 0)
        child = self._methods.Process(
            target=serve, args=(self._answer_s, self.port, answered), daemon=True
        )
        child.start()
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return child, answered
            except OSError:
                time.sleep(0.1)

    def run(self) -> None:
        child, answered = self.servers[0]
        while answered.value == 0:  # it is measured before the first frame
            time.sleep(0.05)
        time.sleep(KILLED_S)
        child.kill()
        time.sleep(BACK_S - KILLED_S)
        self.servers.append(self._begin())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answer-ms", type=float, default=30.0)
    parser.add_argument("--alone", action="store_true", help="no server, for comparison")
    arguments = parser.parse_args()
    remote, servers = None, []
    if not arguments.alone:
        fate = Fate(arguments.answer_ms / 1e3)
        fate.start()
        remote, servers = f"grpc://127.0.0.1:{fate.port}", fate.servers
    report = run(Crowd, headless=True, seconds=ENDS_S, remote=remote, overlay="off").to_dict()
    keys = ("gpu", "cpu", "remote", "dropped", "latency_ms")
    dnns = {name: {key: each.get(key, 0) for key in keys} for name, each in report["dnns"].items()}
    found = {
        "answered": [answered.value for _, answered in servers],
        "dnns": dnns,
        **{name: report[name] for name in ("fps", "late_frames", "frames", "errors")},
        "frame_interval_ms": report["frame_interval_ms"],
    }
    print(json.dumps(found))
    for child, _ in servers:
        child.kill()


if __name__ == "__main__":
    main()
