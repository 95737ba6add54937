"""Try the lowest and the newest versions that pyproject.toml allows: versions.py [PYTHON]

uv makes an environment of each kind for this Python, or the one named, in a temporary folder. In
each a short run shows that things work together: what `heimdall doctor` says, a network on OpenCL
against onnxruntime, an app of some frames whose session is kept and played, and a server that
answers. Says which versions failed, and ends with status 1 then.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KINDS = {"lowest": "lowest-direct", "newest": "highest"}
LIMIT_S = 240


def main(python: str) -> int:
    """Make both environments, and run in each; the status."""
    failed = []
    for kind, resolution in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder)
            began_s = time.monotonic()
            try:
                made = _install(own / "venv", python, resolution)
                _call(made, __file__, "--run", cwd=own, environment=_environment(own))
            except subprocess.CalledProcessError as error:
                failed.append(kind)
                print(f"{kind} versions: {error}", file=sys.stderr)
            else:
                print(f"{kind} versions: all works, after {time.monotonic() - began_s:.0f} s")
    return int(bool(failed))


def _install(folder: Path, python: str, resolution: str) -> str:
    """An environment with the package of this checkout; its Python. Wheels only: what would have
    to be compiled is no version that people get."""
    uv = [sys.executable, "-m", "uv", "--quiet"]
    _call(*uv, "venv", "--python", python, str(folder))
    made = str(folder / "bin" / "python")
    wheels = ["--only-binary", ":all:", "--no-binary", "heimdall-ar"]
    how = ["--python", made, "--resolution", resolution, *wheels]
    _call(*uv, "pip", "install", *how, f"{ROOT}[serve]")
    _call(*uv, "pip", "list", "--python", made, "--format", "freeze")
    return made


def _environment(own: Path) -> dict[str, str]:
    """What is compiled is compiled with these versions, and nothing of the user's is touched."""
    left = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**left, "HEIMDALL_CACHE": str(own / "cache"), "HEIMDALL_TUNE": "off"}


def _call(*command: str, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=cwd, env=environment, check=True, timeout=LIMIT_S)


# --- in an environment --------------------------------------------------------------------------


def run() -> None:
    """The short run, in the current folder. Raises what goes wrong."""
    found = _heimdall("doctor", "--json", statuses=(0, 1))
    missing = [each["what"] for each in found["findings"] if each["level"] == "missing"]
    assert not missing, missing
    found = _heimdall("check", "iris_64.onnx", "--json")
    print("check:", json.dumps(found)[:200])
    options = (
        "--headless",
        "--frames",
        "20",
        "--size",
        "320x240",
        "--device",
        "onnxruntime",
        "--json",
    )
    drawn = _heimdall("run", "marker", *options, "--capture", "kept.mcap")
    again = _heimdall("run", "marker", *options, "--source", "kept.mcap")
    for each in (drawn, again):
        assert each["errors"] == [], each["errors"]
        assert each["frames"] >= 20, each["frames"]
    with _served("iris_64.onnx") as address:
        inputs = json.load(urllib.request.urlopen(f"{address}/v2/models/iris"))["inputs"]
        zeros = [{**each, "data": [0.0] * _count(each["shape"])} for each in inputs]
        asked = json.dumps({"inputs": zeros}).encode()
        answer = json.load(urllib.request.urlopen(f"{address}/v2/models/iris/infer", asked))
        assert answer["outputs"], answer


def _heimdall(*words: str, statuses: tuple[int, ...] = (0,)) -> Any:
    command = [sys.executable, "-m", "heimdall", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    assert done.returncode in statuses, f"{' '.join(words)}: status {done.returncode}"
    return json.loads(done.stdout)


def _count(shape: list[int]) -> int:
    count = 1
    for side in shape:
        count *= max(side, 1)
    return count


@contextlib.contextmanager
def _served(file: str) -> Iterator[str]:
    """The address of a server of that network, once it is ready."""
    words = ("serve", "--model", f"iris={file}", "--http-port", "0", "--grpc-port", "0")
    command = [sys.executable, "-m", "heimdall", *words, "--seconds", str(LIMIT_S)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "http://" in line:
                yield "http://" + line.partition("http://")[2].split()[0].rstrip("/")
                return
        raise AssertionError("the server has ended")
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["--run"]:
        run()
    else:
        sys.exit(main(*(sys.argv[1:2] or [sys.executable])))
