"""What is drawn as a camera of this machine, for video calls: by pyvirtualcam."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import cv2
import numpy as np

from heimdall.errors import DeviceError
from heimdall.render.encoder import Drawn, Encoder
from heimdall.render.layout import Letterbox
from heimdall.render.recorder import Copies
from heimdall.system.extras import need

if TYPE_CHECKING:
    from heimdall.render.surface import Surface

ANY = "any"
_WHAT_TO_DO = {
    "linux": "load its driver: sudo modprobe v4l2loopback exclusive_caps=1 (v4l2loopback-dkms)",
    "darwin": "install OBS and start its virtual camera once",
    "win32": "install OBS, whose virtual camera is used",
}


class VirtualCamera:
    """Gives frames to ``device``, ANY free one or one by its name, such as ``/dev/video9``; all
    have the ``size`` (width, height) that it began with. Frames never wait: the newest is given.
    ``sent``: frames given. Main thread.

    Raises ConfigError without pyvirtualcam, DeviceError where there is no such device.
    """

    def __init__(self, device: str, size: tuple[int, int], fps: float) -> None:
        need("pyvirtualcam", "virtual-camera", "--virtual-camera")
        import pyvirtualcam

        width, height = size
        wanted = None if device == ANY else device
        try:
            self._camera = pyvirtualcam.Camera(width, height, fps, device=wanted)
        except Exception as error:  # each kind of driver raises its own
            hint = _WHAT_TO_DO.get(sys.platform, "see pyvirtualcam's documentation")
            raise DeviceError(f"--virtual-camera {device}: {error}; {hint}") from error
        self.size, self.sent = size, 0
        self._copies = Copies()
        self._encoder = Encoder("virtual camera", self._fit, self._send)

    @property
    def device(self) -> str:
        """Its name."""
        return str(self._camera.device)

    @property
    def errors(self) -> list[str]:
        """What has failed, each message once."""
        return self._encoder.errors

    @property
    def overtaken(self) -> int:
        """Frames that a newer one came before."""
        return self._encoder.overtaken

    def frame(self, surface: Surface) -> None:
        """A frame has been drawn. Best called after ``finish``."""
        self._copies.ask(surface, Drawn(time.perf_counter_ns()))
        under_way = 0 if surface.software else 1
        while (taken := self._copies.take(leave=under_way)) is not None:
            self._encoder.put(*taken)

    def close(self) -> None:
        """Give no more; call it while the surface is open. Twice is allowed."""
        self._encoder.close()
        self._copies.release()
        self._camera.close()

    # --- its thread ------------------------------------------------------------------------------

    def _fit(self, pixels: np.ndarray, drawn: Drawn) -> np.ndarray:
        """RGB uint8 of its size, top row first; a frame of another shape gets black bars."""
        rgb = cv2.flip(cv2.cvtColor(pixels, cv2.COLOR_RGBA2RGB), 0)  # GL counts rows upwards
        if rgb.shape[1::-1] == self.size:
            return rgb
        box = Letterbox.fit(rgb.shape[1::-1], self.size)
        x, y, width, height = box.gl_box()
        whole = np.zeros((self.size[1], self.size[0], 3), np.uint8)
        cv2.resize(rgb, (width, height), dst=whole[y : y + height, x : x + width])
        return whole

    def _send(self, rgb: np.ndarray) -> None:
        self._camera.send(rgb)
        self.sent += 1
