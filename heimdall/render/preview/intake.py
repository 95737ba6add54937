"""What comes from a phone: its camera's pictures, each with what its sensors said then, and the
sound of its microphone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Sequence

import numpy as np
from aiortc import MediaStreamTrack, RTCRtpReceiver
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame, VideoFrame

from heimdall.capture.device_pose import DeviceLight, DevicePlane
from heimdall.capture.lens import Camera
from heimdall.capture.phone import OPUS_RATE, PhonePictures, PhoneSound, Taken
from heimdall.capture.sound import Mono
from heimdall.render.preview import inside
from heimdall.render.preview.device import light_of, planes_of, said
from heimdall.render.preview.journeys import Journeys
from heimdall.render.preview.protocol import Lit, Sensed, Surfaces
from heimdall.render.preview.sender_clock import SenderClock
from heimdall.render.preview.video import H264, TICKS

_NEAR_S = 0.05  # from a picture to what the sensors said then
_OWN_MS = 10.0  # what was said of this very picture, and not of the one before
_SAMPLES = 64
_H264_KEYS = (5, 7)  # of NAL units: a key frame, and what goes before one


class Intake:
    """Puts what a phone's camera takes into ``pictures``, from ``run`` until its track ends."""

    def __init__(
        self, receiver: RTCRtpReceiver, codec: str, pictures: PhonePictures, journeys: Journeys
    ) -> None:
        self._pictures, self._journeys = pictures, journeys
        self._prompt = inside.hurry(receiver, _is_h264_key if codec == H264 else _is_vp8_key)
        self.clock = SenderClock(receiver, TICKS)
        self._samples: deque[Sensed] = deque(maxlen=_SAMPLES)
        self._planes: Sequence[DevicePlane] = ()
        self._light: DeviceLight | None = None

    def sensed(self, message: Sensed) -> None:
        """What sensors said when a picture was taken."""
        self._samples.append(message)

    def surfaces(self, message: Surfaces) -> None:
        """The planes that the phone knows from now on."""
        self._planes = planes_of(message)

    def lit(self, message: Lit) -> None:
        """The light that the phone stands in from now on."""
        self._light = light_of(message)

    @property
    def tracked(self) -> bool:
        """Whether the phone tracks itself, and so can turn what was drawn for an older picture."""
        return bool(self._samples) and self._samples[-1].viewed is not None

    async def run(self, track: MediaStreamTrack) -> None:
        """Take pictures until there are no more."""
        while True:
            try:
                frame = await track.recv()
                self._pictures.undecoded += self._prompt.newly_left_out()
            except (MediaStreamError, asyncio.CancelledError):
                return
            if isinstance(frame, VideoFrame):
                self._take(frame)

    def _take(self, frame: VideoFrame) -> None:
        decoded_ns = time.perf_counter_ns()
        rtp, came_ns = self._prompt.decoded(frame.pts)
        captured_ns = self.clock.captured_ns(rtp, came_ns)
        sample = self._nearest(captured_ns)
        own = sample is not None and abs(sample.at_ms - captured_ns / 1e6) < _OWN_MS
        sent_ns = {"sent": round(sample.sent_ms * 1e6)} if sample is not None and own else {}
        self._journeys.note(captured_ns, received=came_ns, decoded=decoded_ns, **sent_ns)
        planes, light = self._planes, self._light

        def seen_by(camera: Camera) -> Camera:
            return said(camera, sample, planes, light) if sample is not None else camera

        self._pictures.put(Taken(lambda: _bgr(frame), captured_ns, seen_by))

    def _nearest(self, captured_ns: int) -> Sensed | None:
        def apart(sample: Sensed) -> float:
            return abs(sample.at_ms - captured_ns / 1e6)

        best = min(self._samples, key=apart, default=None)
        return best if best is not None and apart(best) < _NEAR_S * 1000 else None


class SoundIntake:
    """Puts what a phone's microphone hears into ``sound``, from ``run`` until its track ends."""

    def __init__(self, receiver: RTCRtpReceiver, sound: PhoneSound) -> None:
        self._sound, self._mono = sound, Mono()
        self._first = inside.remember_first(receiver)
        self.clock = SenderClock(receiver, OPUS_RATE)

    async def run(self, track: MediaStreamTrack) -> None:
        """Take sound until there is no more."""
        with contextlib.suppress(MediaStreamError, asyncio.CancelledError):
            while True:
                frame = await track.recv()
                if isinstance(frame, AudioFrame):
                    self._take(frame)

    def _take(self, frame: AudioFrame) -> None:
        came_ns, rate = time.perf_counter_ns(), frame.sample_rate
        ended = self._first() + (frame.pts or 0) + frame.samples * OPUS_RATE // rate
        self._sound.put(self._mono(frame), rate, self.clock.captured_ns(ended, came_ns))


def _bgr(frame: VideoFrame) -> np.ndarray:
    return frame.to_ndarray(format="bgr24")


def _is_h264_key(data: bytes) -> bool:
    return len(data) > 4 and data[4] & 0x1F in _H264_KEYS  # after a start code of four bytes


def _is_vp8_key(data: bytes) -> bool:
    return bool(data) and not data[0] & 1
