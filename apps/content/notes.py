"""Notes: what was pointed at, as a picture and a JSON file of the same name."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from heimdall.system import paths


def keep(folder: Path, picture: np.ndarray, about: Mapping[str, Any]) -> Path:
    """Save ``picture``, BGR uint8 (h, w, 3), and beside it what is said ``about`` it, with the
    time; returns where the latter is."""
    name = time.strftime("note-%Y%m%d-%H%M%S")
    said = {"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), "picture": f"{name}.png", **about}
    paths.replace_file(folder / f"{name}.png", cv2.imencode(".png", picture)[1].tobytes())
    paths.replace_file(folder / f"{name}.json", json.dumps(said, indent=1).encode())
    return folder / f"{name}.json"
