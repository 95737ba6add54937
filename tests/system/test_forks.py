"""A fork of a process that has drawn or run networks: an error at once, instead of a wait for
threads that do not exist there. What the parent has never opened works."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from heimdall import App, Session
from heimdall.engine import open_engine
from heimdall.graph.graph import load_graph
from heimdall.render import open_surface
from heimdall.serve.hosting import HostOptions, Offer, host
from heimdall.system import paths

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

NETWORK = str(paths.ASSETS / "models" / "iris_64.onnx")
PICTURE = np.full((48, 64, 3), (0, 160, 60), np.uint8)
LIMIT_S = 60.0


class Plain(App):
    def draw(self, scene):
        pass


def drawn():
    with Session(Plain, size=(64, 48)) as session:
        session.push(PICTURE)
        session.step()
        return session.picture()[24, 32].tolist()


def served(device=None):
    with Session(render=False, device=device) as session:
        session.register(NETWORK, 1000)
        return "ran"


def in_a_fork(work: Callable[[], object], *, ends: bool = False) -> str:
    """What a fork of this process answers. ``ends``: by Python's own end, not at once."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            found = str(work())
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        os.write(writing, found.encode()[:2000])
        if not ends:
            os._exit(0)
        os.close(writing)
        raise SystemExit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], LIMIT_S)
    found = os.read(reading, 2000).decode() if ready else "it hangs"
    os.close(reading)
    until_s = time.monotonic() + LIMIT_S
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until_s:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"{found}; and it does not end"
        time.sleep(0.01)
    return found


def refused(found: str) -> bool:
    return "fork" in found.partition(":")[2] and 'get_context("spawn")' in found


# --- in processes of their own: pytest's is not to be forked once it has drawn ------------------


def _after_all_is_closed() -> None:
    assert in_a_fork(drawn) == "[60, 160, 0]"  # nothing has drawn yet
    drawn()
    served()
    assert refused(in_a_fork(drawn)), in_a_fork(drawn)
    assert refused(in_a_fork(served))
    assert refused(in_a_fork(lambda: open_surface((16, 16), headless=True)))
    assert refused(in_a_fork(lambda: open_engine("opencl")))
    assert refused(in_a_fork(lambda: host([Offer("iris", NETWORK)], HostOptions(), seconds=1)))
    assert in_a_fork(lambda: served("onnxruntime")) == "ran"
    assert in_a_fork(lambda: "ended", ends=True) == "ended"


def _while_a_session_draws() -> None:
    with Session(Plain, size=(64, 48)) as session:
        session.push(PICTURE)
        session.step()
        for call in (drawn, session.step, session.picture, lambda: session.push(PICTURE)):
            assert refused(in_a_fork(call)), call
        assert in_a_fork(session.close) == "None"
        assert in_a_fork(lambda: "ended", ends=True) == "ended"
        session.step()
        assert session.picture()[24, 32].tolist() == [60, 160, 0]


def _while_a_session_serves() -> None:
    for device in (None, "onnxruntime"):
        with Session(render=False, device=device) as session:
            model = session.register(NETWORK, 60000)
            zeros = {each.name: np.zeros(each.shape, each.dtype) for each in model.inputs}
            assert refused(in_a_fork(partial(model.run, zeros, timeout_s=20)))
            assert refused(in_a_fork(partial(model.submit, zeros)))
            assert refused(in_a_fork(session.serve))
            assert in_a_fork(session.close) == "None"
            assert in_a_fork(lambda: "ended", ends=True) == "ended"
            assert model.run(zeros, timeout_s=60)


def _with_a_surface() -> None:
    with contextlib.closing(open_surface((16, 16), headless=True)) as surface:
        surface.finish()
        assert refused(in_a_fork(surface.finish))
        assert in_a_fork(surface.close) == "None"
        assert in_a_fork(lambda: "ended", ends=True) == "ended"
        surface.finish()


def _with_an_engine() -> None:
    graph = load_graph(NETWORK)
    with contextlib.closing(open_engine("opencl")) as engine:
        network = engine.load(graph)
        inputs = {each.name: np.zeros(each.shape, each.dtype) for each in graph.inputs}
        assert refused(in_a_fork(lambda: engine.load(graph)))
        state = network.new_state()
        network.infer(state, inputs)
        assert refused(in_a_fork(lambda: network.infer(state, inputs)))
        assert refused(in_a_fork(network.new_state))
        assert in_a_fork(engine.close) == "None"
        assert in_a_fork(lambda: "ended", ends=True) == "ended"


@pytest.mark.parametrize(
    "part",
    [
        *(_after_all_is_closed, _while_a_session_draws, _while_a_session_serves),
        *(_with_a_surface, _with_an_engine),
    ],
    ids=lambda part: part.__name__.strip("_"),
)
def test_a_fork_of_a_process_with_drivers_says_so(part):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.system.test_forks", part.__name__],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


if __name__ == "__main__":
    globals()[sys.argv[1]]()
