"""Rendered rooms are what they say, and what is printed of trackers on them."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest

from benchmarks.clips import euroc, room
from benchmarks.colmap import Reference, load, save
from benchmarks.rooms import FPS, PLANES, Room, rendered
from benchmarks.world import COLUMNS, plain, row, summary, tried
from heimdall.capture.lens import Camera


def test_the_table_is_where_the_picture_has_it():
    """Two moments of one room agree about the table, as its plane says: a homography."""
    made = Room(2)
    (point, normal), (width, depth) = (PLANES[0].point, PLANES[0].normal), PLANES[0].size
    assert normal == (0, 1, 0)
    u, v = np.meshgrid(np.linspace(-0.4, 0.4, 40), np.linspace(-0.3, 0.3, 30))
    points = np.column_stack([u.ravel() * width, np.zeros(u.size), v.ravel() * depth]) + point

    def alike(raised_m: float) -> float:
        levels = []
        for at_s in (0.0, 1.0):
            there = made.pose(at_s).to_camera(np.add(points, (0, raised_m, 0)))
            seen = made.camera.pixels(there).astype(np.float32)
            picture = cv2.GaussianBlur(made.look(at_s), (0, 0), 1.5)
            found = cv2.remap(picture, seen[:, :1], seen[:, 1:], cv2.INTER_LINEAR)
            levels.append(found[:, 0, 0].astype(float))
        apart = np.abs(levels[0] - levels[1])
        kept = apart <= np.quantile(apart, 0.7)  # what boxes hide is not on the table
        return float(np.corrcoef(levels[0][kept], levels[1][kept])[0, 1])

    assert alike(0.0) > 0.98
    assert alike(0.1) < 0.95  # and the test would see it, if the table were elsewhere


def test_a_seed_gives_the_same_pictures():
    one, other = (next(iter(Room(4, "people")))[0] for _ in range(2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, next(iter(Room(5, "people")))[0])


def test_the_truth_beside_the_pictures_is_that_of_the_room(tmp_path):
    made = Room(1, "away", (160, 120), 3)
    place = rendered(tmp_path, made)
    assert len(list(place.glob("*.jpg"))) == 3
    with np.load(place / "truth.npz") as truth:
        assert np.allclose(truth["poses"][2][:, :3], made.pose(2 / FPS).rotation)
        assert np.allclose(truth["poses"][2][:, 3], made.pose(2 / FPS).translation)
        assert truth["camera"].tolist() == [160, 120, made.camera.fx, made.camera.fy, 79.5, 59.5]
        assert (np.abs(truth["depths"] - 2) < 1.5).all()


def test_pictures_are_rendered_once_and_again_when_rooms_change(tmp_path):
    made = Room(1, "white", (160, 120), 2)
    picture = rendered(tmp_path, made) / "00001.jpg"
    picture.write_bytes(b"kept")
    rendered(tmp_path, Room(1, "white", (160, 120), 2))
    assert picture.read_bytes() == b"kept"
    (picture.parent / "done").write_text("as rooms were rendered once")
    rendered(tmp_path, made)
    assert cv2.imread(str(picture)).shape == (120, 160, 3)


@pytest.mark.parametrize("variant", ["hand", "away", "rotation"])
def test_the_scene_is_as_far_away_as_what_is_seen(variant):
    """A true depth is that of some face, along a ray of the picture."""
    made = Room(0, variant)
    for at_s in (0.0, 6.0, 10.5):
        pose, depth = made.pose(at_s), made.depth(at_s)
        rays = made.camera.rays(np.stack(np.meshgrid(range(0, 640, 16), range(0, 480, 16)), -1)
                                .reshape(-1, 2))  # fmt: skip
        first = np.full(len(rays), np.inf)
        for board in made.boards:
            corner = pose.to_camera(board.corner)
            sides = np.stack([board.across, board.down], axis=1)
            system = np.concatenate(
                [
                    np.broadcast_to(pose.rotation @ sides, (len(rays), 3, 2)),
                    -rays[:, :, None],
                ],
                axis=2,
            )
            good = np.abs(np.linalg.det(system)) > 1e-9
            u, v, far = np.linalg.solve(system[good], -corner[:, None])[..., 0].T
            hit = (u >= 0) & (u <= 1) & (v >= 0) & (v <= 1) & (far > 0)
            first[good] = np.where(hit, np.minimum(first[good], far), first[good])
        assert np.mean(first < depth) == pytest.approx(0.5, abs=0.03)  # a median


def test_a_still_camera_has_no_quality_and_a_row_that_says_why(tmp_path):
    one = tried(room(tmp_path, 0, "still", (320, 240), 25), paced=False)
    assert one.quality is None
    assert one.share == 0
    assert one.why == {"initializing": 25}
    assert row(one, False) == "| still-0 | poses in 0.0% of frames; initializing 25 |"
    assert summary([one, one]) == ["still: 0 of 2 tracked"]


def test_rows_and_their_summary_tell_the_same(tmp_path):
    clip = room(tmp_path, 0, "hand", (320, 240), 60)
    one = tried(clip, paced=False)
    assert one.quality is not None
    assert one.quality.first < 50
    assert one.quality.ate < 0.05
    assert row(one, False).count("|") == len(COLUMNS) + 1
    assert row(one, True).count("|") == len(COLUMNS) + 1
    (line,) = summary([one, one])
    assert f"ATE median {one.quality.ate:.3%}, worst {one.quality.ate:.3%}" in line
    said = json.loads(json.dumps(plain(one)))
    assert said["ate"] == one.quality.ate
    assert said["frames"] == 60
    again = tried(clip, paced=False)
    assert again.quality.errors == one.quality.errors  # not paced: the same every time


def test_a_reference_is_read_as_it_was_written(tmp_path):
    poses = {8: Room(0).pose(1.0), 16: Room(0).pose(2.0)}
    camera = Camera(364, 674, 500.0, 500.0, 181.0, 336.0, (0.04, 0, 0, 0, 0))
    save(tmp_path / "a.npz", Reference(camera, poses, {16: 1.5}, 5, 0.7))
    found = load(tmp_path / "a.npz")
    assert found.camera == camera
    assert list(found.poses) == [8, 16]
    assert np.allclose(found.poses[16].rotation, poses[16].rotation)
    assert np.allclose(found.poses[8].translation, poses[8].translation)
    assert (found.depths, found.asked, found.error_px) == ({16: 1.5}, 5, 0.7)


def test_a_sequence_in_eurocs_format_has_its_lens_and_no_truth(tmp_path):
    camera = tmp_path / "mav0" / "cam0"
    (camera / "data").mkdir(parents=True)
    (camera / "sensor.yaml").write_text(
        "%YAML:1.0\nrate_hz: 20\nintrinsics: [458.6, 457.2, 367.2, 248.3] #fu, fv, cu, cv\n"
        "distortion_coefficients: [-0.28, 0.07, 0.0002, 1.7e-05]\n"
    )
    for number in range(12):
        cv2.imwrite(str(camera / "data" / f"{number:02}.png"), np.full((480, 752), 90, np.uint8))
    clip = euroc(tmp_path, 10)
    assert (len(clip.pictures), clip.camera.size) == (10, (752, 480))
    assert (clip.camera.fx, clip.camera.distortion) == (458.6, (-0.28, 0.07, 0.0002, 1.7e-05, 0.0))
    one = tried(clip, paced=False)
    assert one.quality is None
    assert "poses in 0.0% of frames" in row(one, paced=False)
