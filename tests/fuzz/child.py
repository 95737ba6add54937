"""Tries damaged inputs, one a line of its input, and says what became of each.

A process of its own: whatever an input does to it, the watcher (``watch``) lives on.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from heimdall.errors import HeimdallError
from tests.fuzz.target import FindingError, Target, damaged, find

_ADDRESSES = 12 << 30


def attempt(target: Target, kind: str, case: int | str) -> dict[str, Any]:
    """What became of a case, a seed or a file: ``outcome``, and ``problem`` where it is none of
    those that may be."""
    if isinstance(case, int):
        name, raw = damaged(kind, case)
    else:
        name, raw = Path(case).stem.partition("--")[0], Path(case).read_bytes()
    result: dict[str, Any] = {"target": kind, "case": case, "was": name, "problem": ""}
    try:
        result["outcome"] = target.run(name, raw)
    except HeimdallError as error:
        result |= {"outcome": f"refused at {target.stage}", "said": str(error)[:500]}
    except FindingError as error:
        result |= {"outcome": "wrong", "problem": f"{target.stage}: {error}"}
    except Exception as error:
        said = f"{target.stage}: {type(error).__name__}: {str(error)[:500]}"
        result |= {"outcome": "raised", "problem": said}
    return result


def _peak_bytes() -> int:
    """The most memory that this process had. Linux' ``ru_maxrss`` counts what its parent had when
    it was started."""
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (each for each in status.read_text().splitlines() if each.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def _bound_memory() -> None:
    """Of addresses, so that an input that asks for too much fails here, and not the machine."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Cases in, a line a case out; ends with its input, or when it has taken too much memory."""
    _bound_memory()
    answers = sys.stdout
    sys.stdout = sys.stderr  # of what is tried
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        os.environ["HEIMDALL_CACHE"] = str(Path(folder) / "cache")
        targets: dict[str, Target] = {}
        for line in sys.stdin:
            kind, case = json.loads(line)
            if kind not in targets:
                targets[kind] = find(kind)(Path(folder))
                opened.callback(targets[kind].close)
            result = attempt(targets[kind], kind, case)
            bound_bytes = max(each.bound_bytes for each in targets.values())
            too_large = _peak_bytes() > bound_bytes
            if too_large and not result["problem"]:
                result["problem"] = f"took {_peak_bytes() >> 20} MB"
            print(json.dumps(result), file=answers, flush=True)
            if too_large:
                break


if __name__ == "__main__":
    main()
