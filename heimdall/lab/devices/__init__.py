"""The phones and boards of the papers, a file each, for the simulator."""

from pathlib import Path

FOLDER = Path(__file__).parent
