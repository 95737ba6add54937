"""Meshes compressed with Google's Draco, by the package DracoPy (the extra `content`)."""

from __future__ import annotations

import numpy as np

from heimdall.errors import ModelError


def decode(content: bytes, what: str) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """A mesh: indices (m,) uint32, and attributes by Draco's own numbers, (n, width). Raises
    ModelError for what is no Draco mesh, and where DracoPy is not installed."""
    try:
        import DracoPy
    except ImportError as error:
        raise ModelError(
            f"{what} is compressed (KHR_draco_mesh_compression): "
            "install DracoPy with `pip install heimdall-ar[content]`"
        ) from error
    try:
        mesh = DracoPy.decode(content)
        faces = np.asarray(mesh.faces, np.uint32).reshape(-1)
        found = {each["unique_id"]: np.asarray(each["data"]) for each in mesh.attributes}
    except Exception as error:  # it raises its own kinds, and bare ones
        raise ModelError(f"{what}: its Draco data cannot be read ({error})") from error
    return faces, {at: each.reshape(len(each), -1) for at, each in found.items()}
