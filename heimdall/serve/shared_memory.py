"""Tensors in the system's shared memory, as Triton's extension has it (Linux).

A client makes a region and registers it under a name; its requests then say where in the region a
tensor lies. The region stays the client's: it is opened by the name it has in the system, never by
a path, and read and written rather than mapped. Mapped memory that its owner cuts short kills
the process that touches it; a read that comes back short is an error like any other.

Memory is its user's: a server that may open every file must not do for a client what the system
would not let it do by itself. So a client's regions are those that programs of the same user have
registered, and lie in memory of that user's.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass

from heimdall.serve.asked import MemoryRange
from heimdall.serve.limits import Limits
from heimdall.serve.peers import Peer
from heimdall.serve.refusals import Reason, RefusedError, wrong
from heimdall.system.handles import affordable

_FOLDER = "/dev/shm"
_KEY = re.compile(r"/?[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")


@dataclass(frozen=True)
class Region:
    """Bytes ``offset`` to ``offset + size`` of what the system calls ``key``."""

    name: str
    key: str
    offset: int
    size: int
    descriptor: int


class Regions:
    """Regions that clients have registered, by their users. ``local``: false where clients may be
    on other machines, for they have no memory here to share."""

    def __init__(self, limits: Limits, *, local: bool = True) -> None:
        self._limits, self._local = limits, local and sys.platform == "linux"
        self._of: dict[int, UserRegions] = {}

    def of(self, peer: Peer | None) -> UserRegions:
        """Those of the client's user; none, and no more to come, where the user is not known."""
        uid = peer.uid if self._local and peer is not None else None
        if uid is None:
            return UserRegions(self._limits, None, self._room)
        return self._of.setdefault(uid, UserRegions(self._limits, uid, self._room))

    def close(self) -> None:
        """Forget them all."""
        for each in self._of.values():
            each.unregister()

    def _room(self) -> bool:
        """Whether one more may be opened: each takes a handle, whoever's it is."""
        count = sum(len(each.registered()) for each in self._of.values())
        return count < affordable(self._limits.regions * max(1, len(self._of)))


class UserRegions:
    """Regions of one user's programs. ``room``: whether there may be one more of anybody's."""

    def __init__(self, limits: Limits, uid: int | None, room: Callable[[], bool]) -> None:
        self._limits, self._uid, self._room = limits, uid, room
        self._regions: dict[str, Region] = {}

    def register(self, name: str, key: str, offset: int, size: int) -> None:
        """Let requests use it. Refused: a name that is taken, what is no shared memory of this
        user's, a part that lies outside it, and too much of it."""
        if self._uid is None:
            raise RefusedError(
                Reason.UNSUPPORTED,
                "shared memory needs Linux, a server that listens on the loopback address, and a "
                "client whose user the system knows: send the tensors in the request",
            )
        if name in self._regions:
            raise RefusedError(Reason.EXISTS, f"region {name!r} is registered already")
        if len(self._regions) >= self._limits.regions:
            self._forget_abandoned()
        if len(self._regions) >= self._limits.regions or not self._room():
            raise RefusedError(
                Reason.BUSY, f"{len(self._regions)} regions are registered: unregister one"
            )
        if not 0 < len(name) <= 200 or not _KEY.fullmatch(key):
            raise wrong(f"key {key[:80]!r}: must be the name of shared memory, not a path")
        if offset < 0 or not 0 < size <= self._limits.region_bytes:
            raise wrong(f"region {name!r}: a size up to {self._limits.region_bytes} bytes is taken")
        descriptor = _opened(key)
        there = os.fstat(descriptor)
        if there.st_uid != self._uid:
            os.close(descriptor)
            raise RefusedError(
                Reason.FORBIDDEN, f"shared memory {key!r} belongs to another user than the client"
            )
        if not stat.S_ISREG(there.st_mode) or offset + size > there.st_size:
            os.close(descriptor)
            raise wrong(f"region {name!r}: {key} has {there.st_size} bytes, not {offset + size}")
        self._regions[name] = Region(name, key, offset, size, descriptor)

    def unregister(self, name: str = "") -> None:
        """Forget a region, or all; one that is not there is no mistake, as it is none in Triton."""
        for each in [name] if name else list(self._regions):
            if (region := self._regions.pop(each, None)) is not None:
                os.close(region.descriptor)

    def registered(self, name: str = "") -> list[Region]:
        """One region, or all."""
        if not name:
            return list(self._regions.values())
        return [self._region(name)]

    def read(self, place: MemoryRange) -> bytes:
        """The bytes at ``place``."""
        region, start = self._part(place)
        found = os.pread(region.descriptor, place.size, start)
        if len(found) != place.size:
            raise wrong(f"region {region.name!r} has become shorter than it was registered")
        return found

    def check(self, place: MemoryRange, size: int) -> None:
        """Refuse a place that an output of ``size`` bytes does not fit into."""
        region, _ = self._part(place)
        if place.size < size:
            raise wrong(f"region {region.name!r}: the output takes {size} bytes, not {place.size}")

    def write(self, place: MemoryRange, raw: bytes) -> None:
        """Put an output there."""
        self.check(place, len(raw))
        region, start = self._part(place)
        if os.fstat(region.descriptor).st_size < start + len(raw):
            raise wrong(f"region {region.name!r} has become shorter than it was registered")
        os.pwrite(region.descriptor, raw, start)

    def _forget_abandoned(self) -> None:
        """Whose owner has removed them from the system, and has died before it could say so."""
        for region in list(self._regions.values()):
            if os.fstat(region.descriptor).st_nlink == 0:
                self.unregister(region.name)

    def _region(self, name: str) -> Region:
        if name not in self._regions:
            raise wrong(f"no region {name[:80]!r} is registered")
        return self._regions[name]

    def _part(self, place: MemoryRange) -> tuple[Region, int]:
        region = self._region(place.region)
        if place.offset + place.size > region.size:
            raise wrong(
                f"region {region.name!r} has {region.size} bytes: {place.size} from "
                f"{place.offset} on lie outside"
            )
        return region, region.offset + place.offset


def shown(region: Region) -> dict[str, str | int]:
    """A region as clients see it."""
    return {
        "name": region.name,
        "key": region.key,
        "offset": region.offset,
        "byte_size": region.size,
    }


def _opened(key: str) -> int:
    path = f"{_FOLDER}/{key.removeprefix('/')}"
    try:
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise wrong(f"shared memory {key!r} cannot be opened: {error.strerror}") from error
