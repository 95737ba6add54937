"""Whatever a user names as a source: by what it holds, not by its suffix."""

from __future__ import annotations

import struct
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np
import pytest

from heimdall.capture import open_source
from heimdall.capture.opening import find_source
from heimdall.capture.readers import open_file, read_picture
from heimdall.errors import ConfigError, DeviceError, HeimdallError
from tests.media import GREEN, WHITE, make, near, scene

PATIENCE_S = 20.0


def opened(spec: str | Path):
    return find_source(str(spec)).open_reader()


def is_the_scene(image: np.ndarray) -> bool:
    return near(image[40, 40], GREEN) and near(image[4, 4], WHITE)


# --- pictures by their content ------------------------------------------------------------------


def write(path: Path, rgb: np.ndarray) -> Path:
    """A picture file of any kind."""
    if path.suffix in (".tga", ".gif", ".mp4", ".apng"):
        codec = {".tga": "targa", ".gif": "gif", ".apng": "apng", ".mp4": "libx264"}[path.suffix]
        form = {".tga": "bgr24", ".gif": "rgb8", ".apng": "rgb24", ".mp4": "yuv420p"}[path.suffix]
        return make(path, [rgb], codec=codec, form=form)
    if path.suffix == ".pam":
        header = f"P7\nWIDTH {rgb.shape[1]}\nHEIGHT {rgb.shape[0]}\nDEPTH 3\nMAXVAL 255\n"
        path.write_bytes(f"{header}TUPLTYPE RGB\nENDHDR\n".encode() + rgb.tobytes())
        return path
    assert cv2.imwrite(str(path), cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))
    return path


KINDS = [
    *("png", "jpg", "bmp", "ppm", "pam", "tga", "jp2", "tiff", "webp", "gif", "apng", "avif"),
    "mp4",
]


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_one_frame_is_a_picture(tmp_path: Path, kind: str):
    try:
        path = write(tmp_path / f"a.{kind}", scene())
    except cv2.error:
        pytest.skip(f"this OpenCV writes no {kind}")
    reader = open_file(path)
    assert (reader.live, reader.fps) == (False, 0)
    for _ in range(3):
        image = reader.read()
        assert near(image[40, 40], GREEN, 32)  # a GIF's palette here
        assert near(image[4, 4], WHITE)
    with closing(open_source(str(path))) as source:
        assert source.wait_first(PATIENCE_S) is not None
        assert not source.flowing
        assert source.describe() == f"image a.{kind}, 64x48"


@pytest.mark.parametrize("kind", ["png", "ppm", "jp2", "avif", "webp", "mp4"])
@pytest.mark.parametrize("suffix", [".dat", ".jpg", ".mp4", ""])
def test_suffixes_do_not_matter(tmp_path: Path, kind: str, suffix: str):
    path = write(tmp_path / f"a.{kind}", scene()).rename(tmp_path / f"b{suffix}")
    assert open_file(path).fps == 0
    assert is_the_scene(open_file(path).read())


@pytest.mark.parametrize("suffix", [".png", ".jpg", ""])
def test_a_clip_is_a_clip_whatever_it_is_called(tmp_path: Path, suffix: str):
    path = make(tmp_path / "a.mp4", [scene()] * 3).rename(tmp_path / f"b{suffix}")
    with closing(open_file(path)) as reader:
        assert reader.fps == 25


@pytest.mark.parametrize("level", [b"x", b"\n", b"1"])
def test_a_picture_whose_levels_are_letters_is_no_text(tmp_path: Path, level: bytes):
    (tmp_path / "a.pgm").write_bytes(b"P5\n64 48\n255\n" + level * (64 * 48))
    assert opened(tmp_path / "a.pgm").read()[0, 0, 0] == level[0]
    (tmp_path / "b.pgm").write_text("P2\n4 3\n255\n" + "7 " * 12)
    assert opened(tmp_path / "b.pgm").read()[0, 0, 0] == 7


@pytest.mark.parametrize(("highest", "code"), [(15, "u1"), (1023, ">u2"), (4095, ">u2")])
def test_the_highest_level_of_a_pgm_is_white(tmp_path: Path, highest: int, code: str):
    """Cameras of 10 and 12 bits; OpenCV takes them for 16 bits, which is nearly black."""
    levels = np.full((48, 64), highest, code)
    levels[:, :32] = highest // 3
    (tmp_path / "a.pgm").write_bytes(b"P5\n# made\n64 48\n%d\n" % highest + levels.tobytes())
    for image in (opened(tmp_path / "a.pgm").read(), read_picture(tmp_path / "a.pgm")):
        assert near(image[9, 9], (85, 85, 85), 1)
        assert near(image[9, 60], WHITE, 1)


def test_a_pam_is_red_where_it_is_red_and_a_pfm_is_not_black(tmp_path: Path):
    red = np.zeros((48, 64, 3), np.uint8)
    red[..., 0] = 200
    header = b"P7\nWIDTH 64\nHEIGHT 48\nDEPTH 3\nMAXVAL 255\nTUPLTYPE RGB\nENDHDR\n"
    (tmp_path / "a.pam").write_bytes(header + red.tobytes())
    floats = (red / 255).astype("<f4").tobytes()
    (tmp_path / "a.pfm").write_bytes(b"PF\n64 48\n-1.0\n" + floats)
    for name in ("a.pam", "a.pfm"):
        for image in (opened(tmp_path / name).read(), read_picture(tmp_path / name)):
            assert near(image[9, 9], (200, 0, 0), 1)


def test_a_y4m_is_a_clip(tmp_path: Path):
    frame = b"FRAME\n" + b"x" * (64 * 48 * 3 // 2)
    (tmp_path / "a.y4m").write_bytes(b"YUV4MPEG2 W64 H48 F20:1 Ip A1:1 C420jpeg\n" + frame * 3)
    with closing(opened(tmp_path / "a.y4m")) as reader:
        assert (reader.fps, reader.read().shape) == (20, (48, 64, 3))


def test_text_is_no_source(tmp_path: Path):
    (tmp_path / "a.mp4").write_text("Pictures\n" * 600)
    with pytest.raises(ConfigError, match="is a text file"):
        find_source(str(tmp_path / "a.mp4"))


def test_sixteen_bits_and_grey_become_a_picture(tmp_path: Path):
    cv2.imwrite(str(tmp_path / "a.png"), np.full((48, 64), 40_000, np.uint16))
    image = opened(tmp_path / "a.png").read()
    assert image.shape == (48, 64, 3)
    assert abs(int(image[0, 0, 0]) - 156) <= 1


def test_a_photograph_is_turned_as_its_exif_says(tmp_path: Path):
    image = cv2.cvtColor(scene(), cv2.COLOR_RGB2BGR)
    data = cv2.imencode(".jpg", image)[1].tobytes()
    turned = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    exif = b"\xff\xe1" + struct.pack(">H", len(turned) + 2) + turned
    (tmp_path / "a.jpg").write_bytes(data[:2] + exif + data[2:])
    found = opened(tmp_path / "a.jpg").read()
    assert found.shape == (64, 48, 3)
    assert near(found[4, -4], WHITE)


def test_what_follows_a_photograph_is_not_a_second_frame(tmp_path: Path):
    """A map for HDR, or the same picture smaller (CIPA DC-007): not motion JPEG."""
    data = write(tmp_path / "a.jpg", scene()).read_bytes()
    several = data[:2] + b"\xff\xe2" + struct.pack(">H", 6) + b"MPF\0" + data[2:] + data
    for name in ("b.jpg", "b.mpo", "b"):
        (tmp_path / name).write_bytes(several)
        assert open_file(tmp_path / name).fps == 0
    (tmp_path / "b.mjpeg").write_bytes(data * 3)
    assert open_file(tmp_path / "b.mjpeg").fps == 25


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n" + bytes(99), b"\xff\xd8\xff\xe0" + bytes(99)]
)
def test_a_damaged_picture_is_named(tmp_path: Path, data: bytes):
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(DeviceError, match=r"a\.bin.*(damaged|no readable)"):
        opened(tmp_path / "a.bin").read()


# --- animations ---------------------------------------------------------------------------------


def animation(count: int = 4) -> list[np.ndarray]:
    return [np.roll(scene(), 16 * k, 1) for k in range(count)]


def wrote_webp(path: Path) -> None:
    moving = cv2.Animation()
    moving.frames = [cv2.cvtColor(each, cv2.COLOR_RGB2BGRA) for each in animation()]
    moving.durations = [100, 40, 40, 500]
    cv2.imwriteanimation(str(path), moving)


def test_an_animated_webp_is_a_clip(tmp_path: Path):
    wrote_webp(tmp_path / "a.webp")
    reader = opened(tmp_path / "a.webp")
    for _ in range(2):
        seen: list[tuple[int, int]] = []
        while (image := reader.read()) is not None:
            assert image.shape == (48, 64, 3)
            assert near(image[4, 4 + 16 * len(seen)], WHITE)
            seen.append((reader.at_ns // 10**6, reader.gap_ns() // 10**6))
        assert seen == [(0, 100), (100, 40), (140, 40), (180, 500)]
        assert reader.rewind()
    with closing(open_source(str(tmp_path / "a.webp"))) as source:
        assert source.wait_first(PATIENCE_S) is not None
        assert source.describe().startswith("video a.webp, 64x48")


def test_a_damaged_animation_is_named(tmp_path: Path):
    wrote_webp(tmp_path / "a.webp")
    (tmp_path / "b.webp").write_bytes((tmp_path / "a.webp").read_bytes()[:60])
    with pytest.raises(DeviceError, match=r"b\.webp"):
        opened(tmp_path / "b.webp")


@pytest.mark.parametrize(("codec", "form"), [("gif", "rgb8"), ("apng", "rgb24")])
def test_an_animated_gif_or_png_is_a_clip(tmp_path: Path, codec: str, form: str):
    path = make(tmp_path / f"a.{codec}", animation(), codec=codec, form=form)
    path = path.rename(tmp_path / "a.png") if codec == "apng" else path
    reader = opened(path)
    count = 0
    while (image := reader.read()) is not None:
        assert near(image[4, 4 + 16 * count], WHITE)
        count += 1
    assert count == 4


# --- series of pictures -------------------------------------------------------------------------


def levels(reader) -> list[int]:
    found = []
    while (image := reader.read()) is not None:
        found.append(int(image[0, 0, 0]))
    return found


def times_s(reader) -> list[float]:
    found = []
    while reader.read() is not None:
        found.append(reader.at_ns / 1e9)
    return found


def folder_of(path: Path, names: list[str]) -> Path:
    """Pictures as bright as their place in the list."""
    path.mkdir(parents=True)
    for level, name in enumerate(names):
        assert cv2.imwrite(str(path / name), np.full((8, 8), level, np.uint8))
    return path


def test_a_folder_is_played_in_the_order_of_its_numbers(tmp_path: Path):
    folder = folder_of(tmp_path / "a", ["left1.png", "left2.png", "left9.png", "left10.png"])
    (folder / "notes.txt").write_text("not a picture")
    (folder / ".hidden.png").write_bytes(b"no")
    reader = opened(folder)
    assert levels(reader) == [0, 1, 2, 3]
    assert reader.rewind()
    assert times_s(reader) == pytest.approx([0, 1 / 30, 2 / 30, 3 / 30], abs=1e-6)
    assert reader.fps == pytest.approx(30)
    with closing(open_source(str(folder))) as source:
        assert source.wait_first(PATIENCE_S) is not None
        assert source.describe() == "pictures a, 8x8 at 30 fps, looped"


@pytest.mark.parametrize("named", ["mav0/cam0", "mav0/cam0/data"])
def test_names_of_euroc_are_times(tmp_path: Path, named: str):
    start = 1403636579763555584
    names = [f"{start + k}.png" for k in (0, 50_000_000, 150_000_000)]
    folder_of(tmp_path / "mav0" / "cam0" / "data", names)
    assert times_s(opened(tmp_path / named)) == pytest.approx([0, 0.05, 0.15], abs=1e-9)


def test_names_of_tum_are_times(tmp_path: Path):
    names = ["1305031102.175304.png", "1305031102.211214.png", "1305031102.3.png"]
    reader = opened(folder_of(tmp_path / "rgb", names))
    assert times_s(reader) == pytest.approx([0, 0.03591, 0.124696], abs=1e-9)


def test_times_of_kitti_are_read(tmp_path: Path):
    folder = folder_of(tmp_path / "00" / "image_0", [f"{k:06d}.png" for k in range(3)])
    (tmp_path / "00" / "times.txt").write_text("0.000000e+00\n1.036224e-01\n2.072610e-01\n")
    assert times_s(opened(folder)) == pytest.approx([0, 0.1036224, 0.207261], abs=1e-9)
    raw = folder_of(tmp_path / "image_00" / "data", [f"{k:010d}.png" for k in range(2)])
    stamps = "2011-09-26 23:59:59.964389445\n2011-09-27 00:00:00.068389445\n"
    (raw.parent / "timestamps.txt").write_text(stamps)
    assert times_s(opened(raw.parent)) == pytest.approx([0, 0.104], abs=1e-9)


@pytest.mark.parametrize("text", ["0.0\n0.1\n", "0.0\n0.2\n0.1\n", "a\nb\nc\n", "nan\ninf\n0\n"])
def test_times_that_do_not_fit_are_named(tmp_path: Path, text: str, caplog):
    folder = folder_of(tmp_path / "a", [f"{k}.png" for k in range(3)])
    (folder / "times.txt").write_text(text)
    assert times_s(opened(folder)) == pytest.approx([0, 1 / 30, 2 / 30], abs=1e-6)
    assert "30 a second" in caplog.text


def test_a_picture_that_cannot_be_read_is_left_out(tmp_path: Path, caplog):
    folder = folder_of(tmp_path / "a", ["0.png", "1.png", "2.png"])
    (folder / "1.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    assert levels(opened(folder)) == [0, 2]
    assert "1.png" in caplog.text


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("img%04d.png", [0, 1, 2]),
        ("img%d.png", [0, 1, 2]),
        ("img*.png", [0, 1, 2]),
        ("img%05d.png", []),
        ("*.jpg", []),
    ],
)
def test_numbered_files_are_a_source(tmp_path: Path, pattern: str, expected: list[int]):
    folder = folder_of(tmp_path / "a", ["img0007.png", "img0008.png", "img0010.png", "other.png"])
    if expected:
        assert levels(opened(folder / pattern)) == expected
    else:
        with pytest.raises(ConfigError, match="no file is named as"):
            opened(folder / pattern)


def test_a_file_may_be_called_like_a_pattern(tmp_path: Path):
    write(tmp_path / "a.png", scene()).rename(tmp_path / "100%d.png")
    assert opened(tmp_path / "100%d.png").fps == 0


def test_a_folder_without_pictures_names_those_in_it(tmp_path: Path):
    folder_of(tmp_path / "image_0", ["0.png"])
    folder_of(tmp_path / "image_1", ["0.png"])
    with pytest.raises(ConfigError, match="holds no picture; give one of its folders: image_0, im"):
        open_source(str(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(HeimdallError, match="empty holds no picture"):
        opened(tmp_path / "empty")
