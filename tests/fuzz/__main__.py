"""``python -m tests.fuzz``: damaged models, loaded and run; each finding with its seed.

``python -m tests.fuzz --seed 123`` repeats one, in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.child import BOUND_BYTES, Trial, damaged
from tests.fuzz.watch import trials


def main() -> int:
    """The number of findings, at most 1, as the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, help="repeat one")
    parser.add_argument("--save", type=Path, help="with --seed: write the damaged model here")
    options = parser.parse_args()
    if options.seed is not None:
        return _repeat(options.seed, options.save)
    began, outcomes, findings = time.monotonic(), Counter[str](), 0
    for result in trials(range(options.first, options.first + options.count), options.jobs):
        outcomes[result["outcome"]] += 1
        if result["problem"]:
            findings += 1
            print(f"seed {result['seed']}: {result['outcome']}: {result['problem']}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{outcomes.total()} of {options.count}", end="", file=sys.stderr)
    print(
        f"{outcomes.total()} damaged models in {time.monotonic() - began:.0f} s, "
        f"{findings} findings; each process below {BOUND_BYTES >> 20} MB"
    )
    for outcome, number in outcomes.most_common():
        print(f"  {number:6} {outcome}")
    return int(findings > 0)


def _repeat(seed: int, save: Path | None) -> int:
    if save:
        save.write_bytes(damaged(seed)[1])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEIMDALL_CACHE"] = folder
        result = Trial(Path(folder)).run(seed)
    print(json.dumps(result, indent=2))
    return int(bool(result["problem"]))


if __name__ == "__main__":
    sys.exit(main())
