"""The keys of every app, and what they do.

``COMMANDS`` is the whole list, ``GESTURES`` what the pointer does; the help card is made of them. A
key that the app declares in ``App.keys`` is the app's, so every command has a function key as well.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heimdall.app import App

NAMES = {"escape": "esc"}


@dataclass(frozen=True)
class Command:
    """One thing to do: its keys (the last one is never an app's), and what the card says."""

    name: str
    keys: tuple[str, ...]
    says: str


COMMANDS = (
    Command("help", ("h", "f1"), "this card"),
    Command("overlay", ("o", "f2"), "panel, with timeline, with world, small, none"),
    Command("pause", ("space", "f3"), "pause the picture, go on"),
    Command("step", (".", "f4"), "next picture while paused"),
    Command("source", ("tab", "f5"), "next camera or clip"),
    Command("scheduler", ("p", "f6"), "next scheduling policy"),
    Command("mode", ("m", "f7"), "pieces of networks: elastic, static"),
    Command("slower", ("-", "f8"), "fewer frames a second"),
    Command("faster", ("=", "f9"), "more frames a second"),
    Command("video", ("r", "f10"), "record a video, end it"),
    Command("full screen", ("f", "f11"), "full screen, window"),
    Command("picture", ("c", "f12"), "save a picture"),
    Command("end", ("escape",), "end"),
)

GESTURES = {"drop a file": "show that instead"}


def commands_by_key(taken: Collection[str]) -> dict[str, str]:
    """Key to command name, without the keys that the app has taken."""
    return {
        key: command.name
        for command in COMMANDS
        for key in command.keys
        if key not in taken or key == command.keys[-1]
    }


def help_rows(app: App) -> list[tuple[str, str]]:
    """The rows of the help card: keys and gestures, and what they do; the app's own first."""
    mine = commands_by_key(app.keys)
    rows = [(NAMES.get(key, key).upper(), says) for key, says in app.keys.items()]
    rows += app.gestures.items()
    rows += [("", "")] if rows else []
    for command in COMMANDS:
        keys = [key for key in command.keys if mine.get(key) == command.name]
        rows.append((" or ".join(NAMES.get(key, key).upper() for key in keys), command.says))
    return [*rows, *GESTURES.items()]


def key_labels(app: App) -> dict[str, str]:
    """Keys and what they do in a word or two, for buttons: the app's own, then ours."""
    mine = commands_by_key(app.keys)
    labels = dict(app.keys)
    for command in COMMANDS:
        if command.name not in ("full screen", "end"):  # hosts with buttons have those too
            labels[next(key for key in command.keys if mine.get(key) == command.name)] = (
                command.name
            )
    return labels
