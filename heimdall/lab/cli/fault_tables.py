"""What became of faults, as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from heimdall.cli.cells import NONE
from heimdall.cli.cells import number as _number
from heimdall.cli.cells import table as _table

_COLUMNS = (
    "fault",
    ">fps",
    ">lowest",
    ">p99 ms",
    ">worst 1/3 s",
    ">back after s",
    ">lost",
    ">ended in s",
    "borne",
    "told",
)


def fault_report(result: Mapping[str, Any]) -> list[Table | str]:
    """What ``heimdall faults`` found: a row for each fault, then why some were not borne."""
    faults = result["faults"]
    parts: list[Table | str] = [_table(None, list(_COLUMNS), [_row(each) for each in faults])]
    for each in faults:
        parts += [f"{each['fault']}: {why}" for why in each["why"]]
    parts += [f"left out: {name}: {why}" for name, why in result["left_out"].items()]
    borne = sum(each["passed"] for each in faults)
    return [*parts, f"{borne} of {len(faults)} faults were borne"]


def listed_faults(result: Mapping[str, Any]) -> list[Table | str]:
    """The faults there are."""
    rows = [[each["fault"], each["what"]] for each in result["faults"]]
    return [_table(None, ["fault", "what happens"], rows)]


def soak_report(result: Mapping[str, Any]) -> list[Table | str]:
    """What ``heimdall soak`` found: a row for each app, then what was out of bounds."""
    apps = result["apps"]
    columns = ["app", ">fps", ">p99 ms", ">late frames", ">failures", ">MB a minute"]
    columns += [">threads gained", ">handles gained"]
    rows = [
        [
            each["app"],
            _number(each["fps"]["mean"], 1),
            _number(each["p99_ms"], 1),
            NONE if each["late_frames"] is None else each["late_frames"],
            each["injected"],
            _number(each["memory_mb_per_min"], 2),
            each["threads_gained"],
            each["handles_gained"],
        ]
        for each in apps
    ]
    return [
        _table(None, columns, rows),
        *(f"{each['app']}: {why}" for each in apps for why in each["why"]),
    ]


def _row(each: Mapping[str, Any]) -> list[object]:
    return [
        each["fault"],
        _number(each["fps"]["mean"], 1),
        _number(each["fps"]["min"], 1),
        _number(each["p99_ms"], 1),
        _number(each["worst_window_fps"], 1),
        _number(each["recovery_s"], 1),
        NONE if each["lost"] is None else each["lost"],
        _number(each["ended_in_s"], 1),
        "yes" if each["passed"] else "no",
        each["told"],
    ]
