"""What 3-D models cost a frame: ``python benchmarks/models3d.py [FILE]... [--write]``.

The bundled models, and the files given, are drawn at 1280 x 720, turning, by `heimdall content`'s
own measure, in several rounds; on software GL it is one core that draws. ``--write`` renews the
table in docs/models3d.md.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heimdall.render.content.look import look
from heimdall.system import paths
from heimdall.system.cpu import cpu_name

PAGE = paths.ROOT / "docs" / "models3d.md"
ROUNDS = 5
_TABLE = re.compile(r"(?<=<!-- costs -->\n).*?(?=<!-- /costs -->)", re.DOTALL)
TEXT = """On {machine}, by `python benchmarks/models3d.py --write`: medians of {rounds} rounds
(least to most), the model as large as a 720p picture lets it be. Drawing: what it adds to a frame,
turning. Work: the same in time of all cores, which what else runs on the machine disturbs less.
First: the first frame that shows it, once it is loaded.

| model | triangles | drawing, ms | work, ms | first frame, ms | loading, ms |
|---|---|---|---|---|---|
{rows}
"""


def rows(files: list[Path], rounds: int) -> Iterator[str]:
    """Lines of the table."""
    for file in files:
        found = [look(file) for _ in range(rounds)]
        if found[0]["error"] is not None:
            yield f"| {file.name} | {found[0]['error']} | | | | |"
            continue
        figures = [_cell(found, key) for key in ("gpu_ms", "cpu_ms", "first_ms", "load_ms")]
        yield " | ".join([f"| {file.name}", f"{found[0]['triangles']:,}", *figures]) + " |"


def _cell(found: list[dict[str, Any]], key: str) -> str:
    values = [each[key] for each in found]
    digits = 1 if max(values) < 100 else 0
    middle, *ends = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({ends[0]:.{digits}f}-{ends[1]:.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="models besides")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write", action="store_true", help=f"renew the table in {PAGE.name}")
    arguments = parser.parse_args()
    bundled = sorted((paths.ASSETS / "content").glob("*.glb"))
    text = TEXT.format(
        machine=cpu_name(),
        rounds=arguments.rounds,
        rows="\n".join(rows([*bundled, *arguments.files], arguments.rounds)),
    )
    if arguments.write:
        page = _TABLE.sub(lambda _: text, PAGE.read_text(encoding="utf-8"))
        paths.replace_file(PAGE, page.encode())
    print(text)


if __name__ == "__main__":
    main()
