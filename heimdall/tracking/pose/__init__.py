"""Six degrees of freedom: where the camera is in the world, in metres.

``targets``    markers, boards and pictures, as they are looked for
``finding``    targets anywhere in a picture
``reference``  pictures whose points have places in the world, found again near a known pose
``solve``      a pose from points: robust, refined, with its uncertainty
``views``      the surroundings, remembered, and by which the camera is found again
``sight``      what a picture says about a pose, by all that should be seen there
``smooth``     poses without trembling
``tracker``    ties them together: frames in, poses out

``calibration`` finds what a camera is, with a board that ``paper`` prints.
"""

from heimdall.tracking.pose.targets import Board, ImageTarget, Marker
from heimdall.tracking.pose.tracker import PoseTracker, Tracking
from heimdall.tracking.pose.views import Views

__all__ = ["Board", "ImageTarget", "Marker", "PoseTracker", "Tracking", "Views"]
