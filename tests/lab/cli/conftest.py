"""What commands of the laboratory print is looked at as that of all commands."""

from tests.cli.conftest import shown

__all__ = ["shown"]
