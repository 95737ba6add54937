"""Where the camera is, frame by frame: found by targets, followed, found again.

A pose is predicted, and what should be seen there compared with the picture (``sight``). It counts
as tracked only while the picture bears it out; otherwise it is lost, and looked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.finding import Finder
from heimdall.tracking.pose.focal import Focal, zoomed
from heimdall.tracking.pose.recovery import FOLLOWED_SHARE, Recovery
from heimdall.tracking.pose.reference import NEAREST_M, register
from heimdall.tracking.pose.sight import COARSE_PX, FEW_POINTS, PLACE_SD, TURN_SD, Sight, is_known
from heimdall.tracking.pose.smooth import Smoother
from heimdall.tracking.pose.solve import Fit, apart, flipped, refine
from heimdall.tracking.pose.targets import Prepared, Target, prepare
from heimdall.tracking.pose.views import Views

TRACKED, LOST = "tracked", "lost"
SHARP_PX = 0.8  # the same in pictures of COARSE_PX: beyond it they are blurred
LEARN_TURN_SD, LEARN_PLACE_SD = math.radians(0.45), 0.005
NEAR_PX = 10.0  # off in a picture 1280 wide: looking again from there would find the same
OTHER_DEGREES = 5.0  # the two poses of a plane are worth telling apart beyond it
SURE = 5.0  # log likelihood
MOST_UNSURE = 12  # frames that a pose waits for being told from its mirror image
EVIDENCE = 0.15  # of each point: neighbours err together
LOOK_EVERY = 6  # frames between looks for targets whose place is not known
PLACED_AFTER = 6  # looks that agree on where another target is


@dataclass(frozen=True, eq=False)
class Tracking:
    """What is known of one frame: its ``state`` and ``pose`` (world to camera; while lost the last
    one, None before the first), smoothed, and ``raw`` as it was measured; how far points were off,
    pixels; how many times longer than the guess the ``focal`` length is that they go with; and
    whether a ``target`` itself was seen well, and not only what is remembered around it."""

    sequence: int
    state: str
    pose: Pose | None
    raw: Pose | None = None
    reprojection_px: float | None = None
    points: int = 0
    focal: float = 1.0
    target: bool = False

    @property
    def tracked(self) -> bool:
        """True if the pose is that of this frame."""
        return self.state == TRACKED

    def pose_of(self, earlier: Tracking) -> Pose | None:
        """An earlier frame's pose, in the world as this one has it."""
        return earlier.pose


class PoseTracker:
    """Give it frame after frame. One thread only.

    The world is that of the first of ``targets``: its middle is the origin, x right, y up, z out
    of it. Others may lie anywhere; where, is found out when both are seen. ``views``: what is
    remembered of the surroundings (None: nothing is). The focal length of a camera that was guessed
    is found by the targets, if they are ``true``: of the shape that they are said to have.
    """

    def __init__(
        self, targets: Sequence[Target], views: Views | None = None, *, true: bool = True
    ) -> None:
        self._targets: list[Prepared] = prepare(targets)
        self._recovery = Recovery(Finder(self._targets), views)
        self.views = views
        self._sight = Sight(self._targets, views)
        self._sightings: dict[int, list[Pose]] = {}
        self._smooth = Smoother()
        self._focal = Focal(views.focal if views is not None else 1.0) if true else None
        self._blurred = False
        self._costly = False  # this frame, already
        self._pose: Pose | None = None  # as measured, of the frame before
        self._step: Pose | None = None  # from the frame before that to it
        self._shown: Pose | None = None
        self._evidence = 0.0  # for the pose against its mirror image
        self._unsure = 0
        self._frames = 0

    @property
    def placed(self) -> dict[str, Pose]:
        """Where each target that has been seen is: from its own axes to the world."""
        return {self._targets[number].target.name: at for number, at in self._sight.places.items()}

    @property
    def prepared(self) -> Sequence[Prepared]:
        """The targets, as they are looked for, in the order given."""
        return self._targets

    def expect(self, pose: Pose) -> None:
        """The next frame is about at ``pose``: it is followed from there, not looked for."""
        self._pose, self._step, self._evidence = pose, None, SURE + 1

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Tracking:
        """The next frame, BGR or grey uint8, ``at_s`` seconds after any moment (None: 30 a
        second)."""
        grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        at_s = self._frames / 30 if at_s is None else at_s
        self._frames += 1
        guessed, times = camera, self._focal.times if self._focal and camera.guessed else 1.0
        camera = guessed.zoomed(times)
        # one or the other: a frame in which following fails has cost enough
        following = self._pose is not None
        fit = self._follow(grey, camera) if following else self._find(grey, camera)
        if fit is None:
            self._lose()
            return Tracking(sequence, LOST, self._shown, focal=times)
        self._step = fit.pose.after(self._pose.inverse) if self._pose is not None else None
        self._pose = fit.pose
        self._recovery.saw(grey, camera, fit.pose)
        if self._unsure:
            self._unsure = 0 if abs(self._evidence) > SURE else self._unsure - 1
            return Tracking(sequence, LOST, self._shown, focal=times)
        self._learn(grey, camera, fit)
        self._shown = self._smooth(fit.pose, at_s)
        last = self._sight.last
        found = Tracking(
            sequence, TRACKED, self._shown, fit.pose, fit.rms_px, fit.count, times,
            target=last is not None and last.well,
        )  # fmt: skip
        if guessed.guessed:
            self._calibrate(guessed, fit.pose)
        return found

    def _lose(self) -> None:
        self._pose = self._step = None
        self._smooth.forget()

    # --- following ------------------------------------------------------------------------

    def _follow(self, grey: np.ndarray, camera: Camera) -> Fit | None:
        assert self._pose is not None
        guess = self._step.after(self._pose) if self._step is not None else self._pose
        # a frame after a blurred one is blurred
        sharp = not self._blurred
        fit = self._sight.measured(grey, camera, guess, FOLLOWED_SHARE) if sharp else None
        self._costly = fit is None
        fit = fit or self._settled(grey, camera, guess, FOLLOWED_SHARE, COARSE_PX, failed=sharp)
        return self._told_apart(grey, camera, fit) if fit is not None else None

    def _settled(
        self,
        grey: np.ndarray,
        camera: Camera,
        guess: Pose,
        share: float,
        side_px: int,
        *,
        failed: bool = False,
    ) -> Fit | None:
        """The pose near a guess that may be many pixels off, from smaller pictures first. If they
        are blurred that is the better one. ``failed``: full ones were compared there already."""
        rough = self._sight.measured(grey, camera, guess, FOLLOWED_SHARE, side_px)
        kept, worst = self._sight.last, SHARP_PX * camera.width / 1280
        good = rough if rough is not None and is_known(rough, 0.5) else None
        if failed and not (rough and self._elsewhere(camera, guess, rough)):
            self._blurred = good is not None
            return good  # it would come to the same
        if good is not None and self._blurred and good.rms_px > worst:
            return good
        fit = self._sight.measured(
            grey, camera, rough.pose if rough else guess, share, again=failed
        )
        self._blurred = fit is None and good is not None
        if self._blurred:
            self._sight.last = kept
            return good
        return fit

    def _elsewhere(self, camera: Camera, guess: Pose, rough: Fit) -> bool:
        """Whether a comparison where ``rough`` is may find what one at ``guess`` has not."""
        assert self._sight.last is not None
        if rough.count <= FEW_POINTS:  # one more or less decides
            return True
        there, then = (each.to_camera(self._sight.last.points) for each in (guess, rough.pose))
        if min(there[:, 2].min(), then[:, 2].min()) < NEAREST_M:
            return True
        off = np.linalg.norm(camera.pixels(there) - camera.pixels(then), axis=1)
        return bool(np.median(off) > NEAR_PX * camera.width / 1280)

    def _told_apart(self, grey: np.ndarray, camera: Camera, fit: Fit) -> Fit:
        """``fit``, or the pose that looks nearly the same, once that has been better for long."""
        last = self._sight.last
        assert last is not None
        points, pixels, weights, parts = last.points, last.pixels, last.weights, last.parts
        if parts > 1:  # what is not on the same plane says it
            self._evidence = max(self._evidence, SURE + 1)
        if parts > 1 or (not self._unsure and self._frames % 5):
            return fit
        other = refine(camera, points, pixels, flipped(fit.pose, points.mean(axis=0)), weights)
        if other is None or apart(other.pose, fit.pose)[0] < math.radians(OTHER_DEGREES):
            self._evidence = max(self._evidence, SURE + 1)
            return fit
        here, there = (max(each.rms_px, 0.05) for each in (fit, other))
        count = min(fit.count, 40)
        self._evidence += EVIDENCE * count * math.log(there / here)
        self._evidence += EVIDENCE * 2 * (fit.count - other.count)
        self._evidence = float(np.clip(self._evidence, -2 * SURE, 2 * SURE))
        if self._evidence < -SURE:
            self._evidence, self._pose = -self._evidence, None  # it jumps, and does not move
            self._smooth.forget()
            return other
        return fit

    # --- finding --------------------------------------------------------------------------

    def _find(self, grey: np.ndarray, camera: Camera) -> Fit | None:
        self._costly = True
        self._sight.forget_hidden()
        guess = self._recovery.guess(grey, camera, self._sight.places)
        if guess is None:
            return None
        fit = self._settled(grey, camera, guess.pose, guess.share, COARSE_PX * 2)
        if fit is None:
            return None
        if guess.mirrored:
            self._evidence, self._unsure = 0.0, MOST_UNSURE
        return self._told_apart(grey, camera, fit)

    # --- learning -------------------------------------------------------------------------

    def _learn(self, grey: np.ndarray, camera: Camera, fit: Fit) -> None:
        if self._costly or fit.turn_sd > LEARN_TURN_SD or fit.place_sd > LEARN_PLACE_SD:
            return
        if self.views is not None:
            self.views.learn(grey, camera, fit.pose, self._outlines(camera, fit.pose))
        if len(self._sight.places) < len(self._targets) and (
            self._frames % LOOK_EVERY == 0 or self._recovery.finder.busy
        ):
            self._place(grey, camera, fit.pose)

    def _outlines(self, camera: Camera, pose: Pose) -> np.ndarray | None:
        there = pose.after(self._sight.places[0]).to_camera(self._targets[0].corners * 1.3)
        return camera.pixels(there) if (there[:, 2] > 0.02).all() else None

    def _calibrate(self, guessed: Camera, pose: Pose) -> None:
        """Find out how long the lens is, and begin anew where it is another."""
        last, focal = self._sight.last, self._focal
        if focal is None or last is None or not last.flat:
            return
        before = focal.times
        if not focal.look(guessed, last.points, last.pixels, pose):
            return
        self._pose, self._step = zoomed(pose, focal.times / before), None
        self._smooth.forget()
        # what was learnt has places by the lens as it was taken to be
        self._sight.places, self._sightings = {0: self._sight.places[0]}, {}
        if self.views is not None:
            self.views.begin_anew(focal.times)

    def _place(self, grey: np.ndarray, camera: Camera, pose: Pose) -> None:
        """Find out where further targets are, from several looks that agree."""
        for found in self._recovery.finder.look(grey, camera):
            if found.target in self._sight.places or not found.poses:
                continue
            target = self._targets[found.target]
            best: Fit | None = None
            for each in found.poses:
                seen = register(grey, camera, target.reference, each)
                fit = refine(camera, seen.points, seen.pixels, each) if seen else None
                if fit and fit.count >= FEW_POINTS and (best is None or fit.rms_px < best.rms_px):
                    best = fit
            if best is None or best.turn_sd > TURN_SD or best.place_sd > PLACE_SD:
                continue
            looks = self._sightings.setdefault(found.target, [])
            looks.append(pose.inverse.after(best.pose))
            if len(looks) >= PLACED_AFTER:
                self._sight.places[found.target] = _mean(looks[-PLACED_AFTER:])


def _mean(poses: Sequence[Pose]) -> Pose:
    u, _, v = np.linalg.svd(np.mean([each.rotation for each in poses], axis=0))
    return Pose(u @ v, np.median([each.translation for each in poses], axis=0))
