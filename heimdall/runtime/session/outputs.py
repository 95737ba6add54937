"""What a run gives and leaves behind: a virtual camera, its recording, its last picture, its trace.

Each is on its own: one that cannot be written is named at once, and costs neither the others nor
the run's figures.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heimdall.errors import HeimdallError
from heimdall.render import Recorder, Surface
from heimdall.render.virtual_camera import VirtualCamera
from heimdall.system.faults import Fallible, Faults, say

log = logging.getLogger(__name__)


class Outputs(Fallible):
    """Records what ``surface`` shows, if ``record`` is a path, shows it as a ``virtual_camera``, if
    that names one, and saves the rest at the end. Main thread only.

    ``summary``: the file of each output by name, and ``error``: None, or why it is not what was
    asked for. Raises HeimdallError where a recording or camera cannot even begin.
    """

    def __init__(
        self,
        surface: Surface,
        fps: float,
        record: Path | None,
        virtual_camera: str | None = None,
    ) -> None:
        self._surface = surface
        self._faults = Faults()
        self.summary: dict[str, dict[str, Any]] = {}
        self._recorder: Recorder | None = None
        self._recording = False
        self._dropped = 0
        self._camera: VirtualCamera | None = None
        if virtual_camera is not None:
            self._camera = VirtualCamera(virtual_camera, surface.size, fps)
            log.info("the picture is the camera %s", self._camera.device)
            self.summary["virtual_camera"] = {"path": self._camera.device, "error": None}
        if record is not None:
            self._recorder = Recorder(record, surface.size, fps)
            try:
                self._recorder.ready()
            except BaseException:  # the user may end the start
                self._end_camera()
                with contextlib.suppress(HeimdallError):  # it has been told
                    self._recorder.close()
                self._recorder.remove_empty()
                raise
            self._recording = True
            self.summary["record"] = {"path": str(record), "error": None, "frames": 0, "dropped": 0}

    def frame(self, at_ns: int) -> None:
        """The frame of ``at_ns`` has been drawn."""
        if self._camera is not None:
            self._camera.frame(self._surface)
        recorder = self._recorder
        if recorder is None or not self._recording:
            return
        try:
            recorder.add(self._surface, at_ns)
        except HeimdallError as error:
            self._failed("record", error)
            self._recording = False
            recorder.end()
            return
        if recorder.dropped and not self._dropped:
            log.warning(
                "recording %s: the encoder cannot keep up, so frames are left out of it",
                recorder.path,
            )
        self._dropped = recorder.dropped

    def give_up(self, error: HeimdallError) -> None:
        """Nothing can be drawn any more: say why."""
        self._faults.report(str(error), error)

    def end(self) -> None:
        """Record nothing more: what there is is written in the background. Call it while the
        surface is open."""
        self._end_camera()
        if self._recorder is not None:
            self._recording = False
            self._recorder.end()

    def end_recording(self) -> None:
        """``end``, and wait for that."""
        self._end_camera()
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        entry = self.summary["record"]
        try:
            recorder.close()
        except HeimdallError as error:
            if entry["error"] is None:
                self._failed("record", error)
        entry["frames"], entry["dropped"] = recorder.written, recorder.dropped
        if recorder.remove_empty():
            entry["error"] = entry["error"] or "no frame was recorded: there is no file"
        if recorder.dropped:
            log.warning(
                "recording %s has %d frames; %d were left out, the others keep their time",
                recorder.path,
                recorder.written,
                recorder.dropped,
            )

    def _end_camera(self) -> None:
        camera, self._camera = self._camera, None
        if camera is None:
            return
        camera.close()
        entry = self.summary["virtual_camera"]
        entry["frames"], entry["dropped"] = camera.sent, camera.overtaken
        for error in camera.errors:
            self._faults.report(error)
            entry["error"] = error

    def save(self, name: str, path: Path | None, write: Callable[[Path], object]) -> None:
        """``write(path)``, if there is a path; a failure is noted."""
        if path is None:
            return
        self.summary[name] = {"path": str(path), "error": None}
        try:
            write(path)
        except Exception as error:  # whatever it is, the figures and the other outputs come first
            self._failed(name, error)

    def _failed(self, name: str, error: Exception) -> None:
        expected = isinstance(error, HeimdallError)
        message = str(error) if expected else f"--{name} failed: {say(error)}"
        self._faults.report(message, error)
        self.summary[name]["error"] = message
