"""``heimdall``, and ``python -m heimdall``."""

from heimdall.cli import main
from heimdall.cli.console import run_as_program


def program() -> None:
    """The command line as a program of its own."""
    run_as_program(main)


if __name__ == "__main__":
    program()
