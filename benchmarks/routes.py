"""What choosing processors brings on this machine: ``python benchmarks/routes.py [--seconds S]``.

Keeps frames in flight, each of one request to every model, first with each model fixed to a
processor, in every way there is, then under policies that choose (Band's). Prints frames a second
whose requests have all been answered, so that everybody has done the same work: answers a second
would favour who answers the cheapest model most often. The GPU, which may be PoCL, and a CPU worker
compute. Systems take turns; medians, with the least and the most.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import threading
import time
from concurrent.futures import Future

import numpy as np

from heimdall import Scheduler, Session
from heimdall.lab.policies.fixed import Fixed

MODELS = ("seg_selfie_256.onnx", "detect_nanodet_416.onnx", "hand_palm_lite_192.onnx")
POLICIES = ("lst", "heft", "shortest", "round-robin")
SLO_MS = 60_000.0


def frames_hz(scheduler: str | Scheduler, seconds: float, in_flight: int) -> float:
    """How many frames a second are answered if so many are always under way."""
    with Session(scheduler=scheduler) as session:
        models = [session.register(name, SLO_MS) for name in MODELS]
        inputs = [np.zeros(each.inputs[0].shape, each.inputs[0].dtype) for each in models]
        for model, values in zip(models, inputs, strict=True):
            model.run(values)
        over, lock, done = threading.Event(), threading.Lock(), 0
        end_s = time.perf_counter() + seconds

        def ask() -> None:
            left = len(models)

            def answered(future: Future[dict[str, np.ndarray]]) -> None:
                nonlocal left, done
                if over.is_set():  # the session is closing, and this one was still under way
                    return
                future.result()
                with lock:
                    left -= 1
                    whole = left == 0
                    in_time = time.perf_counter() < end_s
                    done += whole and in_time
                if not in_time:
                    over.set()
                elif whole:
                    ask()

            for model, values in zip(models, inputs, strict=True):
                model.submit(values).add_done_callback(answered)

        for _ in range(in_flight):
            ask()
        session.serve(until=over)
    return done / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each run")
    parser.add_argument("--in-flight", type=int, default=2, help="frames")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    names = [name.removesuffix(".onnx") for name in MODELS]
    mappings = list(itertools.product(("gpu", "cpu"), repeat=len(MODELS)))
    found: dict[str, list[float]] = {}
    for _ in range(arguments.turns):
        for mapping in mappings:
            fixed = Fixed(dict(zip(names, mapping, strict=True)))
            hz = frames_hz(fixed, arguments.seconds, arguments.in_flight)
            found.setdefault(" ".join(mapping), []).append(hz)
        for policy in POLICIES:
            hz = frames_hz(policy, arguments.seconds, arguments.in_flight)
            found.setdefault(policy, []).append(hz)
    best_hz = max(statistics.median(found[" ".join(mapping)]) for mapping in mappings)
    for name, rates in found.items():
        hz = statistics.median(rates)
        spread = f"({min(rates):.1f}-{max(rates):.1f})"
        print(f"{name:<16}{hz:>8.1f} {spread:<16}{hz / best_hz:.2f} x the best fixed mapping")


if __name__ == "__main__":
    main()
