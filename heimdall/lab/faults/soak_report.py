"""A page about a soak: what grew, what was late, and when."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from heimdall.errors import ConfigError
from heimdall.lab.bench.charts import over_time_chart
from heimdall.system.paths import replace_file

_TEMPLATE = Path(__file__).with_name("soak.html")
_CHARTS = {
    "memory": ("samples", "memory_mb", "resident memory, MB"),
    "threads": ("samples", "threads", "threads"),
    "handles": ("samples", "handles", "open handles"),
    "frames": ("frames", "longest_ms", "longest interval in a second, ms"),
}


def write_report(path: Path, result: Mapping[str, Any], command: str) -> None:
    """Write the page of what ``soak`` returned. Raises ConfigError when it cannot be written."""
    charts = {
        name: over_time_chart(
            {each["app"]: (each[of]["s"], each[of][figure]) for each in result["apps"]}, label
        )
        for name, (of, figure, label) in _CHARTS.items()
    }
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = page.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        result=result, charts=charts, command=command
    )
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise ConfigError(f"cannot write report {path}: {error.strerror or error}") from error
