"""Pictures and clips without labels: what is kept for the test, how pictures are varied, and what
is said of those that cannot be used."""

import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.lab.exits.unlabelled import MOST_FRAMES, is_unlabelled, open_views, varied
from tests.lab.exits.networks import write_clip, write_flat, write_pictures


def content(views):
    return {views.read(index).tobytes() for index in range(len(views))}


def test_labels_are_subfolders(tmp_path):
    write_pictures(tmp_path / "labelled", 2)
    assert not is_unlabelled(tmp_path / "labelled")
    assert is_unlabelled(write_flat(tmp_path / "flat"))
    assert is_unlabelled(write_clip(tmp_path / "clip.mp4"))
    assert not is_unlabelled(tmp_path / "gone")


def test_a_fifth_of_the_files_is_kept_for_the_test(tmp_path):
    learnt, kept = open_views(write_flat(tmp_path, 12), copies=1, seed=1)
    assert (len(learnt), len(kept)) == (9, 3)
    assert not content(learnt) & content(kept)
    assert content(open_views(tmp_path, copies=1, seed=1)[1]) == content(kept)
    assert content(open_views(tmp_path, copies=1, seed=2)[1]) != content(kept)


def test_of_a_clip_the_end_is_kept(tmp_path):
    learnt, kept = open_views(write_clip(tmp_path / "clip.mp4", 20), copies=1)
    light = [[int(part.read(i).mean()) for i in range(len(part))] for part in (learnt, kept)]
    assert [len(each) for each in light] == [16, 4]
    assert max(light[0]) < min(light[1])


def test_a_clip_is_one_file_and_goes_to_one_part(tmp_path):
    write_flat(tmp_path, 3)
    write_clip(tmp_path / "clip.mp4", 10)
    learnt, kept = open_views(tmp_path, copies=1)
    assert sorted([len(learnt), len(kept)]) in ([1, 12], [3, 10])


def test_long_clips_are_seen_at_even_steps(tmp_path):
    learnt, kept = open_views(write_clip(tmp_path / "long.mp4", MOST_FRAMES + 100), copies=1)
    assert len(learnt) + len(kept) == (MOST_FRAMES + 100) // 2


def test_the_test_may_be_given(tmp_path):
    flat, clip = write_flat(tmp_path / "flat", 5), write_clip(tmp_path / "clip.mp4", 10)
    learnt, kept = open_views(flat, clip, copies=3, most=4)
    assert (len(learnt), len(kept)) == (12, 10)


def test_copies_are_varied_by_the_seed(tmp_path):
    views, _ = open_views(write_flat(tmp_path, 5), copies=3, seed=4)
    assert len(content(views)) == len(views) == 12
    assert content(views) == content(open_views(tmp_path, copies=3, seed=4)[0])


def test_a_varied_picture_has_the_pictures_shape_and_is_not_large():
    random = np.random.default_rng(0)
    assert varied(np.zeros((40, 60, 3), np.uint8), random).shape == (40, 60, 3)
    assert varied(np.zeros((1500, 3000, 3), np.uint8), random).shape == (320, 640, 3)


def test_a_varied_picture_shows_a_part_of_it():
    """A ramp stays a ramp: no part is twice as dark as what is beside it, and levels differ."""
    ramp = np.repeat(np.linspace(60, 140, 200).astype(np.uint8)[None, :, None], 100, 0)
    image = varied(np.repeat(ramp, 3, 2), np.random.default_rng(7)).astype(int)
    assert np.abs(np.diff(image, axis=1)).max() <= 6
    assert np.ptp(image) > 5


@pytest.mark.parametrize(("name", "says"), [("x.png", "as a picture"), ("x.mp4", "as a clip")])
def test_files_that_cannot_be_read_are_named(tmp_path, name, says):
    (tmp_path / name).write_bytes(b"nothing")

    def read():
        return open_views(tmp_path, tmp_path, copies=1)[0].read(0)

    with pytest.raises(ConfigError, match=f"{name} cannot be read {says}"):
        read()


def test_one_picture_is_too_few(tmp_path):
    with pytest.raises(ConfigError, match="too few pictures"):
        open_views(write_flat(tmp_path, 1), copies=1)


def test_no_pictures_are_explained(tmp_path):
    with pytest.raises(ConfigError, match="no clip and no folder with pictures"):
        open_views(write_flat(tmp_path, 3), tmp_path / "gone", copies=1)
