"""Names and what they stand for: Heimdall's own, and those of packages that are installed beside.

A package offers its own by an entry point (``[project.entry-points."heimdall.schedulers"]``), a
program by ``register``. Nothing of a package is imported before its name is asked for, and entry
points are not even looked for while names of Heimdall's own suffice: that takes 10 ms and more.
"""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from heimdall.errors import ConfigError, HeimdallError, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
V = TypeVar("V")
OWN = "Heimdall"  # its names come first

log = logging.getLogger(__name__)


class Registry(Mapping[str, T], Generic[T]):
    """The values of one kind ("scheduler"), by name, in the order of being declared.

    As a mapping it holds every name that works: one that fails to load is left out, with one
    warning. ``find`` is for names that a user has typed. ``own`` values may be the place of the
    value, ``"package.module:Class"``, imported when it is needed. ``accept(name, value)`` says why
    a value is none of this kind, or None; ``group`` is that of the entry points.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        own: Mapping[str, T | str],
        accept: Callable[[str, object], str | None],
    ) -> None:
        self.kind, self.group = kind, group
        self._own, self._accept = dict(own), accept
        self._registered: dict[str, T] = {}
        self._warned: set[str] = set()

    def register(self, name: str, value: V) -> V:
        """Add a value for this process; returns it. Registering a name again replaces it.

        Raises ConfigError for a name that Heimdall or an installed package has, and for a value
        that is none of this kind.
        """
        if name in self._own or name in self._packages():
            raise ConfigError(
                f"{self.kind} {name!r} is a name of {self._owner(name)}; choose another"
            )
        self._registered[name] = self._checked(name, value, f"{self.kind} {name!r}")
        return value

    def find(self, name: str) -> T:
        """What ``name`` stands for. Raises ConfigError, listing the names, for one that is not
        known, and naming the package of one that cannot be loaded."""
        offers = self._packages().get(name, ())
        if name in self._own or name in self._registered:
            for each in offers:
                self._warn(self._refusal(each))
            return self._load_own(name)
        if not offers:
            raise ConfigError(unknown(self.kind, name, self.labels()))
        return self._load(name)

    def labels(self) -> list[str]:
        """All names, for people: those that do not work are marked "(broken)"."""
        working = set(self)
        return [name if name in working else f"{name} (broken)" for name in self._names()]

    def loaded(self) -> dict[str, T]:
        """What is there without an import: Heimdall's own, and what this process registered."""
        values = {**self._own, **self._registered}
        return {name: value for name, value in values.items() if not isinstance(value, str)}

    def others(self) -> list[str]:
        """The names that are not Heimdall's own."""
        return [name for name in self._names() if name not in self._own]

    def __getitem__(self, name: str) -> T:
        if name in self._own or name in self._registered:
            return self._load_own(name)
        if name not in self._packages():
            raise KeyError(name)
        return self._load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._registered or name in self._packages()

    def __iter__(self) -> Iterator[str]:
        for name in self._names():
            try:
                self[name]
            except HeimdallError as error:
                self._warn(str(error))
            else:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _names(self) -> list[str]:
        packages = self._packages()
        for name in packages.keys() & (self._own.keys() | self._registered.keys()):
            for each in packages[name]:
                self._warn(self._refusal(each))
        return list(dict.fromkeys([*self._own, *self._registered, *packages]))

    def _packages(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        return _entry_points(self.group)

    def _load_own(self, name: str) -> T:
        value = self._registered[name] if name in self._registered else self._own[name]
        if not isinstance(value, str):
            return value
        module, _, attribute = value.partition(":")
        found: T = getattr(importlib.import_module(module), attribute)
        return found

    def _load(self, name: str) -> T:
        """What a package offers under that name."""
        entry, *others = self._packages()[name]
        if others:
            owners = " and ".join(_package(each) for each in (entry, *others))
            raise ConfigError(f"{self.kind} {name!r} is offered by {owners}; uninstall one of them")
        where = f"{self.kind} {name!r} of {_package(entry)} ({entry.value})"
        try:
            value = entry.load()
        except (Exception, SystemExit) as error:
            # Another package's module: whatever it raises, name the package.
            raise ConfigError(
                f"{where} cannot be loaded: {type(error).__name__}: {error}; "
                "update or uninstall the package"
            ) from error
        return self._checked(name, value, where)

    def _checked(self, name: str, value: object, where: str) -> T:
        if (problem := self._accept(name, value)) is not None:
            raise ConfigError(f"{where} {problem}")
        accepted: T = value  # type: ignore[assignment]  # _accept has just said so
        return accepted

    def _owner(self, name: str) -> str:
        if name in self._own:
            return OWN
        return " and ".join(_package(each) for each in self._packages()[name])

    def _refusal(self, entry: EntryPoint) -> str:
        owner = OWN if entry.name in self._own else "this program"
        return (
            f"{self.kind} {entry.name!r} of {_package(entry)} is not used: "
            f"the name is taken by {owner}"
        )

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            log.warning("%s", message)


@functools.cache
def _entry_points(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """What the installed packages offer, by name. A package found twice counts once: a folder of
    its own and one that is installed for editing may both be on the path."""
    import importlib.metadata  # here: it takes longer than all of the coordinator

    found: dict[str, dict[str, EntryPoint]] = {}
    for entry in importlib.metadata.entry_points(group=group):
        found.setdefault(entry.name, {}).setdefault(_package(entry), entry)
    return {name: tuple(entries.values()) for name, entries in found.items()}


def _package(entry: EntryPoint) -> str:
    return f"package {entry.dist.name} {entry.dist.version}" if entry.dist else "a package"
