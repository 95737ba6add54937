"""Reads clips, as files or from a URL, by PyAV: as players show them.

What a container says of its pictures is obeyed: when each is shown, how it is turned and mirrored,
how wide its pixels are, which part of it counts, whether it is interlaced, and its colours
(matrix, range, primaries and transfer). What cannot be obeyed is logged once.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import cv2
import numpy as np

from heimdall.capture.aperture import Window, clean_aperture
from heimdall.capture.colours import screen_colours
from heimdall.errors import DeviceError

if TYPE_CHECKING:
    import av
    from av.container import InputContainer
    from av.filter import Graph
    from av.video.stream import VideoStream

log = logging.getLogger(__name__)

AHEAD = 3  # frames decoded early: the next one's time is known, and whether times are in order
FEW_CORES = 4
LONGEST_S = 60.0  # between two pictures: more is taken for damage
SQUARE = 0.01  # pixels so near to square are left as they are
MOST_STRETCH, MOST_SIDE = 8.0, 16384  # of pixels that are not square: more is taken for damage
TIMEOUT_S = 8.0  # of a URL that does not answer

_LIVE = {"rtsp", "sdp", "rtp"}
# What a frame may come with, and a matrix (ITU-T H.273), that is not obeyed.
_NAMED = {
    "SPHERICAL": "shows a part of a sphere (360 degrees); it is drawn flat",
    "STEREO3D": "has pictures for two eyes; they are drawn as one",
}
_MATRICES, _BT709 = {0, 1, 2, 4, 5, 6, 7, 9}, 1


class ClipReader:
    """The frames of a clip, BGR uint8, upright and with square pixels: the shorter way of a pixel
    is stretched, so that nothing is lost. Interlaced frames become whole ones at the same rate.

    ``place``: a path or URL; ``name``: as errors call it; ``of_url``: what has no end there is
    ``live``, and its frames come as they arrive. Raises DeviceError for what holds no frame.
    """

    def __init__(self, place: str, name: str, *, of_url: bool = False) -> None:
        import av  # here: an app with a camera does without

        av.logging.set_libav_level(av.logging.PANIC)  # its complaints about slightly broken clips
        self._place, self._name, self._of_url = place, name, of_url
        self._errors = (av.error.FFmpegError, OSError, ValueError)
        self._said: set[str] = set()
        self._reformatter = av.video.reformatter.VideoReformatter()
        self._waiting: deque[av.VideoFrame] = deque()
        self._at_ns = self._gap_ns = 0
        self._open()
        self.format: str = self._container.format.name
        self._window = None if of_url else _window(place, self.format, self._stream)
        self.tracks = len(self._container.streams.video)
        rate = float(self._stream.average_rate or self._stream.guessed_rate or 0)
        self.fps = 0.0 if self.live else rate if 0.01 <= rate <= 240 else 30.0
        if not self.live:
            self._look_ahead()
            if not self._waiting:
                self.close()
                raise DeviceError(f"cannot decode {name}: it holds no readable frame")
            self._first_pts = self._waiting[0].pts

    @property
    def at_ns(self) -> int:
        """When the last picture is shown, since the first one."""
        return self._at_ns

    @property
    def single(self) -> bool:
        """True before the only frame is read."""
        return not self.live and len(self._waiting) == 1

    def read(self) -> np.ndarray | None:
        """The next frame; None at the end."""
        frame = self._step()
        return None if frame is None else self._picture(frame)

    def skip(self) -> bool:
        """Pass over a frame without converting it."""
        return not self.live and self._step() is not None

    def gap_ns(self) -> int:
        """How long the last frame is shown."""
        return self._gap_ns

    def rewind(self) -> bool:
        """Back to the first frame."""
        self._waiting.clear()
        self._at_ns = self._gap_ns = 0
        try:
            self._container.seek(self._stream.start_time or 0, stream=self._stream)
            self._frames = self._decoded()
            self._look_ahead()
        except self._errors:
            self._waiting.clear()
        if not self._waiting or self._waiting[0].pts != self._first_pts:  # it cannot seek
            self._waiting.clear()
            self.close()
            self._open()
            self._look_ahead()
        return bool(self._waiting)

    def close(self) -> None:
        """Close the file or connection."""
        with contextlib.suppress(*self._errors):
            self._container.close()

    def _open(self) -> None:
        import av

        options = {"rtsp_flags": "prefer_tcp"} if self._of_url else {}
        timeout = (TIMEOUT_S, TIMEOUT_S) if self._of_url else None
        try:
            self._container: InputContainer = av.open(self._place, options=options, timeout=timeout)
        except self._errors as error:
            why = "; is it reachable?" if self._of_url else "; it is damaged, or no video"
            raise DeviceError(f"cannot open {self._name}{why}") from error
        if not self._container.streams.video:
            self.close()
            raise DeviceError(f"cannot open {self._name}; it holds no video")
        endless = self._container.duration is None or self._container.format.name in _LIVE
        self.live = self._of_url and endless
        best = self._container.streams.best("video") or self._container.streams.video[0]
        self._stream = cast("VideoStream", best)
        context = self._stream.codec_context
        if (os.cpu_count() or 1) <= FEW_CORES:
            context.thread_count = 1  # 0.83 instead of 1.10 ms of CPU a 640x480 frame (2 x86 cores)
        elif not self.live:  # threads with a frame each would come late
            context.thread_type = "AUTO"
        self._frames = self._decoded()

    def _decoded(self) -> Iterator[av.VideoFrame]:
        """All frames in the order of their times. Damaged ones are left out."""
        graph: Graph | None = None
        kind = None  # that the graph takes
        for frame in self._coded():
            if graph is not None and kind != _kind(frame):  # broadcasts change within a clip
                yield from self._filtered(graph, None)
                graph = None
            if graph is None and frame.interlaced_frame:
                graph, kind = _deinterlacer(frame), _kind(frame)
            if graph is None:
                yield frame
                continue
            yield from self._filtered(graph, frame)
        if graph is not None:
            yield from self._filtered(graph, None)

    def _coded(self) -> Iterator[av.VideoFrame]:
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets, None)
            except self._errors:  # cut off
                packet = None
            with contextlib.suppress(*self._errors):
                yield from self._stream.decode(packet)
            if packet is None:
                return

    def _filtered(self, graph: Graph, frame: av.VideoFrame | None) -> Iterator[av.VideoFrame]:
        import av

        graph.vpush(frame)
        while True:
            try:
                yield graph.vpull()
            except (BlockingIOError, av.error.EOFError):
                return

    def _look_ahead(self) -> None:
        wanted = 1 if self.live else 1 + AHEAD
        while len(self._waiting) < wanted and (frame := next(self._frames, None)) is not None:
            self._waiting.append(frame)

    def _step(self) -> av.VideoFrame | None:
        self._at_ns += self._gap_ns
        self._look_ahead()
        if not self._waiting:
            self._gap_ns = 0
            return None
        frame = self._waiting.popleft()
        if not self.live:
            self._look_ahead()
            self._gap_ns = self._shown_ns(frame)
        return frame

    def _shown_ns(self, frame: av.VideoFrame) -> int:
        """How long a frame is shown, by the times of those that follow. Where these are not in
        order (some phones write wrong ones), by the rate."""
        usual = 1 / self.fps
        times = [each.time for each in (frame, *self._waiting)]
        if None in times or any(after <= time for time, after in itertools.pairwise(times)):
            shown = usual
        elif len(times) > 1:
            shown = times[1] - times[0]
        else:
            shown = float((frame.duration or 0) * (frame.time_base or 0)) or usual
        return round(1e9 * (shown if shown <= LONGEST_S else usual))

    def _picture(self, frame: av.VideoFrame) -> np.ndarray:
        width, height = self._size(frame)
        matrix = None  # the frame's own
        if frame.colorspace not in _MATRICES:
            self._say("has a colour matrix that is not known (ICtCp?); its colours are wrong")
            matrix = _BT709
        curve, primaries = frame.color_trc, frame.color_primaries
        found = self._reformatter.reformat(
            frame, width, height, "bgr24", matrix, interpolation="BILINEAR", threads=1
        )
        image = self._cut(found.to_ndarray(), frame)
        return self._upright(screen_colours(image, curve, primaries), frame)

    def _cut(self, image: np.ndarray, frame: av.VideoFrame) -> np.ndarray:
        """The part that the file states to be shown; ``image`` may have been stretched."""
        if self._window is None:
            return image
        left, top, width, height = self._window
        if left + width > frame.width or top + height > frame.height:
            return image
        wide, high = image.shape[1] / frame.width, image.shape[0] / frame.height
        rows = slice(round(top * high), round((top + height) * high))
        return image[rows, round(left * wide) : round((left + width) * wide)]

    def _size(self, frame: av.VideoFrame) -> tuple[int, int]:
        """Of the picture with square pixels."""
        width, height = frame.width, frame.height
        aspect = float(self._stream.sample_aspect_ratio or 1)
        if not 1 / MOST_STRETCH <= aspect <= MOST_STRETCH or abs(aspect - 1) < SQUARE:
            return width, height
        wanted = round(width * max(aspect, 1)), round(height * max(1 / aspect, 1))
        return wanted if max(wanted) <= MOST_SIDE else (width, height)

    def _upright(self, image: np.ndarray, frame: av.VideoFrame) -> np.ndarray:
        """As the display matrix has it (ISO/IEC 14496-12, 6.2.2)."""
        try:
            stated: Any = frame.side_data
        except ValueError:  # PyAV 18 does not know EXIF
            return image
        for name, what in _NAMED.items():
            if name in stated:
                self._say(what)
        if "DISPLAYMATRIX" not in stated:
            return image
        a, b, _, c, d = np.frombuffer(stated["DISPLAYMATRIX"], np.int32, 5).tolist()
        if abs(b) > abs(a):  # columns become rows
            image, a, d = cv2.transpose(image), c, b
        if a < 0 or d < 0:
            image = cv2.flip(image, -1 if a < 0 and d < 0 else 1 if a < 0 else 0)
        return image

    def _say(self, what: str) -> None:
        """Log, once, what is not obeyed."""
        if what not in self._said:
            self._said.add(what)
            log.warning("%s %s", self._name, what)


def _window(place: str, form: str, stream: VideoStream) -> Window | None:
    if "mp4" not in form:
        return None
    with open(place, "rb") as file:
        return clean_aperture(file, stream.id)


def _kind(frame: av.VideoFrame) -> tuple[int, int, str]:
    return frame.width, frame.height, frame.format.name


def _deinterlacer(frame: av.VideoFrame) -> Graph:
    """For frames like this one. Those that are whole go through it as they are."""
    from av.filter import Graph

    graph = Graph()
    graph.link_nodes(
        graph.add_buffer(None, frame.width, frame.height, frame.format, None, frame.time_base),
        graph.add("bwdif", "mode=send_frame:deint=interlaced"),
        graph.add("buffersink"),
    ).configure()
    return graph
