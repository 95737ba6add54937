"""``python -m heimdall``: the same as ``heimdall``."""

from heimdall.cli import main

main()
