"""``heimdall run`` in a process of its own that shows itself at an address."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from heimdall.system.certificate import CONFIG


class Served:
    """From its making until the run ends: ``process``; ``url``, the first word on standard error
    that is an address."""

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "heimdall", "run", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stderr is not None
        self.said = ""  # on standard error
        self.url = ""
        for line in self.process.stderr:
            self.said += line
            if found := re.search(r"https?://\S+", line):
                self.url = found[0]
                break
        assert self.url, self.said
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line


class ServedApp(Served):
    """A run of the app that is this ``source``, which may write to LOG: ``log``."""

    def __init__(
        self, folder: Path, source: str, *arguments: str, env: Mapping[str, str] | None = None
    ) -> None:
        self.log = folder / "log"
        self.log.touch()
        (folder / "mine.py").write_text(source.replace("LOG", repr(str(self.log))))
        super().__init__(str(folder / "mine.py"), *arguments, env=env)


def on_a_phone(folder: Path, source: str, view: str) -> ServedApp:
    """``heimdall run --phone`` of an app, without a panel."""
    shown = ("--phone", view, "--serve", "0.0.0.0:0", "--overlay", "off", "--json")
    own = {CONFIG: str(folder / "config")}
    return ServedApp(folder, source, *shown, "--device", "onnxruntime", env=own)
