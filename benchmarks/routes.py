"""What choosing processors brings on this machine: ``python benchmarks/routes.py [--seconds S]``.

Keeps requests for several models in flight, first with each model fixed to a processor, in every
way there is, then under policies that choose (Band's). Prints answers a second; they compute on the
GPU, which may be PoCL, and on a CPU worker.
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time
from concurrent.futures import Future

import numpy as np

from heimdall import Scheduler, Session
from heimdall.schedulers.fixed import Fixed

MODELS = ("seg_selfie_256.onnx", "detect_nanodet_416.onnx", "hand_palm_lite_192.onnx")
POLICIES = ("lst", "heft", "shortest", "round-robin")
SLO_MS = 60_000.0


def answers_hz(scheduler: str | Scheduler, seconds: float, in_flight: int) -> float:
    """How many requests a second are answered if so many of each model are always under way."""
    with Session(scheduler=scheduler) as session:
        models = [session.register(name, SLO_MS) for name in MODELS]
        inputs = [np.zeros(each.inputs[0].shape, each.inputs[0].dtype) for each in models]
        over, done = threading.Event(), 0
        end_s = time.perf_counter() + seconds

        def ask(index: int) -> None:
            models[index].submit(inputs[index]).add_done_callback(lambda f: answered(f, index))

        def answered(future: Future[dict[str, np.ndarray]], index: int) -> None:
            nonlocal done
            if over.is_set():  # the session is closing, and this one was still under way
                return
            future.result()
            if time.perf_counter() < end_s:
                done += 1
                ask(index)
            else:
                over.set()

        for index in range(len(models)):
            for _ in range(in_flight):
                ask(index)
        session.serve(until=over)
    return done / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each run")
    parser.add_argument("--in-flight", type=int, default=2, help="requests of each model")
    arguments = parser.parse_args()
    names = [name.removesuffix(".onnx") for name in MODELS]
    best_hz = 0.0
    for mapping in itertools.product(("gpu", "cpu"), repeat=len(MODELS)):
        fixed = Fixed(dict(zip(names, mapping, strict=True)))
        hz = answers_hz(fixed, arguments.seconds, arguments.in_flight)
        best_hz = max(best_hz, hz)
        print(f"{' '.join(mapping):<16}{hz:>8.1f}", flush=True)
    for policy in POLICIES:
        hz = answers_hz(policy, arguments.seconds, arguments.in_flight)
        print(f"{policy:<16}{hz:>8.1f}  {hz / best_hz:.2f} x the best of them", flush=True)


if __name__ == "__main__":
    main()
