"""What `heimdall faults` and `heimdall soak` print."""

from __future__ import annotations

from dataclasses import replace

from heimdall.lab.bench.charts import over_time_chart
from heimdall.lab.cli.fault_tables import fault_report, listed_faults, soak_report
from heimdall.lab.cli.schemas import json_schema
from heimdall.lab.faults.chance import ALL
from heimdall.lab.faults.judge import judge, verdict
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.runner import listed
from heimdall.lab.faults.soak import Samples, soaked
from heimdall.lab.faults.soak_report import write_report
from heimdall.lab.faults.trial import Outcome
from tests.docs.json_schemas import wrong
from tests.lab.faults.series import S, seen

SUMMARY = {
    "longest_interval_ms": 34.0,
    "errors": ["detect: it failed"],
    "outputs": {},
    "late_frames": 2,
}


def outcome():
    return Outcome(seen(), 0, 16 * S, SUMMARY, [], ["thread x"])


def faults():
    return {
        "schema": 1,
        "app": "shopping",
        "seconds": 15.0,
        "faults": [judge(ALL, outcome()), verdict(replace(ALL, name="signals"), [])],
        "left_out": {"viewer-slow": "pip install it"},
        "interrupted": False,
    }


def soak():
    samples = Samples([1.0, 2.0, 3.0, 4.0], [100.0] * 4, [9] * 4, [20] * 4)
    found = soaked(Request("emoji"), ALL, outcome(), samples)
    return {"schema": 1, "minutes": 10.0, "apps": [found], "interrupted": False}


def test_faults_are_as_their_schema_says_and_a_table(shown):
    assert wrong(json_schema("faults"), faults()) == []
    lines = "\n".join(shown(fault_report(faults())))
    assert "chance: left: thread x" in lines
    assert "left out: viewer-slow: pip install it" in lines
    assert "1 of 2 faults were borne" in lines


def test_the_list_of_faults_is_as_its_schema_says(shown):
    assert wrong(json_schema("faults-list"), listed()) == []
    assert any("camera-unplugged" in line for line in shown(listed_faults(listed())))


def test_a_soak_is_as_its_schema_says_a_table_and_a_page(shown, tmp_path):
    assert wrong(json_schema("soak"), soak()) == []
    assert any("emoji" in line for line in shown(soak_report(soak())))
    write_report(tmp_path / "soak.html", soak(), "heimdall soak")
    page = (tmp_path / "soak.html").read_text()
    assert page.count("<svg") == 4
    assert "emoji" in page


def test_a_chart_without_a_line_is_empty():
    assert over_time_chart({}, "MB").startswith("<svg")
