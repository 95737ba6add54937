"""The format that reaches the size and the rate asked for, or comes nearest."""

from __future__ import annotations

import pytest

from heimdall.capture.formats import Choice, Format, Mode, choose

HD, VGA, FULL = (1280, 720), (640, 480), (1920, 1080)


def offered(fourcc, **modes):
    """``offered("YUYV", hd=(10,), vga=(30, 15))``"""
    sizes = {"hd": HD, "vga": VGA, "full": FULL}
    found = tuple(Mode(sizes[name], tuple(map(float, rates))) for name, rates in modes.items())
    return Format(fourcc, fourcc == "MJPG", found)


USB_2 = [
    offered("MJPG", full=(30,), hd=(60, 30), vga=(30,)),
    offered("YUYV", vga=(30, 15), hd=(10, 5)),
]


@pytest.mark.parametrize(
    ("size", "fps", "choice"),
    [
        (HD, 30, Choice("MJPG", HD, 30)),  # raw would give a third of the rate
        (VGA, 30, Choice("YUYV", VGA, 30)),
        (VGA, 15, Choice("YUYV", VGA, 15)),  # 30 would be work for nothing
        (VGA, 10, Choice("YUYV", VGA, 15)),
        (HD, 10, Choice("YUYV", HD, 10)),
        (HD, 60, Choice("MJPG", HD, 60)),
        (FULL, 60, Choice("MJPG", FULL, 30)),  # nearest
    ],
)
def test_raw_where_it_reaches_what_is_asked_else_mjpg(size, fps, choice):
    found = choose(USB_2, size, fps)
    assert found == choice
    assert found.reaches(size, fps) == (choice.fps >= fps)


def test_a_rate_is_preferred_to_a_size_where_they_miss_equally():
    raw_only = [offered("YUYV", hd=(10,), vga=(30,))]  # a third of the rate, or of the pixels
    assert choose(raw_only, HD, 30) == Choice("YUYV", VGA, 30)
    assert choose(raw_only, HD, 15) == Choice("YUYV", HD, 10)


def test_29_97_is_30():
    choice = choose([offered("YUYV", hd=(29.97,)), offered("MJPG", hd=(30,))], HD, 30)
    assert choice.fourcc == "YUYV"
    assert choice.reaches(HD, 30)


def test_a_size_that_is_not_offered_gives_way_to_the_nearest():
    choice = choose([offered("YUYV", vga=(30,), full=(30,))], (1600, 900), 30)
    assert choice == Choice("YUYV", FULL, 30)
    assert not choice.reaches((1600, 900), 30)


def test_what_opencv_cannot_read_is_never_chosen():
    assert choose([offered("H264", hd=(30,)), offered("pBAA", hd=(30,))], HD, 30) is None
    both = [offered("H264", hd=(30,)), offered("MJPG", vga=(30,))]
    assert choose(both, HD, 30) == Choice("MJPG", VGA, 30)


def test_grey_is_for_cameras_that_have_no_colour():
    grey = offered("GREY", hd=(30,))
    assert choose([grey, offered("YUYV", vga=(15,))], HD, 30).fourcc == "YUYV"
    assert choose([grey], HD, 30).fourcc == "GREY"


def test_where_no_rates_are_told_what_is_asked_may_be_had():
    assert choose([offered("YUYV", hd=())], HD, 25) == Choice("YUYV", HD, 25)


def test_nothing_is_chosen_where_no_sizes_are_told():
    assert choose([offered("YUYV")], HD, 30) is None
    assert choose([], HD, 30) is None
