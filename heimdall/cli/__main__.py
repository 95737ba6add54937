"""``python -m heimdall.cli``: the same as ``heimdall``."""

from heimdall.cli import main

main()
