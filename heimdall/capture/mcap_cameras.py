"""Which calibration of an MCAP file belongs to which of its cameras.

Messages name the frame that they are of, and those of a camera share it. Where one names none, they
share a namespace, as in ROS: ``/camera/left/image_raw/compressed``, ``/camera/left/camera_info``.
"""

from __future__ import annotations

import itertools

Key = tuple[str, str]  # a topic, and the name of a frame


class Belonging:
    """The picture topics and calibrations of a file, as far as it has been read."""

    def __init__(self) -> None:
        self.images: dict[str, str] = {}  # topics and their frames
        self.lenses: list[Key] = []

    def add_image(self, topic: str, frame: str) -> None:
        """A message of pictures was read."""
        self.images.setdefault(topic, frame)

    def add_lens(self, key: Key) -> None:
        """A calibration was read."""
        if key not in self.lenses:
            self.lenses.append(key)

    def of(self, image: str) -> Key | None:
        """The calibration of the camera whose pictures are on that topic; None where there is none,
        or only those of other cameras."""
        mine = [key for key in self.lenses if self._is_of(key, image)]
        return max(mine, key=lambda key: self._rank(key, image), default=None)

    def _is_of(self, key: Key, image: str) -> bool:
        """True if no other camera is a better place for a calibration."""
        if len(self.images) == len(self.lenses) == 1:
            return not self._differ(key, image)
        rank = self._rank(key, image)
        return rank > (0, 0) and all(self._rank(key, each) <= rank for each in self.images)

    def _differ(self, key: Key, image: str) -> bool:
        return bool(key[1] and self.images[image]) and key[1] != self.images[image]

    def _rank(self, key: Key, image: str) -> tuple[int, int]:
        topic, frame = key
        both = itertools.takewhile(lambda two: two[0] == two[1], zip(topic, image, strict=False))
        alike = sum(1 for _ in both)  # letters from the beginning
        if frame and frame == self.images[image]:
            return 2, alike
        near = image.startswith(topic.rpartition("/")[0] + "/")
        return (1, alike) if near and not self._differ(key, image) else (0, 0)
