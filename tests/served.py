"""``heimdall run`` in a process of its own that shows itself at an address."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping


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

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line
