"""Draws models out of sight; run as a program of its own (see `content.shaders_kept`).

python -m heimdall.render.rehearsing FILE...
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import numpy as np

from heimdall.errors import HeimdallError
from heimdall.render.opening import open_surface
from heimdall.render.scene import Scene
from heimdall.system.child import report

_SIDE = 64  # pixels


def rehearse(files: list[str]) -> int:
    """Have the driver compile what it draws of each file. The status is 0 unless that could not be
    done; standard error says why."""
    try:
        with open_surface((_SIDE, _SIDE), headless=True) as surface:
            scene = Scene(surface)
            scene.begin(np.zeros((_SIDE, _SIDE, 3), np.uint8), 0)
            for file in files:
                report({"step": file})
                for _ in range(2):  # the second raises what reading it raised
                    scene.model(file, at=(_SIDE / 2, _SIDE / 2), width=_SIDE / 2)
                    scene.settle()
    except HeimdallError as error:
        print(error, file=sys.stderr)
        return 1
    report({"done": True})
    return 0


def main() -> NoReturn:
    """Rehearse the files that are named, and end the process."""
    status = rehearse(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # skips the driver's exit handlers: some crash


if __name__ == "__main__":
    main()
