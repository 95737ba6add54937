"""The networks of a video call, XSched's second case (Shen et al., OSDI '25): a table.

It does not say which network finds the person; this has the one that comes with Heimdall. Of speech
the encoder of Whisper tiny, without the decoder, whose length depends on what is said.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from heimdall.lab.standins import sequences
from heimdall.lab.standins.networks import Network
from heimdall.system import paths


class Bundled:
    """A network that need not be built."""

    def __init__(self, file: str) -> None:
        self._file = file

    def model(self) -> onnx.ModelProto:
        return onnx.load(paths.bundled(self._file, "models"))


def _selfie() -> Bundled:
    return Bundled("seg_selfie_256.onnx")


NETWORKS: Mapping[str, Network] = {
    "selfie": Network(_selfie, (256, 256), 172, 0.060),
    "whisper-tiny": Network(sequences.whisper_tiny, (3000, 80), 156, 18.480),
}
