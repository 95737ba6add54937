"""Damage to inputs of any kind: to their bytes, the lines of a text, the tree of a JSON value.

What a mutation gives is the same for the same state of the generator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

Random = np.random.Generator

NUMBERS: tuple[Any, ...] = (0, 1, -1, 2, 3, 7, 16, 255, 65536, 1 << 31, -(1 << 31), 1 << 53)
NUMBERS += (1 << 63, -(1 << 63), 1 << 64, 10**30, 10**400)
FLOATS = (0.0, -0.0, 0.5, -1.5, 1e-300, 1e300, 3.4e38, float("nan"), float("inf"), -float("inf"))
WORDS: tuple[str, ...] = ("", " ", "a", "-", ".", "..", "../..", "/", "/dev/zero", "nan", "1e999")
WORDS += ("\0", "\ud800", "\u202e", "\U0001f600", "é" * 200, "x" * 5000, "%s%n", "${HOME}")
DEEP = 3000  # lists within lists
_VALUE = re.compile(rb"-?\d[\d_.eE+-]*|\"[^\"\n]*\"|true|false")
_ODD: tuple[bytes, ...] = (b"0", b"-1", b"1e400", b"-1e-400", b"nan", b"inf", b"9" * 30, b'""')
_ODD += (b'"\\u0000"', b"[[1]]", b"1979-05-27", b"0x7fffffffffffffff", b'"' + b"x" * 3000 + b'"')
_ODD += (b'["", 1]', b"1", b"2", b"0.5", b"100000", b"[nan, nan]", b'"../../etc/passwd"')
_ODD += (b"true", b"[]", b"{}")


def pick(items: Sequence[Any], random: Random) -> Any:
    """One of several."""
    return items[int(random.integers(len(items)))]


def in_bytes(raw: bytes, random: Random) -> bytes:
    """Some bytes are others, gone, repeated or added; one in twenty is cut off."""
    data = bytearray(raw)
    for _ in range(random.integers(1, 4)):
        if not data:
            break
        # most of a file may be weights: every other place is near the start or the end
        reach = len(data) if random.random() < 0.5 else min(len(data), 4000)
        place = int(random.integers(reach))
        place = place if random.random() < 0.5 else len(data) - 1 - place
        match int(random.choice(5, p=(0.4, 0.4, 0.05, 0.05, 0.1))):
            case 0:
                data[place] = random.integers(256)
            case 1:
                data[place] ^= 1 << random.integers(8)
            case 2:
                del data[place : place + int(random.integers(1, 64))]
            case 3:
                data[place:place] = random.bytes(int(random.integers(1, 16)))
            case 4:
                data[place : place + 8] = data[: int(random.integers(1, 64))]
    if data and random.random() < 0.05:
        del data[int(random.integers(len(data))) :]
    return bytes(data)


def in_lines(raw: bytes, random: Random) -> bytes:
    """Values of a text are odd ones, or each other; lines are gone, repeated, or elsewhere."""
    if random.random() < 0.1:
        return in_bytes(raw, random)
    for _ in range(random.choice(3, p=(0.7, 0.2, 0.1)) + 1):
        lines = raw.split(b"\n")
        place = int(random.integers(len(lines)))
        found = list(_VALUE.finditer(raw))
        match int(random.choice(5, p=(0.5, 0.2, 0.1, 0.1, 0.1))):
            case 0 | 1 if not found:
                continue
            case 0:
                at = pick(found, random)
                raw = raw[: at.start()] + pick(_ODD, random) + raw[at.end() :]
                continue
            case 1:
                at, other = pick(found, random), pick(found, random)
                raw = raw[: at.start()] + other[0] + raw[at.end() :]
                continue
            case 2:
                del lines[place]
            case 3:
                lines.insert(int(random.integers(len(lines))), lines[place])
            case 4:
                lines.insert(int(random.integers(len(lines))), lines.pop(place))
        raw = b"\n".join(lines)
    return raw


def in_json(value: Any, random: Random) -> bytes:
    """A JSON value, one to three of whose parts are others; one in ten by its bytes instead."""
    value = json.loads(json.dumps(value))
    for _ in range(random.choice(3, p=(0.7, 0.2, 0.1)) + 1):  # most changes are told at once
        value = _changed(value, random)
    if random.random() < 0.02:
        text = json.dumps(value)
        place = int(random.integers(len(text)))
        deep = pick(("[" * DEEP, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP), random)
        return (text[:place] + deep + text[place:]).encode()
    raw = json.dumps(value, ensure_ascii=random.random() < 0.9).encode(errors="surrogatepass")
    return in_bytes(raw, random) if random.random() < 0.1 else raw


def _changed(value: Any, random: Random) -> Any:
    """With another part somewhere in it."""
    places = list(_places(value))
    if not places:
        return _odd(value, random)
    holder, key = pick(places, random)
    match int(random.choice(5, p=(0.55, 0.15, 0.1, 0.1, 0.1))):
        case 0:
            holder[key] = _odd(holder[key], random)
        case 1:
            other, at = pick(places, random)
            holder[key] = json.loads(json.dumps(other[at]))
        case 2:
            del holder[key]
        case 3 if isinstance(holder, list):
            holder.insert(int(key), holder[key])
        case 3 | 4 if isinstance(holder, dict):
            holder[pick(WORDS[:-1], random) or key] = holder.pop(key)
        case _:
            holder[key] = [holder[key]] * int(pick((0, 1, 2, 300), random))
    return value


def _places(value: Any, most: int = 5000) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value] if isinstance(value, dict | list) else []
    while waiting and len(found) < most:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        found += [(each, key) for key in keys]
        waiting += [each[key] for key in keys if isinstance(each[key], dict | list)]
    return found


def _odd(value: Any, random: Random) -> Any:
    """Mostly of the same kind: what is of another one is told at once."""
    if random.random() < 0.2:
        odd: Any = (None, True, False, [], {}, "", 0, 1.5, "text", [[]], {"a": None})
        return pick(odd, random)
    match value:
        case bool():
            return not value
        case int() if random.random() < 0.5:
            return value + int(random.integers(-3, 4))
        case int():
            return pick(NUMBERS, random)
        case float():
            return pick((*FLOATS, *NUMBERS), random)
        case str():
            return pick(WORDS, random)
        case list():
            return [*value, *value] if random.random() < 0.5 else value[: len(value) // 2]
        case dict():
            return {} if random.random() < 0.5 else [value]
    return pick((*NUMBERS, *FLOATS, *WORDS), random)
