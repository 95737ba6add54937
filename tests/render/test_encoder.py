"""Frames to JPEG: upright, the newest, and without anybody waiting."""

from __future__ import annotations

import queue
import threading
import time

import cv2
import numpy as np

from heimdall.render.encoder import Drawn, Encoder
from heimdall.render.preview.jpegs import Jpegs, Picture


def frame(red: int = 0, size: tuple[int, int] = (64, 48)) -> np.ndarray:
    pixels = np.zeros((size[1], size[0], 4), np.uint8)
    pixels[..., 0] = red
    return pixels


def test_a_frame_arrives_upright_and_in_its_colours():
    pictures: queue.SimpleQueue[Picture] = queue.SimpleQueue()
    encoder = Encoder("preview-encoder", Jpegs(), pictures.put)
    pixels = frame(200)
    pixels[24:, :, 2] = 250  # GL's upper half
    encoder.put(pixels, Drawn(5))
    picture = pictures.get(timeout=60)
    encoder.close()
    assert picture.size == (64, 48)
    assert picture.drawn == Drawn(5)
    shown = cv2.imdecode(np.frombuffer(picture.jpeg, np.uint8), cv2.IMREAD_COLOR)
    blue, red = shown[..., 0], shown[..., 2]
    assert blue[:20].mean() > 200
    assert blue[28:].mean() < 40
    assert abs(float(red.mean()) - 200) < 15


def test_sizes_may_change():
    pictures: queue.SimpleQueue[Picture] = queue.SimpleQueue()
    encoder = Encoder("preview-encoder", Jpegs(), pictures.put)
    for size in ((64, 48), (32, 80), (64, 48)):
        encoder.put(frame(100, size), Drawn(0))
        assert pictures.get(timeout=60).size == size
    encoder.close()


def test_of_those_that_wait_the_newest_wins():
    begun, go_on = threading.Event(), threading.Event()
    times = []

    def deliver(picture):
        times.append(picture.drawn.at_ns)
        begun.set()
        go_on.wait(60)

    encoder = Encoder("preview-encoder", Jpegs(), deliver)
    encoder.put(frame(), Drawn(1))
    begun.wait(60)
    for number in range(2, 10):
        encoder.put(frame(), Drawn(number))
    begun.clear()
    go_on.set()
    begun.wait(60)
    encoder.close()
    assert times == [1, 9]
    assert encoder.overtaken == 7


def test_a_frame_that_cannot_be_encoded_is_told_once_and_others_go_on():
    pictures: queue.SimpleQueue[Picture] = queue.SimpleQueue()
    encoder = Encoder("preview-encoder", Jpegs(), pictures.put)
    encoder.put(frame(size=(0, 0)), Drawn(0))
    while not encoder.errors:
        time.sleep(0.01)
    encoder.put(frame(), Drawn(1))
    assert pictures.get(timeout=60).drawn == Drawn(1)
    encoder.close()
    assert len(encoder.errors) == 1
    assert "preview-encoder: a frame was lost" in encoder.errors[0]


def test_its_thread_ends():
    encoder = Encoder("preview-encoder", Jpegs(), lambda picture: None)
    encoder.close()
    names = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("preview-encoder") for name in names)
