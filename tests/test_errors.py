"""Errors made on purpose: one base, four kinds, and the sentence for an unknown name."""

import pytest

from heimdall import errors
from heimdall.errors import AppError, ConfigError, DeviceError, HeimdallError, ModelError, unknown


@pytest.mark.parametrize("kind", [AppError, ConfigError, DeviceError, ModelError])
def test_whoever_catches_the_base_catches_every_kind(kind):
    with pytest.raises(HeimdallError, match="no couch"):
        raise kind("no couch")


def test_whatever_else_there_is_belongs_to_a_kind():
    kinds = [each for each in vars(errors).values() if isinstance(each, type)]
    for kind in kinds:
        assert kind.__doc__
        assert kind is HeimdallError or issubclass(
            kind, (AppError, ConfigError, DeviceError, ModelError)
        )


@pytest.mark.parametrize("valid", [["b", "a"], {"b": 1, "a": 2}, (name for name in "ba")])
def test_an_unknown_name_is_told_with_the_valid_ones_in_order(valid):
    assert unknown("policy", "best", valid) == "unknown policy 'best'; choose one of: a, b"


def test_the_nearest_name_is_suggested():
    said = unknown("app", "shoping", ["emoji", "shopping"])
    assert said.startswith("unknown app 'shoping' (did you mean 'shopping'?); choose")
