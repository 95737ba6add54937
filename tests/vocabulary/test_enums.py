from __future__ import annotations

import inspect
import json
import pickle
from dataclasses import fields

import pytest
from click.testing import CliRunner

from heimdall import DNN, App
from heimdall.app.options import RunOptions
from heimdall.cli import main
from heimdall.coordinator import Coordinator
from heimdall.coordinator.chunking import CHUNKINGS, DEFAULT_MARGIN_NS
from heimdall.errors import ConfigError
from heimdall.lab.bench.systems import System
from heimdall.render import Status
from heimdall.schedulers.utility import BETAS
from heimdall.vocabulary import enums
from heimdall.vocabulary.enums import (
    ChunkMode,
    Content,
    Name,
    OverlayView,
    Priority,
    RenderPriority,
)
from heimdall.vocabulary.plans import DnnPlan

NAMES = [
    each
    for each in vars(enums).values()
    if inspect.isclass(each) and issubclass(each, Name) and each is not Name
]
MEMBERS = [member for each in NAMES for member in each]


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: f"{type(member).__name__}.{member}")
def test_a_name_is_its_string_wherever_it_goes(member):
    plain = member.value
    assert type(plain) is str
    assert type(str(member)) is str
    assert str(member) == plain == member
    assert hash(member) == hash(plain)
    assert f"{member}|{member:>12}|{member!r}" == f"{plain}|{plain:>12}|{plain!r}"
    assert "%s %r" % (member, member) == "%s %r" % (plain, plain)  # noqa: UP031
    assert ", ".join([member]) == plain
    assert json.dumps({member: [member]}) == json.dumps({plain: [plain]})
    assert json.dumps({member: [member]}, indent=1) == json.dumps({plain: [plain]}, indent=1)
    assert pickle.loads(pickle.dumps(member)) is member
    assert {plain: 1}[member] == {member: 1}[plain] == 1


@pytest.mark.parametrize("names", NAMES)
def test_values_are_the_plain_strings_in_order(names):
    assert names.values() == tuple(member.value for member in names)
    assert all(type(value) is str for value in names.values())


def test_each_default_is_the_same_wherever_it_stands():
    coordinator = inspect.signature(Coordinator).parameters
    options, dnn, plan, status, system = (
        {field.name: field.default for field in fields(each)}
        for each in (RunOptions, DNN, DnnPlan, Status, System)
    )
    assert coordinator["mode"].default is options["mode"] is system["mode"] is ChunkMode.ELASTIC
    assert coordinator["content"].default is App.content is Content.AGING
    assert coordinator["render_priority"].default is App.render_priority is RenderPriority.TOP
    assert dnn["priority"] is plan["priority"] is Priority.NORMAL
    assert options["overlay"] is status["view"] is OverlayView.PANEL


def test_every_mode_and_priority_is_given_its_meaning():
    assert set(CHUNKINGS) == set(DEFAULT_MARGIN_NS) == set(ChunkMode)
    assert set(BETAS) == set(Priority)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: RunOptions(mode="x"), ChunkMode),
        (lambda: RunOptions(content="x"), Content),
        (lambda: RunOptions(overlay="x"), OverlayView),
        (lambda: DNN("a", model="b", priority="x"), Priority),  # type: ignore[call-overload]
        (lambda: Coordinator([], scheduler="max-min", frame_interval_ns=1, mode="x"), ChunkMode),
        (lambda: Coordinator([], scheduler="max-min", frame_interval_ns=1, content="x"), Content),
        (
            lambda: Coordinator([], scheduler="max-min", frame_interval_ns=1, render_priority="x"),
            RenderPriority,
        ),
    ],
)
def test_an_unknown_name_is_refused_and_the_valid_ones_are_listed(make, names):
    with pytest.raises(ConfigError, match=f"'x'; choose one of: {', '.join(sorted(names))}"):
        make()


@pytest.mark.parametrize(("option", "names"), [("--content", Content), ("--overlay", OverlayView)])
def test_the_command_line_offers_the_plain_strings(option, names):
    said = CliRunner().invoke(main, ["run", "shopping", option, "x"]).output
    assert all(repr(value) in said for value in names.values())
