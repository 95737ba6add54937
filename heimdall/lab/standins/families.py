"""Every network that is built here, by its family: ``xrbench:ritnet``.

Their files are in the user's cache from when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from heimdall.errors import ConfigError, unknown
from heimdall.lab.standins import disb, xrbench, xsched
from heimdall.lab.standins.networks import Network
from heimdall.system import paths

FAMILIES: Mapping[str, Mapping[str, Network]] = {
    "disb": disb.NETWORKS,
    "xrbench": xrbench.NETWORKS,
    "xsched": xsched.NETWORKS,
}
VERSION = 1  # of what is built


def names() -> list[str]:
    """All of them."""
    return [f"{family}:{name}" for family, rows in FAMILIES.items() for name in rows]


def is_built(name: str) -> bool:
    """Whether it is called as these networks are."""
    family, colon, _ = name.partition(":")
    return bool(colon) and family in FAMILIES


def network(name: str) -> Network:
    """The row of ``FAMILY:NAME``. Raises ConfigError for one that there is not."""
    family, _, own = name.partition(":")
    rows = FAMILIES.get(family, {})
    if own not in rows:
        raise ConfigError(unknown(f"network of family {family!r}", own, rows or FAMILIES))
    return rows[own]


def built(name: str) -> Path:
    """The file of ``FAMILY:NAME``, which takes seconds the first time. Raises ConfigError for one
    that there is not, or that cannot be written."""
    row = network(name)
    path = paths.cache_dir() / "standins" / f"{name.replace(':', '-')}-{VERSION}.onnx"
    if not path.is_file():
        try:
            paths.replace_file(path, row.build().model().SerializeToString())
        except OSError as error:
            raise ConfigError(f"{name} cannot be written: {error}") from error
    return path
