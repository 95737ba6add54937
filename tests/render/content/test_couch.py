"""The couch at a point of the picture, where no pose is known: its place, its cloth, its light,
shadow and what hides it."""

import numpy as np
import pytest

from heimdall.models.results import Mask
from heimdall.render import Scene

GREEN = np.full((32, 32, 3), (0, 255, 0), np.uint8)


def drawn(surface, paint, grey=128):
    scene = Scene(surface)
    scene.estimates_light = False
    for number in range(2):  # it is loaded beside the first
        scene.begin(np.full((360, 640, 3), grey, np.uint8), number)
        paint(scene)
        scene.settle()
    scene.render()
    return surface.read().astype(int)


def couch(scene, **options):
    scene.model("couch.glb", **{"at": (320, 260), "width": 260, "texture": GREEN} | options)


def cloth(picture):
    """Where the green cloth is."""
    return picture[..., 1] > picture[..., [0, 2]].max(axis=-1) + 60


def test_the_couch_is_as_wide_as_told_and_centred(headless):
    columns = np.flatnonzero(cloth(drawn(headless, couch)).any(axis=0))
    assert columns[-1] - columns[0] == pytest.approx(260, rel=0.15)  # its front is nearer
    assert (columns[0] + columns[-1]) / 2 == pytest.approx(320, abs=3)


def test_its_base_touches_the_point(headless):
    rows = np.flatnonzero(cloth(drawn(headless, lambda s: couch(s, width=150))).any(axis=1))
    assert 260 < rows[-1] < 290  # its front edge is nearer
    assert rows[0] < 230


def test_lift_moves_it_up_in_metres(headless):
    low = np.flatnonzero(cloth(drawn(headless, couch)).any(axis=1))
    high = np.flatnonzero(cloth(drawn(headless, lambda s: couch(s, lift=0.3))).any(axis=1))
    metre = 260 / 2.116
    assert low[-1] - high[-1] == pytest.approx(0.3 * metre, rel=0.25)


def test_yaw_turns_it(headless):
    front = cloth(drawn(headless, couch)).any(axis=0).sum()
    side = cloth(drawn(headless, lambda s: couch(s, yaw=90))).any(axis=0).sum()
    assert side < 0.75 * front


def test_its_own_cloth_is_not_the_picture(headless):
    picture = drawn(headless, lambda s: couch(s, texture=None))
    middle = picture[170:250, 230:410]
    assert np.abs(middle - 128).mean() > 15
    assert middle.std() > 8  # woven and shaded, not flat


def test_a_new_texture_array_replaces_the_cloth_at_once(headless):
    scene = Scene(headless)
    scene.estimates_light = False
    couch(scene)
    scene.settle()
    hues = []
    for texture in (GREEN, GREEN[..., [1, 0, 2]].copy()):
        scene.begin(np.full((360, 640, 3), 128, np.uint8), 0)
        couch(scene, texture=texture)
        scene.render()
        hues.append(headless.read()[215, 320].argmax())
    assert hues == [1, 0]


def test_the_seat_is_lighter_than_the_folds(headless):
    green = drawn(headless, lambda s: couch(s, width=400))[..., 1]
    where = cloth(drawn(headless, lambda s: couch(s, width=400)))
    assert np.percentile(green[where], 95) > 1.5 * np.percentile(green[where], 5)


def test_a_soft_shadow_lies_on_the_plane(headless):
    picture = drawn(headless, couch, grey=200)
    column = picture[:, 320].mean(axis=-1)
    bottom = np.flatnonzero(cloth(picture)[:, 320])[-1]
    assert column[bottom + 8] < 160  # dark below the frame
    fade = np.diff(column[bottom + 12 : bottom + 60])
    assert (fade >= -1).all()  # and only ever lighter outwards
    assert fade.max() < 20
    assert (picture[:60] == 200).all()


def test_a_lifted_couch_has_a_paler_shadow(headless):
    def darkest(lift):
        picture = drawn(headless, lambda s: couch(s, width=160, lift=lift), 200)
        return picture[265:300, 280:360].mean(axis=-1).min()  # the plane in front of the couch

    assert darkest(0) + 5 < darkest(0.6)


@pytest.mark.parametrize("early", [False, True])
def test_a_mask_brings_the_camera_picture_to_the_front(headless, early):
    values = np.zeros((36, 64), np.float32)
    values[:, 32:] = 1

    def paint(scene):
        if early:
            scene.occlude(Mask(values))
        couch(scene)
        if not early:
            scene.occlude(Mask(values))

    picture = drawn(headless, paint)
    assert (picture[:, 330:] == 128).all()
    assert cloth(picture)[:, :310].any()


def test_nearer_furniture_hides_what_is_behind(headless):
    red = GREEN[..., [1, 0, 2]].copy()

    def paint(scene):
        couch(scene, at=(320, 280), width=300)
        couch(scene, at=(320, 220), width=220, texture=red)  # drawn later, stands farther away

    picture = drawn(headless, paint)
    assert cloth(picture)[250, 320]


def test_a_piece_that_reaches_behind_the_camera_fills_the_picture_but_where_a_mask_is(headless):
    values = np.zeros((36, 64), np.float32)
    values[:, 32:] = 1

    def paint(scene):
        couch(scene, at=(320, 360), width=3000)
        scene.occlude(Mask(values))

    picture = drawn(headless, paint)
    assert cloth(picture)[:, :310].mean() > 0.7
    assert (picture[:, 330:] == 128).all()


@pytest.mark.parametrize("first", ["near", "far"])
@pytest.mark.parametrize("wide", [120, 200, 260])
def test_what_stands_lower_in_the_picture_hides_what_is_behind_it(headless, first, wide):
    """However large either looks, and whichever is drawn first."""
    red = np.full((32, 32, 3), (255, 0, 0), np.uint8)

    def paint(scene):
        near = {"at": (320, 275), "width": wide, "texture": red}
        far = {"at": (320, 225), "width": 260}
        for each in (near, far) if first == "near" else (far, near):
            couch(scene, **each)

    def alone(scene):
        couch(scene, at=(320, 275), width=wide)

    picture, seen = drawn(headless, paint), cloth(drawn(headless, alone))
    reddish = picture[..., 0] > picture[..., [1, 2]].max(axis=-1) + 40
    assert reddish[seen].mean() > 0.98
