"""``python -m tests.fuzz``: damaged inputs of every kind, tried; each finding with its seed.

``python -m tests.fuzz --target gltf --seed 123`` repeats one, in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from tests.fuzz.child import attempt
from tests.fuzz.target import NAMES, damaged, find
from tests.fuzz.watch import trials


def main() -> int:
    """The number of findings, at most 1, as the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--target", choices=NAMES, help="only this kind of input")
    parser.add_argument("--count", type=int, default=5000, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="with --target: repeat one")
    parser.add_argument("--save", type=Path, help="with --seed: write the damaged input here")
    options = parser.parse_args()
    if options.seed is not None:
        if options.target is None:
            parser.error("--seed needs --target")
        return _repeat(options.target, options.seed, options.save)
    seeds = range(options.first, options.first + options.count)
    targets = [options.target] if options.target else NAMES
    return int(sum(_try(target, seeds, options.jobs) for target in targets) > 0)


def _try(target: str, seeds: range, jobs: int) -> int:
    """The number of findings of one target; the figures are printed."""
    began, outcomes, findings = time.monotonic(), Counter[str](), 0
    for result in trials([(target, seed) for seed in seeds], jobs):
        outcomes[result["outcome"]] += 1
        if result["problem"]:
            findings += 1
            what = f"{result['outcome']}: {result['problem']}"
            print(f"{target}, seed {result['case']}: {what}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{target}: {outcomes.total()} of {len(seeds)}", end="", file=sys.stderr)
    print(
        f"{target}: {outcomes.total()} damaged inputs in {time.monotonic() - began:.0f} s, "
        f"{findings} findings; each process below {find(target).bound_bytes >> 20} MB"
    )
    for outcome, number in outcomes.most_common():
        print(f"  {number:6} {outcome}", flush=True)
    return findings


def _repeat(target: str, seed: int, save: Path | None) -> int:
    if save:
        save.write_bytes(damaged(target, seed)[1])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEIMDALL_CACHE"] = folder
        with closing(find(target)(Path(folder))) as opened:
            result = attempt(opened, target, seed)
    print(json.dumps(result, indent=2))
    return int(bool(result["problem"]))


if __name__ == "__main__":
    sys.exit(main())
