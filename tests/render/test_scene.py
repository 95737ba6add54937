"""What is on the picture, by its pixels, on every surface."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from heimdall.capture import Camera, Pose
from heimdall.errors import AppError, ConfigError
from heimdall.models.body import JOINTS
from heimdall.models.face_mesh import CONTOURS, CORNERS
from heimdall.models.head import canonical_face
from heimdall.models.results import (
    Body,
    Body3D,
    Detection,
    FaceMesh,
    Hand,
    Mask,
    Picture,
    TextRegion,
)
from heimdall.render import Scene
from heimdall.render.layout import Letterbox
from heimdall.render.scene import HAND_BONES

WHITE, RED = (255, 255, 255), (255, 0, 0)


def drawn(surface, image, paint=lambda scene: None, sequence=0, scene=None):
    scene = scene or Scene(surface)
    scene.begin(image, sequence)
    paint(scene)
    scene.render()
    return surface.read()


def near(picture, color, tolerance=40):
    return (np.abs(picture.astype(int) - color) <= tolerance).all(axis=-1)


def test_the_camera_picture_is_upright_and_its_colours_are_right(surface):
    image = np.zeros((180, 320, 3), np.uint8)
    image[:90, :160] = (255, 0, 0)  # BGR: blue top left
    image[:90, 160:] = (0, 255, 0)
    image[90:, :160] = (0, 0, 255)
    picture = drawn(surface, image)
    assert tuple(picture[40, 80]) == (0, 0, 255)
    assert tuple(picture[40, 240]) == (0, 255, 0)
    assert tuple(picture[140, 80]) == (255, 0, 0)
    assert tuple(picture[140, 240]) == (0, 0, 0)


@pytest.mark.parametrize(("shape", "inside"), [((120, 120), (0, 70)), ((40, 320), (70, 0))])
def test_another_aspect_ratio_gives_dark_bars_and_no_stretching(surface, shape, inside):
    picture = drawn(surface, np.full((*shape, 3), 255, np.uint8))
    top, left = inside
    bright = near(picture, WHITE)
    rows, columns = np.flatnonzero(bright.any(axis=1)), np.flatnonzero(bright.any(axis=0))
    assert (rows[0], rows[-1]) == (top, 179 - top)
    assert (columns[0], columns[-1]) == (left, 319 - left)
    assert bright[top : 180 - top, left : 320 - left].all()
    assert picture[~bright].max() < 40


def test_a_picture_is_sent_only_when_its_sequence_is_new(surface, grey):
    scene = Scene(surface)
    drawn(surface, grey, sequence=1, scene=scene)
    assert drawn(surface, grey + 100, sequence=1, scene=scene)[90, 160, 0] == 128
    assert drawn(surface, grey + 100, sequence=2, scene=scene)[90, 160, 0] == 228


def test_a_picture_of_another_size_replaces_the_texture(surface, grey):
    scene = Scene(surface)
    drawn(surface, grey, sequence=1, scene=scene)
    small = np.full((90, 160, 3), 60, np.uint8)
    assert (drawn(surface, small, sequence=2, scene=scene) == 60).all()


def test_screen_points_map_back_to_the_picture(surface):
    scene = Scene(surface)
    scene.begin(np.zeros((60, 60, 3), np.uint8), 0)  # 3 times as large, 70 pixels from the left
    assert scene.to_picture(70, 0) == (0, 0)
    assert scene.to_picture(160, 90) == (30, 30)
    assert scene.picture_size == (60, 60)


def test_boxes_are_where_they_were_told(surface, grey):
    found = [Detection("cup", 0.9, (100, 60, 200, 140))]
    picture = drawn(surface, grey, lambda scene: scene.boxes(found, "#ff0000"))
    red = near(picture, RED)
    assert red[100, 99:102].any()
    assert red[100, 199:202].any()
    assert red[139:142, 150].any()
    assert not red[70:130, 110:190].any()  # the label stands above, the inside is free
    assert red[45:59, 100:140].any()


def test_labels_have_readable_letters(surface, grey):
    found = [Detection("cup", 0.9, (100, 60, 200, 140))]
    picture = drawn(surface, grey, lambda scene: scene.boxes(found, "#ffff00"))
    plate = picture[45:60, 100:150]
    assert near(plate, (255, 255, 0), 60).any()
    assert near(plate, (16, 20, 24), 60).any()


def test_no_detection_draws_nothing(surface, grey):
    assert (drawn(surface, grey, lambda scene: scene.boxes([])) == 128).all()


def test_a_mask_tints_where_it_is_likely(surface, grey):
    values = np.zeros((18, 32), np.float32)
    values[:, 16:] = 1
    picture = drawn(surface, grey, lambda scene: scene.mask(Mask(values), "#00ff00", 0.5))
    assert (picture[:, :150] == 128).all()
    assert near(picture[:, 170:], (64, 192, 64), 3).all()


def test_an_empty_mask_changes_nothing(surface, grey):
    values = np.zeros((18, 32), np.float32)
    assert (drawn(surface, grey, lambda scene: scene.mask(Mask(values), "#00ff00")) == 128).all()


def test_a_skeleton_joins_its_points(surface, grey):
    points = np.array([[50, 50, 0.9], [250, 50, 0.9], [250, 150, 0.9]])
    bones = [(0, 1)]
    picture = drawn(surface, grey, lambda scene: scene.skeleton(points, bones, (1, 0, 0)))
    red = near(picture, RED)
    assert red[50, 60:240].all()
    assert red[150, 250]
    assert not red[100, 250]


def test_a_pinch_is_marked(surface, grey):
    points = np.zeros((21, 3), np.float32)
    points[:, :2] = np.linspace((100, 150), (160, 60), 21)
    points[4, :2] = points[8, :2] = (200, 60)
    pinching = Hand(points, 0.9, "right")
    assert pinching.pinch < 0.35
    picture = drawn(surface, grey, lambda scene: scene.hands([pinching]))
    assert near(picture[45:75, 185:215], WHITE).any()


def test_a_body_shows_only_the_joints_in_sight(surface, grey):
    joints = np.zeros((17, 3), np.float32)
    joints[5], joints[6] = (60, 60, 0.9), (200, 60, 0.9)  # shoulders
    joints[7] = (60, 150, 0.05)  # an elbow out of sight
    picture = drawn(surface, grey, lambda scene: scene.bodies([Body(joints)], "#ff0000"))
    red = near(picture, RED)
    assert red[60, 70:190].all()
    assert not red[80:].any()


def test_a_body_out_of_sight_draws_nothing(surface, grey):
    unseen = Body(np.zeros((17, 3), np.float32))
    assert (drawn(surface, grey, lambda scene: scene.bodies([unseen])) == 128).all()


def test_a_body_of_33_joints_shows_those_that_are_visible(surface, grey):
    joints = np.zeros((33, 4), np.float32)
    joints[:, 2] = 500  # depths, in pixels: no scores
    places = {
        "left shoulder": (200, 60), "right shoulder": (60, 60), "right hip": (60, 150),
        "left hip": (200, 150), "left elbow": (260, 100),
    }  # fmt: skip
    for name, place in places.items():
        joints[JOINTS.index(name)] = (*place, -500, 0.9)
    joints[JOINTS.index("left elbow"), 3] = 0.2  # behind the back
    body = Body3D(joints, np.zeros((33, 3), np.float32), 0.9)
    red = near(drawn(surface, grey, lambda scene: scene.bodies([body], "#ff0000")), RED)
    assert red[60, 70:190].all()
    assert red[150, 70:190].all()
    assert red[70:140, 60].all()
    assert red[70:140, 200].all()
    assert not red[70:140, 70:190].any()
    assert not red[:, 210:].any()
    assert not red[:50].any()


def mesh(scale=1000.0):
    """A face that looks at the camera, 140 pixels wide, in the middle of 320 x 180."""
    points = canonical_face()[0] * (scale, -scale, -scale) + (160, 90, 0)
    irises = np.zeros((2, 5, 3))
    for eye, (start, end) in enumerate(CORNERS):
        rim = 5 * np.array([(0, 0), (1, 0), (0, -1), (-1, 0), (0, 1)])
        irises[eye, :, :2] = points[[start, end], :2].mean(axis=0) + rim
    return FaceMesh(points.astype(np.float32), 0.9, irises.astype(np.float32))


def test_a_face_shows_its_lines_and_irises(surface, grey):
    face = mesh()
    red = near(drawn(surface, grey, lambda scene: scene.faces([face], "#ff0000")), RED, 90)
    for one, other in CONTOURS:
        x, y = (face.points[one, :2] + face.points[other, :2]) / 2
        if 1 < x < 318 and 1 < y < 178:
            assert red[round(y) - 1 : round(y) + 2, round(x) - 1 : round(x) + 2].any(), (one, other)
    for middle in face.irises[:, 0, :2]:
        x, y = middle.round().astype(int)
        assert red[y - 1 : y + 2, x + 4 : x + 7].any()
        assert not red[y, x]
    cheek = face.points[50, :2].round().astype(int)
    assert not red[cheek[1] - 3 : cheek[1] + 4, cheek[0] - 3 : cheek[0] + 4].any()


def test_lines_of_a_face_are_closed_and_few():
    assert len(CONTOURS) == len(set(CONTOURS)) == 36 + 16 + 16 + 9 + 9 + 20 + 20
    _, triangles = canonical_face()
    edges = {frozenset(pair) for a, b, c in triangles for pair in ((a, b), (b, c), (c, a))}
    assert {frozenset(pair) for pair in CONTOURS} <= edges  # no line crosses the face


def test_no_face_draws_nothing(surface, grey):
    assert (drawn(surface, grey, lambda scene: scene.faces([])) == 128).all()


@pytest.mark.parametrize("software", [False, True])
def test_another_background_shows_where_the_mask_is_unlikely(headless, software):
    headless.software = software  # a GPU samples the picture, else OpenCV scales it
    headless_scene = Scene(headless)
    values = np.zeros((36, 64), np.float32)
    values[:, 32:] = 1  # somebody in the right half
    green = np.full((20, 30, 3), (0, 255, 0), np.uint8)
    image = np.full((360, 640, 3), 128, np.uint8)
    picture = drawn(
        headless, image, lambda s: s.background(green, Mask(values)), scene=headless_scene
    )
    assert near(picture[:, :300], (0, 255, 0), 3).all()
    assert near(picture[:, 340:], (128, 128, 128), 3).all()
    again = drawn(headless, image, scene=headless_scene, sequence=1)
    assert (again == 128).all()  # only in the frame that asks for it


def test_a_picture_with_alpha_lets_the_camera_through(surface, grey):
    image = np.zeros((10, 10, 4), np.uint8)
    image[:, 5:] = (255, 0, 0, 255)
    corners = np.array([[100, 50], [200, 50], [200, 150], [100, 150]])
    picture = drawn(surface, grey, lambda scene: scene.picture(image, corners))
    assert (picture[60:140, 105:140] == 128).all()
    assert near(picture[60:140, 165:195], RED).all()


def test_a_hand_has_twenty_bones():
    assert len(HAND_BONES) == 20
    assert {joint for bone in HAND_BONES for joint in bone} == set(range(21))


def test_polygons_are_closed(surface, grey):
    corners = np.array([[50, 50], [150, 50], [150, 120], [50, 120]])
    picture = drawn(surface, grey, lambda scene: scene.polygons([corners], "#ff0000"))
    red = near(picture, RED)
    assert red[50, 100]
    assert red[85, 50]  # the side from the last corner to the first
    assert not red[85, 100]


def test_text_is_on_its_plate(surface, grey):
    def paint(scene):
        scene.text("Hello", (40, 40), size=20, color="#ffffff", background="#000000")

    picture = drawn(surface, grey, paint)
    assert near(picture[40:65, 40:110], WHITE).sum() > 60
    assert near(picture[40:65, 40:110], (0, 0, 0)).sum() > 300
    assert (picture[:38] == 128).all()


def test_a_picture_fills_its_four_corners_upright(surface, grey):
    image = np.zeros((20, 20, 3), np.uint8)
    image[:10] = RED
    image[10:] = WHITE
    corners = np.array([[100, 50], [200, 60], [200, 150], [100, 150]])
    picture = drawn(surface, grey, lambda scene: scene.picture(image, corners))
    assert tuple(picture[70, 150]) == RED
    assert tuple(picture[140, 150]) == WHITE
    assert tuple(picture[40, 150]) == (128, 128, 128)


def test_later_layers_cover_earlier_ones(surface, grey):
    square = np.array([[100, 50], [200, 50], [200, 150], [100, 150]])

    def paint(scene):
        scene.polygons([square], "#ff0000")
        scene.picture(np.full((4, 4, 3), 255, np.uint8), square)

    assert tuple(drawn(surface, grey, paint)[52, 150]) == WHITE


def test_layers_stay_inside_the_camera_picture(surface):
    image = np.full((180, 180, 3), 128, np.uint8)  # bars of 70 pixels
    line = np.array([[-100, 90], [400, 90]])
    picture = drawn(surface, image, lambda scene: scene.skeleton(line, [(0, 1)], "#ff0000"))
    assert near(picture[90, 75:245], RED).all()
    assert not near(picture[:, :70], RED).any()


def test_nothing_of_a_frame_stays_for_the_next(surface, grey):
    scene = Scene(surface)
    square = np.array([[100, 50], [200, 50], [200, 150], [100, 150]])
    drawn(surface, grey, lambda s: s.polygons([square], "#ff0000"), 1, scene)
    assert (drawn(surface, grey, sequence=2, scene=scene) == 128).all()


@pytest.mark.parametrize(
    "paint",
    [
        lambda scene: scene.model("couch.glb", (0, 0), width=0),
        lambda scene: scene.model("couch.glb", (float("nan"), 0), width=10),
        lambda scene: scene.model(
            "couch.glb", (0, 0), width=10, texture=np.zeros((4, 4), np.uint8)
        ),
        lambda scene: scene.polygons([np.zeros(3)]),
        lambda scene: scene.polygons([np.zeros((3, 2))], "red"),
        lambda scene: scene.polygons([np.zeros((3, 2))], (255, 0, 0)),
        lambda scene: scene.picture(np.zeros((4, 4, 3)), np.zeros((4, 2))),
        lambda scene: scene.picture(np.zeros((4, 4, 3), np.uint8), np.zeros((3, 2))),
        lambda scene: scene.mask(Mask(np.zeros(3, np.float32)), "#ffffff"),
    ],
)
def test_a_wrong_layer_is_the_apps_error(headless, grey, paint):
    with pytest.raises(AppError):
        drawn(headless, grey, paint)


MASK = Mask(np.zeros((4, 4), np.float32))
BOX = Detection("cup", 0.9, (0, 0, 9, 9))
TEXT = TextRegion(np.zeros((4, 2), np.float32), 0.9)


@pytest.mark.parametrize(
    ("paint", "said"),
    [
        (lambda s: s.boxes(MASK), "a list of Detection and got a Mask: draw it with scene.mask"),
        (lambda s: s.boxes([MASK]), "got a list with a Mask: draw it with scene.mask"),
        (lambda s: s.boxes(BOX), r"got a Detection: give a list, scene.boxes\(\[...\]\)"),
        (lambda s: s.boxes(None), r"got None: give \[\] while there is no result"),
        (lambda s: s.boxes("cup"), "a list of Detection and got a str"),
        (lambda s: s.mask([BOX], "#ffffff"), "a Mask and got a list"),
        (lambda s: s.mask(BOX, "#ffffff"), "got a Detection: draw it with scene.boxes"),
        (lambda s: s.mask(None, "#ffffff"), "a Mask and got None"),
        (lambda s: s.background(np.zeros((4, 4, 3), np.uint8), BOX), "background wants a Mask"),
        (lambda s: s.background(MASK, MASK), "an image, .* got a Mask"),
        (lambda s: s.hands([BOX]), "a list of Hand and got a list with a Detection"),
        (lambda s: s.bodies(MASK), "a list of Body or Body3D and got a Mask"),
        (lambda s: s.faces(MASK), "a list of FaceMesh and got a Mask"),
        (lambda s: s.polygons([TEXT]), "draw its corners with scene.polygons"),
        (lambda s: s.polygons(None), "got None"),
        (lambda s: s.skeleton(MASK, []), "skeleton wants points.* draw it with scene.mask"),
        (lambda s: s.text(0.5, at=(1, 1)), "text wants a str and got a float"),
        (lambda s: s.text("a", at=BOX), "a point of the picture.* got a Detection"),
        (lambda s: s.picture(Picture(np.zeros(1)), np.zeros((4, 2))), "draw its image with"),
        (lambda s: s.occlude([MASK]), "occlude wants a Mask or a plane and got a list"),
    ],
)
def test_a_result_that_another_method_draws_is_told_so(headless, grey, paint, said):
    with pytest.raises(AppError, match=said):
        drawn(headless, grey, paint)


def test_an_apps_own_type_with_the_fields_of_a_result_is_drawn(headless, grey):
    own = SimpleNamespace(label="mine", score=0.5, box=(20, 20, 90, 90))
    assert (drawn(headless, grey, lambda scene: scene.boxes(own for _ in (1,))) != 128).any()


@pytest.mark.parametrize("image", [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3), np.float32)])
def test_a_wrong_camera_picture_is_refused(headless, image):
    with pytest.raises(ConfigError, match="BGR"):
        Scene(headless).begin(image, 0)


@pytest.mark.parametrize("software", [False, True])
def test_both_backdrops_show_the_same_picture_bars_and_resized_surfaces(headless, software):
    """A GPU samples the picture, a software GPU gets it scaled: the picture is the same."""
    rng = np.random.default_rng(5)
    picture = cv2.resize(rng.integers(0, 255, (6, 8, 3), np.uint8), (160, 120))
    headless.software = software
    scene = Scene(headless)
    scene.begin(picture, 1)
    scene.render()
    shown = headless.read().astype(int)
    box = Letterbox.fit((160, 120), headless.size)
    left, width = round(box.left), round(160 * box.zoom)
    top, height = round(box.top), round(120 * box.zoom)
    wanted = cv2.resize(picture, (width, height))[..., ::-1].astype(int)
    assert np.abs(shown[top : top + height, left : left + width] - wanted).max() <= 3
    outside = np.ones(shown.shape[:2], bool)
    outside[top : top + height, left : left + width] = False
    assert (shown[outside] < 25).all()


def test_a_ray_meets_what_is_in_the_apps_world_and_nothing_without_one(surface):
    scene = Scene(surface)
    assert scene.hit(3, 4) is None
    scene.world = SimpleNamespace(hit=lambda x, y: (x, y))  # type: ignore[assignment]
    assert scene.hit(3, 4) == (3, 4)


def test_models_in_the_world_fade_with_it_and_those_on_the_picture_do_not(surface, grey):
    turn = np.diag([1.0, -1.0, -1.0])
    camera = Camera.guess(320, 180).at(Pose(turn, np.array([0, 0.05, 0.3])))
    here = Pose(np.eye(3), np.zeros(3))

    def changed(at, fade, **how):
        scene = Scene(surface)
        scene.estimates_light = False
        scene.world = SimpleNamespace(fade=fade, found=())  # type: ignore[assignment]
        for _ in range(2):
            scene.begin(grey, 0, camera)
            scene.model("rabbit.glb", at=at, **how)
            scene.settle()
        scene.render()
        return np.abs(surface.read().astype(int) - 128).max(axis=2).sum()

    full, half, none = (changed(here, fade) for fade in (1.0, 0.5, 0.0))
    assert none < 0.02 * full
    assert 0.3 * full < half < 0.7 * full
    assert changed((160, 120), 0.0, width=60) > 0.2 * full
